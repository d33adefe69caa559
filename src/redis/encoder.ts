/**
 * From a *command* to the bytes of RESP2.
 *
 * A command that consists of text stays a JavaScript string until it is written: strings are cheap to join,
 * so that all commands of one tick become one string, one encoding and one write per node. Only a command
 * with a binary argument is encoded to bytes at once. Lengths always count bytes of UTF-8.
 *
 * @module
 */

/** What may stand in a command. Numbers must be safe integers. */
export type CommandArgument = string | number | bigint | Uint8Array;

/** One encoded command: text still to be turned into UTF-8, or bytes. */
export type EncodedCommand = string | Uint8Array;

const encoder = new TextEncoder();

/** How many bytes of UTF-8 `text` takes; a lone surrogate counts as U+FFFD, which is what gets written. */
export function utf8Length(text: string): number {
  for (let index = 0; index < text.length; index++) {
    if (text.charCodeAt(index) > 0x7f) return encoder.encode(text).length;
  }
  return text.length;
}

/** One argument as a bulk string: `$<bytes>\r\n<text>\r\n`. */
export function encodeBulk(text: string): string {
  return `$${utf8Length(text)}\r\n${text}\r\n`;
}

/** The constant head of a command of `length` arguments that begins with `words`. */
export function encodeHead(length: number, ...words: string[]): string {
  return `*${length}\r\n${words.map(encodeBulk).join("")}`;
}

/**
 * Encodes one command.
 *
 * @param command The command's name and its arguments.
 * @returns Text where every argument is text or a number, else bytes.
 * @throws {TypeError} If the command is empty or an argument is of another type.
 * @throws {RangeError} If a number is not a safe integer.
 */
export function encodeCommand(command: readonly CommandArgument[]): EncodedCommand {
  if (!Array.isArray(command) || command.length === 0) {
    throw new TypeError("Cannot encode command as it must be an array of at least one argument");
  }
  const parts: EncodedCommand[] = [`*${command.length}\r\n`];
  for (const argument of command) {
    if (argument instanceof Uint8Array) parts.push(`$${argument.length}\r\n`, argument, "\r\n");
    else parts.push(encodeBulk(argumentText(argument)));
  }
  return parts.every((part) => typeof part === "string") ? parts.join("") : concatenate(parts);
}

function argumentText(argument: unknown): string {
  if (typeof argument === "string") return argument;
  if (typeof argument === "bigint") return String(argument);
  if (typeof argument !== "number") {
    throw new TypeError(
      `Cannot encode command as its arguments must be strings, integers or Uint8Arrays: found ${
        argument === null ? "null" : typeof argument
      }`,
    );
  }
  if (!Number.isSafeInteger(argument)) {
    throw new RangeError(
      `Cannot encode command as its numbers must be safe integers: current value is ${argument}`,
    );
  }
  return String(argument);
}

/** Joins encoded parts into one run of bytes. */
export function concatenate(parts: readonly EncodedCommand[]): Uint8Array<ArrayBuffer> {
  const encoded = parts.map((part) => typeof part === "string" ? encoder.encode(part) : part);
  const bytes = new Uint8Array(encoded.reduce((total, part) => total + part.length, 0));
  let offset = 0;
  for (const part of encoded) {
    bytes.set(part, offset);
    offset += part.length;
  }
  return bytes;
}
