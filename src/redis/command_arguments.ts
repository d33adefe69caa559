/**
 * The arguments of commands that users of the client send.
 *
 * @module
 */
import { textOf } from "./reply.ts";

/**
 * The name or an argument of a command. Numbers must be safe integers; strings are encoded as
 * UTF-8.
 */
export type CommandArgument = string | number | bigint | Uint8Array;

/**
 * Commands after which a connection does not bring one reply of RESP2 for each command, with the
 * argument that decides; and `SELECT`, because the next connection would be to another database.
 */
const REFUSED =
  /^(?:[PS]?(?:UN)?SUBSCRIBE|MONITOR|P?SYNC|REPLCONF|RESET|SELECT|CLIENT REPLY|HELLO 3)(?= |$)/u;

/**
 * Checks a command, and writes its numbers as text.
 *
 * @param command The command's name and its arguments.
 * @throws {TypeError} If the command is empty, an argument is of another type.
 * @throws {RangeError} If a number is not a safe integer.
 */
export function commandArguments(command: readonly CommandArgument[]): (string | Uint8Array)[] {
  if (!Array.isArray(command) || command.length === 0) {
    throw new TypeError("Cannot encode command as it must be an array of at least one argument");
  }
  return Array.from(command, checkArgument); // `map` would skip holes
}

/**
 * Checks that a connection goes on to bring one reply for each command, from one database.
 *
 * @param args The command's name and its arguments.
 * @throws {TypeError} If the command ends that.
 */
export function checkReplies(args: readonly (string | Uint8Array)[]): void {
  const words = args.slice(0, 2).map((part) => typeof part === "string" ? part : textOf(part));
  const [refused] = REFUSED.exec(words.join(" ").toUpperCase()) ?? [];
  if (refused === undefined) return;
  const why = refused === "SELECT"
    ? "the next connection forgets it: name the database in the address"
    : "the replies behind it match no commands any more";
  throw new TypeError(`Cannot send ${refused} as ${why}`);
}

function checkArgument(argument: unknown): string | Uint8Array {
  if (typeof argument === "string" || argument instanceof Uint8Array) return argument;
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
