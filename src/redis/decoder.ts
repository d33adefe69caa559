/**
 * From bytes to *frames*: an incremental RESP2 parser that is pushed chunks and never waits.
 *
 * "Not complete yet" is an ordinary state, kept between chunks, and distinct from "malformed", which is a
 * {@linkcode ProtocolError}. Every byte is looked at once, however the stream is cut: a line that is not
 * complete is kept with what was scanned of it, and a bulk string is copied straight to where it belongs.
 * Bulk strings are taken by length and never searched, so that one that looks like a reply stays a string.
 *
 * @module
 */
import { ProtocolError, ReplyError } from "./errors.ts";
import type { RawReply } from "./reply.ts";

/** Longest bulk string in bytes; a server's own limit (`proto-max-bulk-len`) is the same by default. */
export const BULK_BYTES_MAX = 512 * 1024 * 1024;
/** Longest line in bytes: a simple string, an error, an integer or a length. */
export const LINE_BYTES_MAX = 64 * 1024;
/** Most elements of one array. */
export const ARRAY_LENGTH_MAX = 1024 * 1024;
/** Deepest nesting of arrays. */
export const NESTING_MAX = 32;

/** Room first made for a bulk string that comes in pieces: a length that lies costs no more than this. */
const BULK_BYTES_FIRST = 64 * 1024;
/** Digits that always fit into a safe integer. */
const SAFE_DIGITS = 15;
const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;

const CR = 13, LF = 10, PLUS = 43, MINUS = 45, COLON = 58, DOLLAR = 36, ASTERISK = 42;
const ZERO = 48, NINE = 57, LETTER_O = 79, LETTER_K = 75;

/** An array whose elements are still coming. */
interface OpenArray {
  readonly items: RawReply[];
  remaining: number;
  readonly parent: OpenArray | undefined;
  readonly depth: number;
}

/** An incremental parser of one server's replies. */
export class RespDecoder {
  readonly #onReply: (reply: RawReply) => void;
  readonly #text = new TextDecoder("utf-8", { ignoreBOM: true });
  /** The beginning of a line whose end has not come. */
  #line: Uint8Array = new Uint8Array(64);
  #lineLength = 0;
  /** The bulk string that is coming, and how much of it has come; `#bulkLength` is -1 outside of one. */
  #bulk: Uint8Array = new Uint8Array(0);
  #bulkLength = -1;
  #bulkFilled = 0;
  #array: OpenArray | undefined = undefined;
  #failure: ProtocolError | undefined = undefined;

  /** @param onReply Called for each complete reply, in order, within {@linkcode push}. */
  constructor(onReply: (reply: RawReply) => void) {
    this.#onReply = onReply;
  }

  /** Whether the stream stands between two replies: where it may end without a loss. */
  get idle(): boolean {
    return this.#lineLength === 0 && this.#bulkLength === -1 && this.#array === undefined;
  }

  /**
   * Takes in the next bytes of the stream and hands over every reply that they complete. The bytes are not
   * kept: the caller may use `chunk` again.
   *
   * @param chunk Where the bytes are.
   * @param length How many of them, from the start; all by default.
   * @throws {ProtocolError} If the bytes are no RESP2; from then on always the same error.
   */
  push(chunk: Uint8Array, length = chunk.length): void {
    if (this.#failure) throw this.#failure;
    let at = 0;
    while (at < length) {
      at = this.#bulkLength >= 0
        ? this.#takeBulk(chunk, at, length)
        : this.#takeLine(chunk, at, length);
    }
  }

  /** Takes one line that begins at `from`, or the part of it that is there; returns where it stopped. */
  #takeLine(chunk: Uint8Array, from: number, length: number): number {
    let end = from;
    while (end < length && chunk[end] !== LF) end++;
    if (end === length) {
      this.#keepLine(chunk, from, end);
      return end;
    }
    if (this.#lineLength > 0) {
      this.#keepLine(chunk, from, end);
      const lineLength = this.#lineLength;
      this.#lineLength = 0;
      this.#parseLine(this.#line, 0, lineLength);
    } else {
      this.#parseLine(chunk, from, end);
    }
    return end + 1;
  }

  #keepLine(chunk: Uint8Array, from: number, end: number): void {
    const needed = this.#lineLength + end - from;
    if (needed > LINE_BYTES_MAX + 1) this.#fail(`a line is longer than ${LINE_BYTES_MAX} bytes`);
    if (needed > this.#line.length) {
      const grown = new Uint8Array(Math.max(needed, this.#line.length * 2));
      grown.set(this.#line.subarray(0, this.#lineLength));
      this.#line = grown;
    }
    this.#line.set(chunk.subarray(from, end), this.#lineLength);
    this.#lineLength = needed;
  }

  /** Reads the line in `bytes` from `start` up to its LF at `end`. */
  #parseLine(bytes: Uint8Array, start: number, end: number): void {
    const last = end - 1; // the CR
    if (last - start > LINE_BYTES_MAX) this.#fail(`a line is longer than ${LINE_BYTES_MAX} bytes`);
    if (last <= start || bytes[last] !== CR) this.#fail("a line does not end in CR LF");
    switch (bytes[start]) {
      case PLUS:
        if (last - start === 3 && bytes[start + 1] === LETTER_O && bytes[start + 2] === LETTER_K) {
          return this.#complete("OK");
        }
        return this.#complete(this.#lineText(bytes, start + 1, last));
      case COLON:
        return this.#complete(this.#integer(bytes, start + 1, last));
      case DOLLAR:
        return this.#openBulk(this.#length(bytes, start + 1, last, BULK_BYTES_MAX));
      case MINUS:
        return this.#complete(new ReplyError(this.#lineText(bytes, start + 1, last)));
      case ASTERISK:
        return this.#openArray(this.#length(bytes, start + 1, last, ARRAY_LENGTH_MAX));
      default:
        this.#fail(`a reply begins with byte ${bytes[start]}`);
    }
  }

  #lineText(bytes: Uint8Array, start: number, end: number): string {
    const line = bytes.subarray(start, end);
    if (line.includes(CR)) this.#fail("a line has a CR in its middle");
    return this.#text.decode(line);
  }

