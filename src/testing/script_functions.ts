/**
 * The library's Lua scripts as functions that stand for them, down to what they answer to arguments that the
 * library never sends.
 *
 * @module
 */
import { ACQUIRE_ALL, EXTEND, RELEASE } from "../scripts.ts";
import type { CommandContext } from "./command.ts";
import { setKey } from "./key_commands.ts";
import type { Keyspace } from "./keyspace.ts";
import { CommandError, integer } from "./replies.ts";

/** A script that can be run without Lua. */
export interface ScriptFunction {
  /** The SHA-1 of its source, in lower-case hexadecimal digits. */
  readonly sha1: string;
  /** Runs it on `KEYS` and `ARGV` and returns the encoded reply. */
  run(context: CommandContext, keys: readonly string[], args: readonly string[]): string;
}

/** Every script of this library. */
export const SCRIPT_FUNCTIONS: readonly ScriptFunction[] = [
  integerScript(ACQUIRE_ALL.sha1, acquireAll),
  integerScript(EXTEND.sha1, extend),
  integerScript(RELEASE.sha1, release),
];

/** A script that works on keys alone, and answers an integer. */
export function integerScript(
  sha1: string,
  run: (keyspace: Keyspace, keys: readonly string[], args: readonly string[]) => number,
): ScriptFunction {
  return { sha1, run: (context, keys, args) => integer(run(context.keys, keys, args)) };
}

function acquireAll(keyspace: Keyspace, keys: readonly string[], args: readonly string[]): number {
  if (keys.some((key) => keyspace.has(key))) return 0;
  for (const key of keys) setInScript(keyspace, key, args, { sha1: ACQUIRE_ALL.sha1, line: 5 });
  return 1;
}

function extend(keyspace: Keyspace, keys: readonly string[], args: readonly string[]): number {
  const [value, ttl] = args;
  let missing = false;
  for (const key of keys) {
    const found = getInScript(keyspace, key, { sha1: EXTEND.sha1, line: 3 });
    if (found === undefined) missing = true;
    else if (found !== value) return 0;
  }
  for (const key of keys) {
    const ttlMs = Number(ttl?.trim() || NaN);
    if (Number.isNaN(ttlMs)) {
      const text = "ERR user_script:7: attempt to compare number with nil";
      throw scriptError(new CommandError(text), { sha1: EXTEND.sha1, line: 7 });
    }
    if (Number(keyspace.remainingMs(key)) < ttlMs) {
      setInScript(keyspace, key, args, { sha1: EXTEND.sha1, line: 8 });
    }
  }
  return missing ? 2 : 1;
}

/** A key of another type spares no other key; its error is the answer in the end. */
function release(keyspace: Keyspace, keys: readonly string[], args: readonly string[]): number {
  let all = 1;
  let failure: CommandError | undefined;
  for (const key of keys) {
    try {
      const found = keyspace.get(key);
      if (found !== undefined && found === args[0]) keyspace.delete(key);
      else all = 0;
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      failure = error;
    }
  }
  if (failure) throw failure;
  return all;
}

/** Where in a script a command stands: an error names both. */
export interface ScriptPlace {
  /** The script. */
  readonly sha1: string;
  /** The line of its source, counted from 1. */
  readonly line: number;
}

/** `redis.call('GET', key)` in a script. */
export function getInScript(keyspace: Keyspace, key: string, place: ScriptPlace) {
  return atPlace(place, () => keyspace.get(key));
}

/** `redis.call('SET', key, ARGV[1], 'PX', ARGV[2])` in a script. */
export function setInScript(
  keyspace: Keyspace,
  key: string,
  [value, ttl]: readonly string[],
  place: ScriptPlace,
): void {
  atPlace(place, () => {
    if (value === undefined || ttl === undefined) {
      throw new CommandError("ERR Lua redis lib command arguments must be strings or integers");
    }
    setKey(keyspace, [key, value, "PX", ttl]);
  });
}

function atPlace<Result>(place: ScriptPlace, action: () => Result): Result {
  try {
    return action();
  } catch (error) {
    throw error instanceof CommandError ? scriptError(error, place) : error;
  }
}

function scriptError({ message }: CommandError, { sha1, line }: ScriptPlace): CommandError {
  return new CommandError(`${message} script: ${sha1}, on @user_script:${line}.`);
}
