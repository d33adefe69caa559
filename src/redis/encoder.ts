/**
 * Encodes a *command* into the bytes of RESP2.
 *
 * Commands are written one behind another into slabs of memory, and an encoded command is a view of its slab. The same
 * view is sent to every node. The commands of one tick are usually adjacent, so they are sent as one view without a
 * copy. Lengths count bytes of UTF-8.
 *
 * @module
 */

/** Bytes of one slab; a longer command gets its own. */
const SLAB_BYTES = 64 * 1024;
/** Longest head of a bulk string or of an array, in bytes: `$`, ten digits, CR LF. */
const HEAD_BYTES_MAX = 13;

const CR = 13, LF = 10, ASTERISK = 42, DOLLAR = 36, ZERO = 48;

const encoder = new TextEncoder();
let slab = new Uint8Array(SLAB_BYTES);
let used = 0;

/** Encodes a constant part of commands once. */
export function encodeConstant(text: string): Uint8Array {
  return encoder.encode(text);
}

/** Encodes the head of a command that has `length` arguments and begins with `words`. */
export function encodeHead(length: number, ...words: string[]): Uint8Array {
  const bulks = words.map((word) => `$${encoder.encode(word).length}\r\n${word}\r\n`);
  return encodeConstant(`*${length}\r\n${bulks.join("")}`);
}

/**
 * Encodes one command.
 *
 * @param args The command's name and its arguments.
 * @returns Its bytes, which must not be changed.
 */
export function encodeCommand(args: readonly (string | Uint8Array)[]): Uint8Array {
  const writer = new CommandWriter(args.reduce((total, argument) => total + bytesMax(argument), 0));
  writer.length(ASTERISK, args.length);
  for (const argument of args) {
    if (typeof argument === "string") writer.text(argument);
    else writer.bytes(argument);
  }
  return writer.end();
}

/** Writes one command into a slab, part by part; the memory for all of it is reserved before. */
export class CommandWriter {
  readonly #slab: Uint8Array<ArrayBuffer>;
  readonly #start: number;
  #at: number;

  /** @param bytesMax Most bytes that the command can have. */
  constructor(bytesMax: number) {
    const room = bytesMax + HEAD_BYTES_MAX;
    if (room > slab.length - used) {
      slab = new Uint8Array(Math.max(SLAB_BYTES, room));
      used = 0;
    }
    this.#slab = slab;
    this.#start = this.#at = used;
  }

  /** Writes a part that was encoded before. */
  constant(part: Uint8Array): this {
    this.#slab.set(part, this.#at);
    this.#at += part.length;
    return this;
  }

  /** Writes the line of a length: `$5` or `*3`. */
  length(mark: number, length: number): this {
    const digits = digitCount(length);
    this.#slab[this.#at] = mark;
    for (let digit = digits, rest = length; digit > 0; digit--, rest = Math.floor(rest / 10)) {
      this.#slab[this.#at + digit] = ZERO + rest % 10;
    }
    this.#at += 1 + digits;
    return this.#endLine();
  }

  /** Writes a string as a bulk string. */
  text(text: string): this {
    const before = this.#at;
    this.length(DOLLAR, text.length);
    const slab = this.#slab;
    let at = this.#at;
    for (let index = 0; index < text.length; index++) {
      const unit = text.charCodeAt(index);
      if (unit > 0x7f) {
        this.#at = before;
        return this.bytes(encoder.encode(text));
      }
      slab[at++] = unit;
    }
    this.#at = at;
    return this.#endLine();
  }

  /** Writes bytes as a bulk string. */
  bytes(bytes: Uint8Array): this {
    return this.length(DOLLAR, bytes.length).constant(bytes).#endLine();
  }

  /** Returns the whole command. */
  end(): Uint8Array {
    used = this.#at;
    return this.#slab.subarray(this.#start, this.#at);
  }

  #endLine(): this {
    this.#slab[this.#at++] = CR;
    this.#slab[this.#at++] = LF;
    return this;
  }
}

/** Most bytes that an argument can have as a bulk string, including its head and its end. */
export function bytesMax(argument: string | Uint8Array): number {
  return argument.length * (typeof argument === "string" ? 3 : 1) + HEAD_BYTES_MAX + 2;
}

/**
 * Joins encoded commands into one array of bytes, without a copy if they are adjacent in memory.
 *
 * @param commands At least one.
 */
export function joinCommands(commands: readonly Uint8Array[]): Uint8Array {
  const [first] = commands;
  if (commands.length === 1) return first;
  let end = first.byteOffset;
  for (const command of commands) {
    if (command.buffer !== first.buffer || command.byteOffset !== end) return copyOf(commands);
    end += command.length;
  }
  return new Uint8Array(first.buffer, first.byteOffset, end - first.byteOffset);
}

function copyOf(commands: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(commands.reduce((total, { length }) => total + length, 0));
  let offset = 0;
  for (const command of commands) {
    bytes.set(command, offset);
    offset += command.length;
  }
  return bytes;
}

function digitCount(number: number): number {
  let count = 1;
  for (let rest = number; rest >= 10; rest = Math.floor(rest / 10)) count++;
  return count;
}
