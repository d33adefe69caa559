/**
 * Asking a server what it has under a key, without changing it.
 *
 * @module
 */
import type { KeyState } from "../quorum/lock_node.ts";
import type { ReplyReceiver } from "../redis/command_queue.ts";
import { ProtocolError, ReplyError } from "../redis/errors.ts";
import { type RawReply, textReply } from "../redis/reply.ts";
import type { CommandSender } from "./command_sender.ts";
import { queueOf } from "./scripts/queue.ts";

/** Error prefix of a command that reads a value of another type. */
const WRONG_TYPE = "WRONGTYPE";
/** Stands for the type, if the server refuses `TYPE`. */
const ANOTHER_TYPE = "value of another type";

/**
 * Asks for a key's value, TTL, type and queue, in one piece.
 *
 * @param connection The connection to the server.
 * @param name The node, for messages.
 * @param key The key.
 * @returns What the key holds, or `undefined` if it is missing.
 * @throws {RedisError} If the server cannot be asked, or refuses to answer.
 */
export function inspectKey(
  connection: CommandSender,
  name: string,
  key: string,
): Promise<KeyState | undefined> {
  const commands = [["GET", key], ["PTTL", key], ["ZCARD", queueOf(key)], ["TYPE", key]];
  return new Promise((resolve, reject) => {
    const replies: RawReply[] = [];
    const receiver: ReplyReceiver = {
      onReply(reply) {
        replies.push(reply);
        if (replies.length < commands.length) return;
        const state = keyState(replies);
        if (state instanceof ReplyError) reject(state);
        else if (state !== null) resolve(state);
        else reject(new ProtocolError(`Cannot inspect as ${name} sent an unexpected reply`));
      },
      onFailure: reject,
    };
    for (const args of commands) {
      connection.submit({ args, keys: [key] }, receiver, undefined, 0);
    }
  });
}

/** The state of the key by the replies: an error if a command was refused, `null` if they are no replies to these commands. */
function keyState(
  [value, pttl, waiters, type]: readonly RawReply[],
): KeyState | ReplyError | undefined | null {
  const foreign = value instanceof ReplyError && value.prefix === WRONG_TYPE;
  if (value instanceof ReplyError && !foreign) return value;
  if (pttl instanceof ReplyError) return pttl;
  if (typeof pttl !== "number") return null;
  if (value === null || pttl === -2) return undefined;
  if (!foreign && !(value instanceof Uint8Array)) return null;
  return {
    value: foreign ? "" : textReply(value) as string,
    remainingMs: pttl === -1 ? Infinity : pttl,
    ...(typeof waiters === "number" ? { waiters } : {}), // the server may refuse ZCARD
    ...(foreign ? { type: typeof type === "string" ? type : ANOTHER_TYPE } : {}),
  };
}
