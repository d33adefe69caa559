/**
 * The script that sets a server's creation marker, as a function that stands for it.
 *
 * @module
 */
import { CREATED } from "../../redis_node/scripts/creation.ts";
import type { CommandContext } from "../commands/command.ts";
import { setKey } from "../commands/key_commands.ts";
import { CommandError, integer } from "../server/replies.ts";
import { atPlace, placeIn } from "./script_places.ts";

/** CREATED. */
export function created({ keys }: CommandContext, [key]: readonly string[]): string {
  const set = atPlace(placeIn(CREATED, "redis.call('SET'"), () => {
    if (key !== undefined) return setKey(keys, [key, String(keys.nowMs()), "NX"]);
    throw new CommandError("ERR Lua redis lib command arguments must be strings or integers");
  });
  return integer(set ? 1 : 0);
}
