/**
 * The arguments of commands that users of the client send.
 *
 * @module
 */

/** The name or an argument of a command. Numbers must be safe integers; strings are encoded as UTF-8. */
export type CommandArgument = string | number | bigint | Uint8Array;

/**
 * Checks a command, and writes its numbers as text.
 *
 * @param command The command's name and its arguments.
 * @throws {TypeError} If the command is empty or an argument is of another type.
 * @throws {RangeError} If a number is not a safe integer.
 */
export function commandArguments(command: readonly CommandArgument[]): (string | Uint8Array)[] {
  if (!Array.isArray(command) || command.length === 0) {
    throw new TypeError("Cannot encode command as it must be an array of at least one argument");
  }
  return command.map(checkArgument);
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
