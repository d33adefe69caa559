/**
 * The arithmetic of validity, as in "The Redlock algorithm" of the Redis page on distributed locks.
 *
 * @module
 */

/**
 * Milliseconds of drift in addition to the factor, because Redis expires keys with a precision of 1
 * ms.
 */
const DRIFT_ALLOWANCE_MS = 2;
/** Share of the validity by which the holder is notified before its end. */
const EXPIRY_MARGIN_FACTOR = 0.05;
/** The least margin in milliseconds, because timers count whole milliseconds. */
const EXPIRY_MARGIN_MS_MIN = 2;
/** The greatest margin in milliseconds. */
const EXPIRY_MARGIN_MS_MAX = 25;

/**
 * The greatest difference between clocks after one TTL: `ceil(ttlMs × driftFactor) + 2`.
 *
 * @param ttlMs How long the key lives on a node, in milliseconds.
 * @param driftFactor The share by which clocks may run apart.
 * @returns Milliseconds.
 */
export function driftMs(ttlMs: number, driftFactor: number): number {
  return Math.ceil(ttlMs * driftFactor) + DRIFT_ALLOWANCE_MS;
}

/**
 * How long a lock is valid, counted from before its first byte was sent: TTL less drift.
 *
 * @param ttlMs How long the key lives on a node, in milliseconds.
 * @param driftFactor The share by which clocks may run apart.
 * @returns Milliseconds; not positive if the TTL is smaller than its own drift.
 */
export function validityMs(ttlMs: number, driftFactor: number): number {
  // mutation: validity-without-drift
  return ttlMs - driftMs(ttlMs, driftFactor);
}

/**
 * How long before the end of the validity the holder is notified, because a timer may fire late.
 *
 * @param validityMs The whole validity, in milliseconds.
 * @returns Milliseconds.
 */
export function expiryMarginMs(validityMs: number): number {
  // mutation: short-lock-without-margin
  const marginMs = Math.max(validityMs * EXPIRY_MARGIN_FACTOR, EXPIRY_MARGIN_MS_MIN);
  // mutation: no-expiry-margin
  return Math.min(marginMs, EXPIRY_MARGIN_MS_MAX, validityMs / 2);
}
