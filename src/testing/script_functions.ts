/**
 * The library's Lua scripts as functions that stand for them, down to what they answer to arguments that the
 * library never sends.
 *
 * @module
 */
import { ACQUIRE_ALL, ACQUIRE_OR_WAIT, EXTEND, LEAVE, RELEASE } from "../scripts.ts";
import { acquireOrWait, leave, release } from "./line_functions.ts";
import type { CommandContext } from "./command.ts";
import type { Keyspace } from "./keyspace.ts";
import { CommandError, integer } from "./replies.ts";
import { getInScript, scriptError, setInScript } from "./script_places.ts";

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
  { sha1: RELEASE.sha1, run: release },
  { sha1: ACQUIRE_OR_WAIT.sha1, run: acquireOrWait },
  { sha1: LEAVE.sha1, run: leave },
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
