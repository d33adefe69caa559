/**
 * Randomness behind an interface: the only module that uses the generators of the runtime.
 *
 * @module
 */

/** Random bytes of a lock's value: as many as the Redis page on distributed locks recommends. */
const VALUE_BYTES = 20;
/**
 * Values made from one call of the generator, because one call per lock would cost more than the
 * lock's own logic.
 */
const VALUES_POOLED = 512;

/** The source of randomness for the library; simulations replace it by a seeded one. */
export interface Random {
  /**
   * A value that no other client has: 20 random bytes as 40 lower-case hexadecimal digits.
   *
   * @param suffix ASCII text that follows them.
   */
  value(suffix?: string): string;
  /** A number from 0 up to but not including 1, for jitter. */
  fraction(): number;
}

/** Character codes of the hexadecimal digits. */
const DIGITS = Array.from("0123456789abcdef", (digit) => digit.charCodeAt(0));
const pool = new Uint8Array(VALUE_BYTES * VALUES_POOLED);
const codes: number[] = new Array(VALUE_BYTES * 2).fill(0);
/** What the character codes end with. */
let ending = "";
let used = pool.length;

function value(suffix = ""): string {
  if (suffix !== ending) {
    codes.length = VALUE_BYTES * 2;
    for (let index = 0; index < suffix.length; index++) codes.push(suffix.charCodeAt(index));
    ending = suffix;
  }
  if (used === pool.length) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  for (let index = 0; index < VALUE_BYTES; index++) {
    const byte = pool[used++];
    codes[2 * index] = DIGITS[byte >> 4];
    codes[2 * index + 1] = DIGITS[byte & 15];
  }
  // One flat string: forty joined pieces would weigh ten times as much. Not by a spread call: with
  // that, a lock takes a client in Bun about a tenth more CPU.
  return String.fromCharCode.apply(null, codes);
}

/** The runtime's cryptographic generator for values, and a fast one for jitter. */
export const systemRandom: Random = { value, fraction: () => Math.random() };
