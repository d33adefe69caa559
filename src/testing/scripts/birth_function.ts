/**
 * The script that tells how old a server's birth key is, as a function that stands for it.
 *
 * @module
 */
import { CREATED } from "../../redis_node/scripts/creation.ts";
import type { CommandContext } from "../commands/command.ts";
import { CommandError, integer } from "../server/replies.ts";
import { atPlace } from "./script_places.ts";

/** BORN: what is no number of milliseconds up to now is set to now. */
export function born({ keys }: CommandContext, [key]: readonly string[]): string {
  const nowMs = Number(keys.nowMs());
  const found = atPlace({ sha1: CREATED.sha1, line: 3 }, () => {
    if (key !== undefined) return keys.get(key);
    throw new CommandError("ERR Lua redis lib command arguments must be strings or integers");
  });
  const bornMs = Number(found?.trim() || NaN);
  if (bornMs >= 0 && bornMs <= nowMs) return integer(Math.trunc(nowMs - bornMs));
  keys.set(key, String(nowMs));
  return integer(0);
}