  #integer(bytes: Uint8Array, start: number, end: number): number | bigint {
    const negative = bytes[start] === MINUS;
    const first = negative || bytes[start] === PLUS ? start + 1 : start;
    const magnitude = this.#digits(bytes, first, end);
    if (typeof magnitude === "number") return negative && magnitude !== 0 ? -magnitude : magnitude;
    const exact = negative ? -magnitude : magnitude;
    if (exact < INT64_MIN || exact > INT64_MAX) this.#fail("an integer has more than 64 bits");
    return exact >= Number.MIN_SAFE_INTEGER && exact <= Number.MAX_SAFE_INTEGER
      ? Number(exact)
      : exact;
  }

  /** Reads a length up to `most`; -1 stands for null. */
  #length(bytes: Uint8Array, start: number, end: number, most: number): number {
    if (end - start === 2 && bytes[start] === MINUS && bytes[start + 1] === ZERO + 1) return -1;
    const length = this.#digits(bytes, start, end);
    if (length > most) this.#fail(`a length is more than ${most}`);
    return Number(length);
  }

  #digits(bytes: Uint8Array, start: number, end: number): number | bigint {
    if (start >= end) this.#fail("a number has no digits");
    let number = 0;
    for (let index = start; index < end; index++) {
      const digit = bytes[index];
      if (digit < ZERO || digit > NINE) this.#fail("a number has a byte that is no digit");
      number = number * 10 + digit - ZERO;
    }
    if (end - start <= SAFE_DIGITS) return number;
    return BigInt(this.#text.decode(bytes.subarray(start, end)));
  }

  #openBulk(length: number): void {
    if (length === -1) return this.#complete(null);
    this.#bulkLength = length;
    this.#bulkFilled = 0;
    this.#bulk = new Uint8Array(Math.min(length, BULK_BYTES_FIRST));
  }

  /** Takes what is there of a bulk string and of the CR LF behind it; returns where it stopped. */
  #takeBulk(chunk: Uint8Array, from: number, length: number): number {
    let at = from;
    const missing = this.#bulkLength - this.#bulkFilled;
    if (missing > 0) {
      const taken = Math.min(missing, length - at);
      this.#growBulk(this.#bulkFilled + taken);
      this.#bulk.set(chunk.subarray(at, at + taken), this.#bulkFilled);
      this.#bulkFilled += taken;
      at += taken;
    }
    // The two bytes behind the string are counted on, so that they too may come one by one.
    while (at < length && this.#bulkFilled >= this.#bulkLength) {
      const expected = this.#bulkFilled === this.#bulkLength ? CR : LF;
      if (chunk[at++] !== expected) this.#fail("a bulk string does not end in CR LF");
      if (++this.#bulkFilled < this.#bulkLength + 2) continue;
      const bulk = this.#bulk;
      this.#bulk = new Uint8Array(0);
      this.#bulkLength = -1;
      this.#complete(bulk);
      break;
    }
    return at;
  }

  /** Makes room for `needed` bytes: doubled each time, so that copying stays linear. */
  #growBulk(needed: number): void {
    if (needed <= this.#bulk.length) return;
    const grown = new Uint8Array(
      Math.min(Math.max(needed, this.#bulk.length * 2), this.#bulkLength),
    );
    grown.set(this.#bulk.subarray(0, this.#bulkFilled));
    this.#bulk = grown;
  }

  #openArray(length: number): void {
    if (length === -1) return this.#complete(null);
    if (length === 0) return this.#complete([]);
    const depth = (this.#array?.depth ?? 0) + 1;
    if (depth > NESTING_MAX) this.#fail(`arrays are nested deeper than ${NESTING_MAX}`);
    this.#array = { items: [], remaining: length, parent: this.#array, depth };
  }

  /** Puts a complete value where it belongs: into the array that is open, or into the caller's hands. */
  #complete(value: RawReply): void {
    let complete = value;
    for (let array = this.#array; array; array = this.#array) {
      array.items.push(complete);
      if (--array.remaining > 0) return;
      complete = array.items;
      this.#array = array.parent;
    }
    this.#onReply(complete);
  }

  #fail(reason: string): never {
    this.#failure = new ProtocolError(`Cannot read reply as ${reason}`);
    throw this.#failure;
  }
}
