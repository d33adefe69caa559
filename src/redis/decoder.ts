/**
 * Decodes the bytes of a server into replies: an incremental RESP2 parser, which takes chunks and
 * never waits.
 *
 * An incomplete reply is an ordinary state that is kept between chunks; a malformed one throws a
 * {@linkcode ProtocolError}. The work is proportional to the number of bytes, however the stream is
 * split: an incomplete line is buffered once, and a bulk string is copied to its final place. Bulk
 * strings are read by their length and never searched, so a string that looks like a reply stays a
 * string.
 *
 * One reply may have a limited number of bytes and elements, because a hostile server costs memory
 * otherwise: an element of four bytes takes fifty times as many in memory.
 *
 * @module
 */
import { ProtocolError, ReplyError } from "./errors.ts";
import { type RawReply, textOf } from "./reply.ts";
import { stackless } from "../stackless.ts";

/**
 * Default limit of the bytes of one reply: a server's own limit of one bulk string
 * (`proto-max-bulk-len`).
 */
export const REPLY_BYTES_MAX = 512 * 1024 * 1024;
/** Default limit of the elements of one reply, including those of nested arrays. */
export const REPLY_ELEMENTS_MAX = 1024 * 1024;
/** Longest line in bytes: a simple string, an error, an integer or a length. */
export const LINE_BYTES_MAX = 64 * 1024;
const LONG_LINE = `a line is longer than ${LINE_BYTES_MAX} bytes`;
/** Deepest nesting of arrays. */
export const NESTING_MAX = 32;

/**
 * Bytes that are first allocated for a bulk string, so that a false length costs no more than this.
 */
const BULK_BYTES_FIRST = 64 * 1024;
/** The first number that has more than 64 bits. */
const INT65 = 2 ** 64;

const NO_BYTES = new Uint8Array(0);

const CR = 13, LF = 10, PLUS = 43, MINUS = 45, COLON = 58, DOLLAR = 36, ASTERISK = 42;
const ZERO = 48, NINE = 57, LETTER_O = 79, LETTER_K = 75;

/** An array that is not complete. */
interface OpenArray {
  readonly items: RawReply[];
  remaining: number;
  readonly parent: OpenArray | undefined;
  readonly depth: number;
}

/** Limits of the replies of one server. */
export interface DecoderOptions {
  /**
   * Limit of the bytes of one reply.
   *
   * @default {536870912}
   */
  readonly replyBytesMax?: number;
  /**
   * Limit of the elements of one reply, including those of nested arrays.
   *
   * @default {1048576}
   */
  readonly replyElementsMax?: number;
  /** What errors must not contain: see {@linkcode RedisAddress.secrets}. */
  readonly secrets?: readonly string[];
}

/** An incremental decoder of the replies on one connection. */
export class RespDecoder {
  /** How many elements of arrays were decoded since the owner last set this to 0. */
  elementsDecoded = 0;
  readonly #onReply: (reply: RawReply) => void;
  readonly #bytesMax: number;
  readonly #elementsMax: number;
  readonly #secrets: readonly string[] | undefined;
  /** Begins with what has arrived of an incomplete line or bulk string. */
  #kept: Uint8Array = NO_BYTES;
  /** How many bytes that is; those of the CR LF behind a bulk string count too. */
  #keptLength = 0;
  /** The length of the incomplete bulk string; -1 outside of bulk strings. */
  #bulkLength = -1;
  #array: OpenArray | undefined;
  /**
   * Bytes and elements of the incomplete array. The bytes of a bulk string count as soon as its
   * length is known.
   */
  #bytes = 0;
  #elements = 0;
  #stopped = false;

  /**
   * @param onReply Called for each complete reply, in order, within {@linkcode push}.
   * @param options The limits of a reply.
   */
  constructor(onReply: (reply: RawReply) => void, options: DecoderOptions = {}) {
    this.#onReply = onReply;
    this.#bytesMax = options.replyBytesMax ?? REPLY_BYTES_MAX;
    this.#elementsMax = options.replyElementsMax ?? REPLY_ELEMENTS_MAX;
    this.#secrets = options.secrets;
  }

