/**
 * The scripts of node-redlock as functions that stand for them, so that its locks and ours can be tested against
 * each other without Redis. They are known by the SHA-1s of their sources alone.
 *
 * @module
 */
import type { Keyspace } from "../server/keyspace.ts";
import { integerScript, type ScriptFunction } from "./script_functions.ts";
import { getInScript, type ScriptPlace, setInScript } from "./script_places.ts";

/** The lines in which the versions' scripts read and write. */
const SET_LINE = 11;
const EXTEND_GET_LINE = 4;
const RELEASE_GET_LINE = 5;

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
      return setAll(keyspace, keys, args, { sha1: acquireSha1, line: SET_LINE });
    }),
    integerScript(extendSha1, (keyspace, keys, args) => {
      const place = { sha1: extendSha1, line: EXTEND_GET_LINE };
      if (keys.some((key) => !holds(keyspace, key, args[0], place))) return 0;
      return setAll(keyspace, keys, args, { sha1: extendSha1, line: SET_LINE });
    }),
    integerScript(releaseSha1, (keyspace, keys, args) => {
      const place = { sha1: releaseSha1, line: RELEASE_GET_LINE };
      let released = 0;
      for (const key of keys) {
        if (holds(keyspace, key, args[0], place) && keyspace.delete(key)) released++;
      }
      return released;
    }),
  ];
}

function holds(
  keyspace: Keyspace,
  key: string,
  value: string | undefined,
  place: ScriptPlace,
): boolean {
  const found = getInScript(keyspace, key, place);
  return found !== undefined && found === value;
}

function setAll(
  keyspace: Keyspace,
  keys: readonly string[],
  args: readonly string[],
  place: ScriptPlace,
): number {
  for (const key of keys) setInScript(keyspace, key, args, place);
  return keys.length;
}
