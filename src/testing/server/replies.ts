/**
 * Byte strings, and replies: as commands make them, and encoded as byte strings.
 *
 * A *byte string* is a JavaScript string in which each character is one byte (latin1). It can hold
 * any value, and unlike bytes it can be compared and be the key of a `Map`.
 *
 * @module
 */

const encoder = new TextEncoder();

/** How many bytes become characters by one call; a call cannot have arguments without end. */
const CHUNK_BYTES = 4_096;

/** What `apply` takes as well as an array. */
type Codes = Uint8Array & number[];

/**
 * Thrown for a command that the server refuses; the message is the reply without the leading `-`.
 */
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

/** What a command replies, before it is encoded. */
export type Reply =
  | string // a bulk string
  | number
  | bigint
  | null
  | CommandError
  | Status
  | Double
  | Fields
  | Verbatim
  | Notices
  | readonly Reply[];

/** The version of the protocol that a connection speaks. */
export type Protocol = 2 | 3;

/** A text that is not a bulk string in every version of the protocol. */
abstract class Text {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** A simple string. */
export class Status extends Text {}

/** A score: a number of RESP3, a bulk string of RESP2. */
export class Double extends Text {}

/** Text for people: a bulk string of RESP2. */
export class Verbatim extends Text {}

/** Names and values: a map of RESP3, an array of RESP2. */
export class Fields {
  readonly entries: readonly (readonly [name: string, value: Reply])[];

  constructor(entries: readonly (readonly [name: string, value: Reply])[]) {
    this.entries = entries;
  }
}

/** What a server sends about channels: each is an array of RESP2, a push of RESP3. */
export class Notices {
  readonly list: readonly (readonly Reply[])[];

  constructor(list: readonly (readonly Reply[])[]) {
    this.list = list;
  }
}

/** The reply of a command that did what it was asked for. */
export const OK: Status = new Status("OK");

/** `-text`; line ends become spaces, because a line end would end the reply. */
export function failure(text: string): string {
  return `-${text.replace(/[\r\n]/gu, " ")}\r\n`;
}

/** Encodes a reply. */
export function encodeReply(reply: Reply, protocol: Protocol): string {
  if (typeof reply === "string") return `$${reply.length}\r\n${reply}\r\n`;
  if (typeof reply === "number" || typeof reply === "bigint") return integer(reply);
  if (reply === null) return protocol === 3 ? "_\r\n" : "$-1\r\n";
  if (Array.isArray(reply)) return list("*", reply, protocol);
  if (reply instanceof Status) return `+${reply.text}\r\n`;
  if (reply instanceof CommandError) return failure(reply.message);
  if (reply instanceof Notices) {
    const kind = protocol === 3 ? ">" : "*";
    return reply.list.map((notice) => list(kind, notice, protocol)).join("");
  }
  if (reply instanceof Fields) {
    const items = reply.entries.flatMap((entry) => entry);
    if (protocol === 2) return list("*", items, protocol);
    return list("%", items, protocol, reply.entries.length);
  }
  const { text } = reply as Double | Verbatim;
  if (protocol === 2) return encodeReply(text, protocol);
  return reply instanceof Double
    ? `,${text}\r\n`
    : `=${text.length + VERBATIM_TEXT.length}\r\n${VERBATIM_TEXT}${text}\r\n`;
}

function list(
  kind: string,
  replies: readonly Reply[],
  protocol: Protocol,
  count: number = replies.length,
): string {
  let text = `${kind}${count}\r\n`;
  for (const reply of replies) text += encodeReply(reply, protocol);
  return text;
}

/** What stands before a verbatim string that is plain text. */
const VERBATIM_TEXT = "txt:";
/** The least integer of 64 bits; Redis replaces a number of a script that is too great by it. */
const INT64_MIN = -(2n ** 63n);

/** `:number`; a number of a script is converted as Redis converts it. */
function integer(number: number | bigint): string {
  const isExact = typeof number === "bigint" || Number.isSafeInteger(number);
  return `:${isExact ? number : int64(number as number)}\r\n`;
}

function int64(number: number): bigint {
  return Math.abs(number) < 2 ** 63 ? BigInt(Math.trunc(number)) : INT64_MIN;
}
