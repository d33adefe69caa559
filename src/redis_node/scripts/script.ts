/**
 * A Lua script as a node is sent it, and the helper that joins its parts.
 *
 * @module
 */

/** A script and the name it is called by. */
export interface Script {
  /** The Lua source. */
  readonly source: string;
  /** The SHA-1 of the source, in lower-case hexadecimal digits. */
  readonly sha1: string;
}

/** Joins the parts of a script. The numbers in them are those above, which a test holds them to. */
export function lua(...parts: readonly string[]): string {
  return parts.join("");
}
