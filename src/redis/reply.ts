/**
 * What a server can answer.
 *
 * @module
 */
import type { ReplyError } from "./errors.ts";

/**
 * One RESP2 reply as it came: a simple string, an integer (a `bigint` beyond 2^53), a bulk string as bytes,
 * an array, `null` for the null bulk and the null array, or an error, which is a value until somebody throws it.
 */
export type RawReply = string | number | bigint | Uint8Array | null | ReplyError | RawReply[];

/** A reply with its bulk strings read as UTF-8 text, which is what most callers want. */
export type Reply = string | number | bigint | null | ReplyError | Reply[];

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Reads every bulk string inside `reply` as UTF-8. */
export function textReply(reply: RawReply): Reply {
  if (reply instanceof Uint8Array) return decoder.decode(reply);
  if (Array.isArray(reply)) return reply.map(textReply);
  return reply;
}
