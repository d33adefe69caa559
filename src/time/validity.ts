/**
 * The arithmetic of validity, as in "The Redlock algorithm" of the Redis page on distributed locks.
 *
 * @module
 */

/** Milliseconds of drift that are granted beside the factor: Redis expires keys with 1 ms precision. */
const DRIFT_ALLOWANCE_MS = 2;
/** Share of the validity by which its end is brought forward for whoever must hear of it in time. */
const EXPIRY_MARGIN_FACTOR = 0.05;
/** The least by which it is brought forward, in milliseconds: timers are set and fire by whole milliseconds. */
const EXPIRY_MARGIN_MIN_MS = 2;
/** The most by which it is brought forward, in milliseconds. */
const EXPIRY_MARGIN_MAX_MS = 25;

/**
 * How far clocks may disagree over one TTL: `ceil(ttlMs × driftFactor) + 2`.
 *
 * @param ttlMs How long the key lives on a node, in milliseconds.
 * @param driftFactor The share by which clocks may run apart.
 * @returns Milliseconds.
 */
export function driftMs(ttlMs: number, driftFactor: number): number {
  return Math.ceil(ttlMs * driftFactor) + DRIFT_ALLOWANCE_MS;
}

/**
 * How long a lock may be relied on, counted from before its first byte was sent: TTL less drift.
 *
 * @param ttlMs How long the key lives on a node, in milliseconds.
 * @param driftFactor The share by which clocks may run apart.
 * @returns Milliseconds; not positive where the TTL is smaller than its own drift.
 */
export function validityMs(ttlMs: number, driftFactor: number): number {
  return ttlMs - driftMs(ttlMs, driftFactor);
}

/**
 * How long before its end a lock's holder is told that it is over. A timer may fire late, and whoever is told
 * at the last moment is told too late.
 *
 * @param validityMs The whole validity, in milliseconds.
 * @returns Milliseconds.
 */
export function expiryMarginMs(validityMs: number): number {
  const marginMs = Math.max(validityMs * EXPIRY_MARGIN_FACTOR, EXPIRY_MARGIN_MIN_MS);
  return Math.min(marginMs, EXPIRY_MARGIN_MAX_MS, validityMs / 2);
}
