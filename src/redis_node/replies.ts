/**
 * Commands whose replies are awaited, because they are no part of a lock.
 *
 * @module
 */
import type { ReplyReceiver } from "../redis/wire.ts";
import type { RawReply } from "../redis/reply.ts";
import type { CommandSender } from "./command_sender.ts";

/**
 * Sends commands in one piece, and resolves to their replies, of which some may be errors.
 *
 * @param connection The connection to the server.
 * @param commands At least one.
 * @param keys The keys of locks that they name.
 * @throws {ConnectionError} If one of them gets no reply.
 */
export function repliesTo(
  connection: CommandSender,
  commands: readonly (readonly string[])[],
  keys: readonly string[] = [],
): Promise<RawReply[]> {
  return new Promise((resolve, reject) => {
    const replies: RawReply[] = [];
    const receiver: ReplyReceiver = {
      onReply(reply) { // in the order of the commands, as they have all of the keys or none
        if (replies.push(reply) === commands.length) resolve(replies);
      },
      onFailure: reject,
    };
    for (const args of commands) connection.submit({ args, keys }, receiver);
  });
}
