/**
 * Asking a server what it has under a key, without changing it.
 *
 * @module
 */
import type { KeyState } from "../quorum/lock_node.ts";
import { ProtocolError, ReplyError } from "../redis/errors.ts";
import { textReply, timeReplyMs } from "../redis/reply.ts";
import { type CommandSender, repliesTo } from "./command_sender.ts";
import { explained, isWrongType } from "./refusals.ts";
import { queueOf, VALUE_BYTES_MAX } from "./scripts/queue.ts";
import { READERS_PREFIX, SHARED } from "./scripts/readers.ts";

/**
 * What `GET` replies of the key in `KEYS`, but of a longer text its beginning: it may be an
 * application's, and a connection ends at a reply that is too long.
 */
export const GET_LUA = `local found = redis.call('GET', KEYS[1])
return found and found:sub(1, ${VALUE_BYTES_MAX})`;
/** How many readers are read at a time, for the same reason. */
const STEP_READERS = 1_000;
/** How many are read at most: a server may say that there are ever more. */
const READERS_MAX = 100_000;
/** Stands for the type, if the server refuses `TYPE`. */
const ANOTHER_TYPE = "value of another type";

/**
 * Asks for a key's value, TTL, type and queue, in one piece; and if readers hold the key, for their
 * values.
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
  await connection.expectPlainKeys?.();
  const get = ["EVAL", GET_LUA, "1", key];
  const commands = [get, ["PTTL", key], ["ZCARD", queueOf(key)], ["TYPE", key]];
  const replies = await repliesTo(connection, commands, [key]);
  const [found] = replies;
  if (found instanceof ReplyError && found.commandRefused) { // a user who may only read
    [replies[0]] = await repliesTo(connection, [["GET", key]], [key]);
  }
  const [value, pttl, waiters, type] = replies.map(textReply);
  const foreign = value instanceof ReplyError && isWrongType(value);
  if (value instanceof ReplyError && !foreign) throw explained(value);
  if (pttl instanceof ReplyError) throw pttl;
  if (value === null || pttl === -2) return undefined;
  if (typeof pttl !== "number" || !foreign && typeof value !== "string") {
    throw new ProtocolError(`Cannot inspect as ${name} sent an unexpected reply`);
  }
  const state: KeyState = {
    value: foreign ? "" : String(value),
    remainingMs: pttl === -1 ? Infinity : pttl,
    ...(typeof waiters === "number" ? { waiters } : {}), // the server may refuse ZCARD
    ...(foreign ? { type: typeof type === "string" ? type : ANOTHER_TYPE } : {}),
  };
  return state.value === SHARED
    ? { ...state, sharers: await readersOf(connection, name, key) }
    : state;
}

/** The values of a key's readers. Of very many, one may be missed while others leave. */
async function readersOf(connection: CommandSender, name: string, key: string): Promise<string[]> {
  const values: string[] = [];
  for (let from = 0; from < READERS_MAX; from += STEP_READERS) {
    const range = [String(from), String(from + STEP_READERS - 1)];
    const commands = [["ZRANGE", READERS_PREFIX + key, ...range, "WITHSCORES"], ["TIME"]];
    const replies = await repliesTo(connection, commands, [key]);
    for (const reply of replies) if (reply instanceof ReplyError) throw reply;
    const [members, time] = replies.map(textReply);
    const nowMs = timeReplyMs(time);
    if (!Array.isArray(members) || nowMs === undefined) {
      throw new ProtocolError(`Cannot inspect as ${name} sent an unexpected reply`);
    }
    for (let at = 0; at < members.length; at += 2) { // each deadline is behind its value
      if (Number(members[at + 1]) > nowMs) values.push(String(members[at]));
    }
    if (members.length < 2 * STEP_READERS) break;
  }
  return values;
}
