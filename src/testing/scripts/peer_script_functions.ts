/**
 * The scripts of node-redlock as functions, so that its locks and ours can be tested against each other without Redis.
 * Only the SHA-1s of their sources are known.
 *
 * @module
 */
import type { Keyspace } from "../server/keyspace.ts";
import { integerScript, type ScriptFunction } from "./script_functions.ts";
import { setInScript } from "./script_calls.ts";

/** The scripts of `redlock@4.2.0` and of `redlock@5.0.0-beta.2`: each acquires, extends, releases. */
export const PEER_SCRIPT_FUNCTIONS: readonly ScriptFunction[] = [
  ...versionScripts(
    "e5a322e2634ef59a516e8ea150cb085afafee684",
    "ce46f80993d5dac20dd066eb301a4e37994bdbed",
    "0f0f23b9048b36752b5be114f357ba083449f908",
  ),
  ...versionScripts(
    "96da70f7716f27d278a5218544df37fd8b0a5e4c",
    "aed6f382e410db8ba7926d4e5e9aab410bf2a78a",
    "e4612211c9f8f51c257e26e056b0a654b3187242",
  ),
];

function versionScripts(acquireSha1: string, extendSha1: string, releaseSha1: string) {
  return [
    integerScript(acquireSha1, (keyspace, keys, args) => {
      if (keys.some((key) => keyspace.has(key))) return 0;
      return setAll(keyspace, keys, args);
    }),
    integerScript(extendSha1, (keyspace, keys, args) => {
      if (keys.some((key) => !holds(keyspace, key, args[0]))) return 0;
      return setAll(keyspace, keys, args);
    }),
    integerScript(releaseSha1, (keyspace, keys, args) => {
      let released = 0;
      for (const key of keys) {
        if (holds(keyspace, key, args[0]) && keyspace.delete(key)) released++;
      }
      return released;
    }),
  ];
}

function holds(keyspace: Keyspace, key: string, value: string | undefined): boolean {
  const found = keyspace.get(key);
  return found !== undefined && found === value;
}

function setAll(
  keyspace: Keyspace,
  keys: readonly string[],
  [value, ttl]: readonly string[],
): number {
  for (const key of keys) setInScript(keyspace, key, [value, "PX", ttl]);
  return keys.length;
}
