/**
 * The script that sets the creation marker of a server, as a function.
 *
 * @module
 */
import type { CommandContext } from "../commands/command.ts";
import { integer } from "../server/replies.ts";
import { setInScript } from "./script_calls.ts";

/** CREATED. */
export function created({ keys }: CommandContext, [key]: readonly string[]): string {
  return integer(setInScript(keys, key, [String(keys.nowMs()), "NX"]) ? 1 : 0);
}
