/**
 * The library's Lua scripts as functions that stand for them, down to what they answer to arguments that the
 * library never sends.
 *
 * @module
 */
import { ACQUIRE_ALL, EXTEND, RELEASE, type Script } from "../scripts.ts";
import { setKey } from "./key_commands.ts";
import type { Keyspace } from "./keyspace.ts";
import { CommandError, utf8ByteString } from "./replies.ts";

/** A script that can be run without Lua. */
export interface ScriptFunction extends Script {
  /** Runs it on `KEYS` and `ARGV` and returns the integer it answers. */
  run(keyspace: Keyspace, keys: readonly string[], args: readonly string[]): number;
}

/** Every script there is; `source` is a byte string. */
export const SCRIPT_FUNCTIONS: readonly ScriptFunction[] = [
  scriptFunction(ACQUIRE_ALL, acquireAll),
  scriptFunction(EXTEND, extend),
  scriptFunction(RELEASE, release),
];

function scriptFunction({ source, sha1 }: Script, run: ScriptFunction["run"]): ScriptFunction {
  return { source: utf8ByteString(source), sha1, run };
}

function acquireAll(keyspace: Keyspace, keys: readonly string[], args: readonly string[]): number {
  if (keys.some((key) => keyspace.has(key))) return 0;
  for (const key of keys) setInScript(keyspace, key, args, ACQUIRE_ALL, 5);
  return 1;
}

function extend(keyspace: Keyspace, keys: readonly string[], args: readonly string[]): number {
  const [value, ttl] = args;
  let missing = false;
  for (const key of keys) {
    const found = keyspace.get(key);
    if (found === undefined) missing = true;
    else if (found !== value) return 0;
  }
  for (const key of keys) {
    const ttlMs = Number(ttl?.trim() || NaN);
    if (Number.isNaN(ttlMs)) {
      const text = "ERR user_script:7: attempt to compare number with nil";
      throw scriptError(new CommandError(text), EXTEND, 7);
    }
    if (Number(keyspace.remainingMs(key)) < ttlMs) setInScript(keyspace, key, args, EXTEND, 8);
  }
  return missing ? 2 : 1;
}

function release(keyspace: Keyspace, keys: readonly string[], args: readonly string[]): number {
  let all = 1;
  for (const key of keys) {
    const found = keyspace.get(key);
    if (found !== undefined && found === args[0]) keyspace.delete(key);
    else all = 0;
  }
  return all;
}

/** `redis.call('SET', key, ARGV[1], 'PX', ARGV[2])` in that line of the script. */
function setInScript(
  keyspace: Keyspace,
  key: string,
  [value, ttl]: readonly string[],
  script: Script,
  line: number,
): void {
  try {
    if (value === undefined || ttl === undefined) {
      throw new CommandError("ERR Lua redis lib command arguments must be strings or integers");
    }
    setKey(keyspace, [key, value, "PX", ttl]);
  } catch (error) {
    throw error instanceof CommandError ? scriptError(error, script, line) : error;
  }
}

function scriptError({ message }: CommandError, { sha1 }: Script, line: number): CommandError {
  return new CommandError(`${message} script: ${sha1}, on @user_script:${line}.`);
}
