/**
 * Streams of replies, cut into chunks in every way, and what the decoder makes of them.
 *
 * @module
 */
import { RespDecoder } from "../../src/redis/decoder.ts";
import { ProtocolError, ReplyError } from "../../src/redis/errors.ts";
import type { RawReply } from "../../src/redis/reply.ts";

const encoder = new TextEncoder();

/** The UTF-8 of `text`. */
export function bytes(text: string): Uint8Array {
  return encoder.encode(text);
}

/** Cuts `stream` at the given places. */
export function cut(stream: Uint8Array, places: readonly number[]): Uint8Array[] {
  const sorted = [0, ...places, stream.length].sort((a, b) => a - b);
  return sorted.slice(1).map((end, index) => stream.subarray(sorted[index], end));
}

/** Cuts `stream` into its bytes. */
export function byteByByte(stream: Uint8Array): Uint8Array[] {
  return Array.from(stream, (_, index) => stream.subarray(index, index + 1));
}

/** What a decoder makes of `chunks`: the replies, and the error that ended it. */
export function decode(
  chunks: readonly Uint8Array[],
): { replies: RawReply[]; error?: ProtocolError } {
  const replies: RawReply[] = [];
  const decoder = new RespDecoder((reply) => replies.push(reply));
  try {
    for (const chunk of chunks) decoder.push(chunk);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return { replies, error };
  }
  return { replies };
}

/** Errors as plain data, so that a value and an error of the same text differ. */
export function plain(reply: RawReply): unknown {
  if (reply instanceof ReplyError) return { error: reply.message, prefix: reply.prefix };
  return Array.isArray(reply) ? reply.map(plain) : reply;
}
