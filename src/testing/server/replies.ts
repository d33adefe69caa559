/**
 * Byte strings, and RESP2 replies as byte strings.
 *
 * A *byte string* is a JavaScript string in which each character is one byte (latin1). It can hold any value, and unlike
 * bytes it can be compared and be the key of a `Map`.
 *
 * @module
 */

const encoder = new TextEncoder();

/** How many bytes become characters by one call; a call cannot have arguments without end. */
const CHUNK_BYTES = 4_096;

/** What `apply` takes as well as an array. */
type Codes = Uint8Array & number[];

/** Thrown for a command that the server refuses; the message is the reply without the leading `-`. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}

/** The bytes as a byte string. */
export function toByteString(bytes: Uint8Array): string {
  if (bytes.length <= CHUNK_BYTES) return String.fromCharCode.apply(undefined, bytes as Codes);
  let text = "";
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    // Not spread: a spread reads the array by its iterator, byte by byte.
    text += String.fromCharCode.apply(undefined, bytes.subarray(at, at + CHUNK_BYTES) as Codes);
  }
  return text;
}

/** The UTF-8 of `text` as a byte string. */
export function utf8ByteString(text: string): string {
  return toByteString(encoder.encode(text));
}

/** The bytes of a byte string. */
export function fromByteString(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index++) bytes[index] = text.charCodeAt(index);
  return bytes;
}

/** `+text`. */
export function simple(text: string): string {
  return `+${text}\r\n`;
}

/** `-text`; line ends become spaces, because a line end would end the reply. */
export function failure(text: string): string {
  return `-${text.replace(/[\r\n]/gu, " ")}\r\n`;
}

/** The least integer of 64 bits; Redis replaces a number of a script that is too great by it. */
const INT64_MIN = -(2n ** 63n);

/** `:number`; a number of a script is converted as Redis converts it. */
export function integer(number: number | bigint): string {
  return `:${
    typeof number === "bigint" || Number.isSafeInteger(number) ? number : int64(number)
  }\r\n`;
}

function int64(number: number): bigint {
  return Math.abs(number) < 2 ** 63 ? BigInt(Math.trunc(number)) : INT64_MIN;
}

/** A bulk string, or the null bulk string. */
export function bulk(text: string | undefined): string {
  return text === undefined ? "$-1\r\n" : `$${text.length}\r\n${text}\r\n`;
}

/** An array of encoded replies. */
export function array(replies: readonly string[]): string {
  return `*${replies.length}\r\n${replies.join("")}`;
}
