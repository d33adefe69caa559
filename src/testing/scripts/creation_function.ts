/**
 * The script that reads and sets the creation marker of a server, as a function.
 *
 * @module
 */
import type { CommandContext } from "../commands/command.ts";
import { array, integer } from "../server/replies.ts";
import { getInScript, setInScript } from "./script_calls.ts";

/** CREATED. */
export function created({ keys }: CommandContext, [key]: readonly string[]): string {
  const nowMs = Number(keys.nowMs());
  const created = getInScript(keys, key);
  if (created === undefined) setInScript(keys, key, [String(nowMs)]);
  const ageMs = created === undefined ? 0 : /^\d+$/u.test(created) ? nowMs - Number(created) : -1;
  return array([integer(Math.max(ageMs, -1)), integer(nowMs)]);
}
