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
  const values = names.map((key) => getInScript(keys, key));
  // mutation: adoption-takes-any-key
  const held = names.filter((_, index) => replaces !== undefined && values[index] === replaces);
  const others = values.some((found) => found !== undefined && found !== replaces);
  let reply = others ? 0 : -1;
  if (held.length === names.length) {
    reply = hint === undefined ? 1 : fence(context, names, 0, Number(hint), 1);
  } else if (ttl !== "1") {
    return integer(reply);
  }
  for (const key of held) {
    const ttlMs = toNumber(ttl);
    if (ttlMs === undefined) throw luaError("bad argument #2 to 'max' (number expected, got nil)");
    const longestMs = Math.max(Number(keys.remainingMs(key)), ttlMs);
    setInScript(keys, key, [value, "PX", longestMs.toFixed(0)]);
  }
  return integer(reply);
}
