/**
 * The replies of a server.
 *
 * @module
 */
import type { ReplyError } from "./errors.ts";

/**
 * One RESP2 reply with its bulk strings as bytes: a simple string, an integer (a `bigint` beyond
 * 2^53), a bulk string, an array, or `null` for the null bulk string and the null array. An error
 * is a value here; the client throws it, unless it is an element of an array.
 */
export type RawReply = string | number | bigint | Uint8Array | null | ReplyError | RawReply[];

/** One RESP2 reply with its bulk strings decoded as UTF-8; see {@linkcode RawReply}. */
export type Reply = string | number | bigint | null | ReplyError | Reply[];

/** A message of a channel, which RESP2 sends as a reply. */
export type Message = [kind: Uint8Array, channel: Uint8Array, message: Uint8Array];

const decoder = /* @__PURE__ */ new TextDecoder("utf-8", { ignoreBOM: true });

/** Bytes in UTF-8 as text; a BOM is a character like others. */
export function textOf(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** Decodes every bulk string inside `reply` as UTF-8. */
export function textReply(reply: RawReply): Reply {
  if (reply instanceof Uint8Array) return textOf(reply);
  if (Array.isArray(reply)) return reply.map(textReply);
  return reply;
}

/**
 * The server's clock in a reply to `TIME`, in milliseconds since 1970; `undefined` if it is not
 * such a reply.
 */
export function timeReplyMs(reply: RawReply | undefined): number | undefined {
  if (!Array.isArray(reply) || reply.length !== 2) return undefined;
  const [seconds, microseconds] = reply.map((part) => Number(textReply(part)));
  const timeMs = seconds * 1_000 + microseconds / 1_000;
  return Number.isFinite(timeMs) ? timeMs : undefined;
}

/** Whether `reply` is a message of a channel instead of a reply. */
export function isMessage(reply: RawReply): reply is Message {
  return Array.isArray(reply) && reply.length === 3 && reply[2] instanceof Uint8Array &&
    textReply(reply[0]) === "message";
}
