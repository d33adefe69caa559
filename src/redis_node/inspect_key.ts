/**
 * Asking a server what it has under a key, without changing it.
 *
 * @module
 */
import type { KeyState } from "../quorum/lock_node.ts";
import { ProtocolError, ReplyError } from "../redis/errors.ts";
import { type RawReply, textReply, timeReplyMs } from "../redis/reply.ts";
import type { CommandSender } from "./command_sender.ts";
import { repliesTo } from "./replies_to.ts";
import { queueOf } from "./scripts/queue.ts";
import { READERS_PREFIX, SHARED } from "./scripts/readers.ts";

/** Error prefix of a command that reads a value of another type. */
const WRONG_TYPE = "WRONGTYPE";
/** How many readers are read at a time: a connection takes no reply of any length. */
const STEP_READERS = 1_000;
/** How many are read at most: a server may say that there are ever more. */
const READERS_MAX = 100_000;
/** Stands for the type, if the server refuses `TYPE`. */
const ANOTHER_TYPE = "value of another type";

/**
 * Asks for a key's value, TTL, type and queue, in one piece; and if readers hold the key, for their values. Of very many
 * readers, one may be missed while others leave.
 *
 * @param connection The connection to the server.
 * @param name The node, for messages.
 * @param key The key.
 * @returns What the key holds, or `undefined` if it is missing.
 * @throws {RedisError} If the server cannot be asked, or refuses to answer.
 */
export async function inspectKey(
  connection: CommandSender,
  name: string,
  key: string,
): Promise<KeyState | undefined> {
  const commands = [["GET", key], ["PTTL", key], ["ZCARD", queueOf(key)], ["TYPE", key]];
  const state = keyState(await repliesTo(connection, commands, [key]));
  if (state instanceof ReplyError) throw state;
  if (state === null) throw new ProtocolError(`Cannot inspect as ${name} sent an unexpected reply`);
  if (state?.value !== SHARED) return state;
  const sharers: string[] = [];
  for (let from = 0; from < READERS_MAX; from += STEP_READERS) {
    const range = [String(from), String(from + STEP_READERS - 1)];
    const commands = [["ZRANGE", READERS_PREFIX + key, ...range, "WITHSCORES"], ["TIME"]];
    const [members, time] = await repliesTo(connection, commands, [key]);
    for (const reply of [members, time]) if (reply instanceof ReplyError) throw reply;
    // Each deadline is behind its value; in RESP3 the two are in an array.
    const parts = Array.isArray(members)
      ? (textReply(members) as unknown[]).flat().map(String)
      : [];
    const nowMs = timeReplyMs(time) ?? NaN;
    sharers.push(...parts.filter((_, at) => at % 2 === 0 && Number(parts[at + 1]) > nowMs));
    if (parts.length < 2 * STEP_READERS) break;
  }
  return { ...state, sharers };
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
