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
import { ProtocolError, stacklessReplyError } from "./errors.ts";
import type { RawReply } from "./reply.ts";

/** Most bytes of one reply by default: as many as one bulk string has at most by a server's own default. */
export const REPLY_BYTES_MAX = 512 * 1024 * 1024;
/** Most elements of one reply by default, those of nested arrays included. */
export const REPLY_ELEMENTS_MAX = 1024 * 1024;
/** Longest line in bytes: a simple string, an error, an integer or a length. */
export const LINE_BYTES_MAX = 64 * 1024;
/** Deepest nesting of arrays. */
export const NESTING_MAX = 32;

/** Room first made for a bulk string that comes in pieces: a length that lies costs no more than this. */
const BULK_BYTES_FIRST = 64 * 1024;
const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;
const UINT64_MAX = 2 ** 64;

const CR = 13, LF = 10, PLUS = 43, MINUS = 45, COLON = 58, DOLLAR = 36, ASTERISK = 42;
const ZERO = 48, NINE = 57, LETTER_O = 79, LETTER_K = 75;

/** An array whose elements are still coming. */
interface OpenArray {
  readonly items: RawReply[];
  remaining: number;
  readonly parent: OpenArray | undefined;
  readonly depth: number;
}

/** What one server may send. */
export interface DecoderOptions {
  /**
   * Most bytes of one reply.
   *
   * @default {536870912}
   */
  readonly replyBytesMax?: number;
  /**
   * Most elements of one reply, those of nested arrays included.
   *
   * @default {1048576}
   */
  readonly replyElementsMax?: number;
  /** Our password, which no error may show. */
  readonly password?: string;
}

/** An incremental parser of one server's replies. */
export class RespDecoder {
  readonly #onReply: (reply: RawReply) => void;
  readonly #bytesMax: number;
  readonly #elementsMax: number;
  readonly #password: string | undefined;
  readonly #text = new TextDecoder("utf-8", { ignoreBOM: true });
  /** The beginning of a line whose end has not come. */
  #line: Uint8Array = new Uint8Array(64);
  #lineLength = 0;
  /** The bulk string that is coming, and how much of it has come; `#bulkLength` is -1 outside of one. */
  #bulk: Uint8Array = new Uint8Array(0);
  #bulkLength = -1;
  #bulkFilled = 0;
  #array: OpenArray | undefined = undefined;
  /** Bytes and elements of the array that is coming. Bytes of a bulk string count once its length is known. */
  #bytes = 0;
  #elements = 0;
  #elementsDecoded = 0;
  #stopped = false;
  #failure: ProtocolError | undefined = undefined;

  /**
   * @param onReply Called for each complete reply, in order, within {@linkcode push}.
   * @param options What is accepted.
   */
  constructor(onReply: (reply: RawReply) => void, options: DecoderOptions = {}) {
    this.#onReply = onReply;
    this.#bytesMax = options.replyBytesMax ?? REPLY_BYTES_MAX;
    this.#elementsMax = options.replyElementsMax ?? REPLY_ELEMENTS_MAX;
    this.#password = options.password;
  }

  /** How many elements of arrays were decoded so far, in all replies. */
  get elementsDecoded(): number {
    return this.#elementsDecoded;
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
    while (at < length && !this.#stopped) {
      at = this.#bulkLength >= 0
        ? this.#takeBulk(chunk, at, length)
        : this.#takeLine(chunk, at, length);
    }
  }

  /** Decodes nothing more, also of the chunk that is being taken in. */
  stop(): void {
    this.#stopped = true;
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
      case MINUS: {
        const text = this.#lineText(bytes, start + 1, last);
        return this.#complete(stacklessReplyError(text, this.#password));
      }
      case ASTERISK:
        return this.#openArray(this.#length(bytes, start + 1, last, this.#elementsMax));
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
    if (magnitude <= Number.MAX_SAFE_INTEGER) {
      return negative && magnitude !== 0 ? -magnitude : magnitude;
    }
    // An absurd number is not worth reading exactly.
    if (magnitude > UINT64_MAX) this.#fail("an integer has more than 64 bits");
    const exact = BigInt(this.#text.decode(bytes.subarray(first, end)));
    if (exact > (negative ? -INT64_MIN : INT64_MAX)) this.#fail("an integer has more than 64 bits");
    return negative ? -exact : exact;
  }

  /** Reads a length up to `most`; -1 stands for null. */
  #length(bytes: Uint8Array, start: number, end: number, most: number): number {
    if (end - start === 2 && bytes[start] === MINUS && bytes[start + 1] === ZERO + 1) return -1;
    const length = this.#digits(bytes, start, end);
    if (length > most) this.#fail(`a length is more than ${most}`);
    return length;
  }

  /** The number that the digits stand for: exact up to 2^53, and above it if and only if they are. */
  #digits(bytes: Uint8Array, start: number, end: number): number {
    if (start >= end) this.#fail("a number has no digits");
    let number = 0;
    for (let index = start; index < end; index++) {
      const digit = bytes[index];
      if (digit < ZERO || digit > NINE) this.#fail("a number has a byte that is no digit");
      number = number * 10 + (digit - ZERO); // in this order every step is exact that can be
    }
    return number;
  }

  /** Counts bytes of the array that is coming; other replies are short, or say how long they are. */
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
    // Refused before they come: nobody waits for a reply that will be too long.
    this.#elements += length;
    if (this.#elements > this.#elementsMax) {
      this.#fail(`a reply has more than ${this.#elementsMax} elements`);
    }
    this.#array = { items: [], remaining: length, parent: this.#array, depth };
  }

  /** Puts a complete value where it belongs: into the array that is open, or into the caller's hands. */
  #complete(value: RawReply): void {
    let complete = value;
    for (let array = this.#array; array; array = this.#array) {
      this.#elementsDecoded++;
      array.items.push(complete);
      if (--array.remaining > 0) return;
      complete = array.items;
      this.#array = array.parent;
    }
    this.#bytes = this.#elements = 0;
    this.#onReply(complete);
  }

  #fail(reason: string): never {
    this.#failure = new ProtocolError(`Cannot read reply as ${reason}`);
    throw this.#failure;
  }
}
