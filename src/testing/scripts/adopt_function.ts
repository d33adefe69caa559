/**
 * The script that gives the keys of a lock another value, as a function.
 *
 * @module
 */
import type { CommandContext } from "../commands/command.ts";
import { integer } from "../server/replies.ts";
import { fence } from "./fence_functions.ts";
import { getInScript, luaError, setInScript, toNumber } from "./script_calls.ts";

/** ADOPT. */
export function adopt(
  context: CommandContext,
  names: readonly string[],
  [value, ttl, replaces, hint]: readonly (string | undefined)[],
): string {
  const { keys } = context;
  let missing = false;
  for (const key of names) {
    const held = getInScript(keys, key);
    if (held !== undefined && held !== replaces) return integer(0);
    missing ||= held === undefined;
  }
  if (missing) return integer(-1);
  const reply = hint === undefined ? 1 : fence(context, names, hint);
  for (const key of names) {
    const ttlMs = toNumber(ttl);
    if (ttlMs === undefined) throw luaError("bad argument #2 to 'max' (number expected, got nil)");
    const longestMs = Math.max(Number(keys.remainingMs(key)), ttlMs);
    setInScript(keys, key, [value, "PX", longestMs.toFixed(0)]);
  }
  return integer(reply);
}
