/**
 * What a Lua script is to the client, and how its source is put together.
 *
 * @module
 */

/** A script, and the digest that `EVALSHA` calls it by. */
export interface Script {
  /** The Lua source. */
  readonly source: string;
  /** The SHA-1 of the source, in lower-case hexadecimal digits. */
  readonly sha1: string;
}

/** Joins the parts of a script. The numbers in them are repeated from constants; a test compares the two. */
export function lua(...parts: readonly string[]): string {
  return parts.join("");
}
