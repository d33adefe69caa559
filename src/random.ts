/**
 * Randomness, behind an interface: the only module that touches the runtime's generator.
 *
 * @module
 */

/** Bytes of randomness in a lock's value: what the Redis page on distributed locks asks for. */
const VALUE_BYTES = 20;
/** Values made from one call of the generator; a call a lock would cost more than the lock's own logic. */
const VALUES_POOLED = 64;

/** Where the library takes randomness from; replaced by a seeded one in simulations. */
export interface Random {
  /** A value no one else has: 20 random bytes as 40 lower-case hexadecimal digits. */
  value(): string;
  /** A number from 0 up to but not including 1, for jitter. */
  fraction(): number;
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
const pool = new Uint8Array(VALUE_BYTES * VALUES_POOLED);
let used = pool.length;

function value(): string {
  if (used === pool.length) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  let hex = "";
  for (const end = used + VALUE_BYTES; used < end; used++) hex += HEX[pool[used]];
  return hex;
}

/** The runtime's cryptographic generator for values; jitter needs none of its strength. */
export const systemRandom: Random = { value, fraction: () => Math.random() };
