/**
 * Integers as Redis reads them: 64 bits, signed, in canonical form.
 *
 * @module
 */
import { CommandError } from "../server/replies.ts";

const CANONICAL = /^(?:0|-?[1-9]\d*)$/u;
/** The greatest integer. */
export const INT64_MAX = 2n ** 63n - 1n;
/** The least integer. */
export const INT64_MIN = -(2n ** 63n);

/** Integers of so many characters are safe. */
const SAFE_LENGTH = 15;

/**
 * Reads an integer as {@linkcode parseInteger} does, as a number: one that is not safe is rounded.
 */
export function parseNumber(text: string): number {
  const isShort = text.length <= SAFE_LENGTH && CANONICAL.test(text);
  return isShort ? Number(text) : Number(parseInteger(text));
}

/**
 * Reads an integer: no leading zero, no `+`, no space.
 *
 * @param text The digits.
 * @returns The integer.
 * @throws {CommandError} If it is not an integer, or has more than 64 bits.
 */
export function parseInteger(text: string): bigint {
  if (text.length <= 20 && CANONICAL.test(text)) {
    const integer = BigInt(text);
    if (integer >= INT64_MIN && integer <= INT64_MAX) return integer;
  }
  throw new CommandError("ERR value is not an integer or out of range");
}