  /**
   * Decodes the next bytes of the stream, and calls `onReply` for every reply that they complete.
   * The bytes are copied, so the caller may use `chunk` again.
   *
   * @param chunk A buffer with the bytes.
   * @param length The number of bytes, from the start of the buffer; all by default.
   * @throws {ProtocolError} If the bytes are not RESP2, or a reply exceeds a limit; nothing may be
   * decoded then any more.
   */
  push(chunk: Uint8Array, length = chunk.length): void {
    let at = 0;
    while (at < length && !this.#stopped) {
      at = this.#bulkLength >= 0
        ? this.#takeBulk(chunk, at, length)
        : this.#takeLine(chunk, at, length);
    }
  }

  /** Stops decoding, also in the middle of a chunk. */
  stop(): void {
    this.#stopped = true;
  }

  /**
   * Reads one line that begins at `from`, or the part of it in this chunk; returns the index behind
   * it.
   */
  #takeLine(chunk: Uint8Array, from: number, length: number): number {
    let end = from;
    while (end < length && chunk[end] !== LF) end++;
    if (end < length && this.#keptLength === 0) {
      this.#parseLine(chunk, from, end);
      return end + 1;
    }
    this.#keep(chunk.subarray(from, end), LINE_BYTES_MAX + 1);
    if (end === length) return end;
    const lineLength = this.#keptLength;
    this.#keptLength = 0;
    this.#parseLine(this.#kept, 0, lineLength);
    return end + 1;
  }

  /**
   * Keeps bytes of an incomplete line or bulk string, which has at most `most`. Allocates twice as
   * much memory each time, so that the copying is linear.
   */
  #keep(bytes: Uint8Array, most: number): void {
    const needed = this.#keptLength + bytes.length;
    if (needed > most) this.#fail(LONG_LINE);
    if (needed > this.#kept.length) {
      const grown = new Uint8Array(Math.min(Math.max(needed, this.#kept.length * 2), most));
      grown.set(this.#kept.subarray(0, this.#keptLength));
      this.#kept = grown;
    }
    this.#kept.set(bytes, this.#keptLength);
    this.#keptLength = needed;
  }

  /** Parses the line in `bytes` from `start` up to its LF at `end`. */
  #parseLine(bytes: Uint8Array, start: number, end: number): void {
    const last = end - 1; // the CR
    if (last - start > LINE_BYTES_MAX) this.#fail(LONG_LINE);
    if (last <= start || bytes[last] !== CR) this.#fail("a line does not end in CR LF");
    if (this.#array) this.#count(end + 1 - start);
    switch (bytes[start]) {
      case PLUS:
        if (last - start === 3 && bytes[start + 1] === LETTER_O && bytes[start + 2] === LETTER_K) {
          return this.#complete("OK");
        }
        return this.#complete(this.#lineText(bytes, start + 1, last));
      case COLON:
        return this.#complete(this.#integer(bytes, start + 1, last));
      case DOLLAR:
        return this.#openBulk(this.#length(bytes, start + 1, last, this.#bytesMax));
      case MINUS:
        return this.#complete(this.#errorOf(this.#lineText(bytes, start + 1, last)));
      case ASTERISK:
        return this.#openArray(this.#length(bytes, start + 1, last, this.#elementsMax));
      default:
        this.#fail(`a reply begins with byte ${bytes[start]}`);
    }
  }

  #lineText(bytes: Uint8Array, start: number, end: number): string {
    const line = bytes.subarray(start, end);
    if (line.includes(CR)) this.#fail("a line has a CR in its middle");
    return textOf(line);
  }

  #integer(bytes: Uint8Array, start: number, end: number): number | bigint {
    const negative = bytes[start] === MINUS;
    const first = negative || bytes[start] === PLUS ? start + 1 : start;
    const magnitude = this.#digits(bytes, first, end);
    if (magnitude <= Number.MAX_SAFE_INTEGER) {
      return negative && magnitude !== 0 ? -magnitude : magnitude;
    }
    // BigInt() of a line full of digits would take milliseconds.
    const exact = BigInt(magnitude > INT65 ? INT65 : textOf(bytes.subarray(start, end)));
    if (BigInt.asIntN(64, exact) !== exact) this.#fail("an integer has more than 64 bits");
    return exact;
  }

  /** Parses a length up to `most`; -1 stands for null. */
  #length(bytes: Uint8Array, start: number, end: number, most: number): number {
    if (end - start === 2 && bytes[start] === MINUS && bytes[start + 1] === ZERO + 1) return -1;
    const length = this.#digits(bytes, start, end);
    if (length > most) this.#fail(`a length is more than ${most}`);
    return length;
  }

  /**
   * Parses digits. The result is exact up to 2^53; a greater number may be rounded, but stays above
   * 2^53.
   */
  #digits(bytes: Uint8Array, start: number, end: number): number {
    if (start >= end) this.#fail("a number has no digits");
    let number = 0;
    for (let index = start; index < end; index++) {
      const digit = bytes[index];
      if (digit < ZERO || digit > NINE) this.#fail("a number has a byte that is not a digit");
      number = number * 10 + (digit - ZERO); // adding the digit's code first would round near 2^53
    }
    return number;
  }

  /**
   * Counts bytes of an array. Other replies need no count: a line is short, and a bulk string
   * states its length.
   */
  #count(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > this.#bytesMax) {
      this.#fail(`a reply has more than ${this.#bytesMax} bytes`);
    }
  }

  #openBulk(length: number): void {
    if (length === -1) return this.#complete(null);
    if (this.#array) this.#count(length);
    this.#bulkLength = length;
    this.#kept = new Uint8Array(Math.min(length, BULK_BYTES_FIRST));
  }

  /**
   * Reads what this chunk has of a bulk string and of the CR LF behind it; returns the index behind
   * it.
   */
  #takeBulk(chunk: Uint8Array, from: number, length: number): number {
    let at = from;
    const missing = this.#bulkLength - this.#keptLength;
    if (missing > 0) {
      at = Math.min(from + missing, length);
      this.#keep(chunk.subarray(from, at), this.#bulkLength);
    }
    // CR and LF count as bytes of the string here, because they too may arrive one by one.
    while (at < length && this.#keptLength >= this.#bulkLength) {
      const expected = this.#keptLength === this.#bulkLength ? CR : LF;
      if (chunk[at++] !== expected) this.#fail("a bulk string does not end in CR LF");
      if (++this.#keptLength < this.#bulkLength + 2) continue;
      const bulk = this.#kept;
      this.#kept = NO_BYTES;
      this.#keptLength = 0;
      this.#bulkLength = -1;
      this.#complete(bulk);
      break;
    }
    return at;
  }

  #openArray(length: number): void {
    if (length === -1) return this.#complete(null);
    if (length === 0) return this.#complete([]);
    const depth = (this.#array?.depth ?? 0) + 1;
    if (depth > NESTING_MAX) this.#fail(`arrays are nested deeper than ${NESTING_MAX}`);
    // The elements count before they arrive: the reply is too long anyway.
    this.#elements += length;
    if (this.#elements > this.#elementsMax) {
      this.#fail(`a reply has more than ${this.#elementsMax} elements`);
    }
    this.#array = { items: [], remaining: length, parent: this.#array, depth };
  }

  /** Apart, because a closure costs the function that has it memory, even where it is not made. */
  #errorOf(text: string): ReplyError {
    return stackless(() => new ReplyError(text, this.#secrets));
  }

  /**
   * Appends a complete value to the innermost incomplete array, or passes it to `onReply` if no
   * array is open.
   */
  #complete(value: RawReply): void {
    let complete = value;
    for (let array = this.#array; array; array = this.#array) {
      this.elementsDecoded++;
      array.items.push(complete);
      if (--array.remaining > 0) return;
      complete = array.items;
      this.#array = array.parent;
    }
    this.#bytes = this.#elements = 0;
    this.#onReply(complete);
  }

  #fail(reason: string): never {
    throw new ProtocolError(`Cannot read reply as ${reason}`);
  }
}
