/** Streams of replies, cut into chunks in every way, and what the decoder reads from them. */
import { type DecoderOptions, RespDecoder } from "../../src/redis/decoder.ts";
import { ProtocolError, ReplyError } from "../../src/redis/errors.ts";
import type { RawReply } from "../../src/redis/reply.ts";

const encoder = new TextEncoder();

/** The UTF-8 of `text`. */
export function bytes(text: string): Uint8Array {
  return encoder.encode(text);
}

/** Cuts `stream` at the given places, in any order. */
export function cut(stream: Uint8Array, places: readonly number[]): Uint8Array[] {
  const sorted = [0, ...places, stream.length].sort((a, b) => a - b);
  return sorted.slice(1).map((end, index) => stream.subarray(sorted[index], end));
}

/** Cuts `stream` into its bytes. */
export function byteByByte(stream: Uint8Array): Uint8Array[] {
  return Array.from(stream, (_, index) => stream.subarray(index, index + 1));
}

/** The result of a stream, comparable however the stream was cut. */
export interface Decoded {
  /** The replies; an error is an object with its message and prefix. */
  readonly replies: unknown[];
  /** Why the rest was refused. */
  readonly error: string | undefined;
  /** Whether nothing of a further reply has come; `undefined` after an error. */
  readonly idle: boolean | undefined;
}

/**
 * Decodes `chunks`, up to the first that is refused.
 *
 * @throws {unknown} Anything but a {@linkcode ProtocolError}.
 */
export function decode(chunks: readonly Uint8Array[], options?: DecoderOptions): Decoded {
  const replies: unknown[] = [];
  const decoder = new RespDecoder((reply) => replies.push(plain(reply)), options);
  try {
    for (const chunk of chunks) decoder.push(chunk);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    const reason = error.message.replace("Cannot read reply as ", "");
    return { replies, error: reason, idle: undefined };
  }
  return { replies, error: undefined, idle: isIdle(decoder, replies) };
}

/** Whether the decoder reads a reply that comes now as one of its own. */
function isIdle(decoder: RespDecoder, replies: unknown[]): boolean {
  const { length } = replies;
  try {
    decoder.push(bytes("+END\r\n"));
  } catch {
    return false; // it ended a longer reply, in the wrong way
  }
  return replies.splice(length)[0] === "END";
}

/** Errors as plain data, so that a value and an error of the same text differ. */
export function plain(reply: RawReply): unknown {
  if (reply instanceof ReplyError) return { error: reply.message, prefix: reply.prefix };
  return Array.isArray(reply) ? reply.map(plain) : reply;
}
