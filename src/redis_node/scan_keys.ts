/**
 * Listing the keys of a server step by step, without changing anything.
 *
 * @module
 */
import { ProtocolError, ReplyError } from "../redis/errors.ts";
import { textReply } from "../redis/reply.ts";
import type { CommandSender } from "./command_sender.ts";
import { repliesTo } from "./replies_to.ts";

/**
 * How many keys a server looks at in one step: it serves nobody else meanwhile, for about a
 * millisecond.
 */
const STEP_KEYS = "1000";
/** What a pattern would not take literally. */
const SPECIAL = /[*?[\]\\^-]/gu;

/**
 * Lists the keys that begin with a prefix and hold a string, a step at a time. A key that is there
 * from the first step to the last is listed, perhaps more than once.
 *
 * @param connection The connection to the server.
 * @param name The node, for messages.
 * @param prefix What the keys begin with.
 * @throws {RedisError} If the server cannot be asked, or refuses to answer.
 */
export async function* scanKeys(
  connection: CommandSender,
  name: string,
  prefix: string,
): AsyncGenerator<readonly string[], void> {
  await connection.expectPlainKeys?.();
  const pattern = `${prefix.replaceAll(SPECIAL, "\\$&")}*`;
  let cursor: unknown = "0";
  do {
    const words = ["SCAN", String(cursor), "MATCH", pattern, "COUNT", STEP_KEYS, "TYPE", "string"];
    const [reply] = await repliesTo(connection, [words]);
    if (reply instanceof ReplyError) throw reply;
    const [next, keys] = Array.isArray(reply) ? textReply(reply) as unknown[] : [];
    if (!Array.isArray(keys)) {
      throw new ProtocolError(`Cannot list keys as ${name} sent an unexpected reply`);
    }
    yield keys.map(String);
    cursor = next;
  } while (String(cursor) !== "0");
}
