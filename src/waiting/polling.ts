/**
 * Waiting by polling: attempts after jittered delays that grow.
 *
 * @module
 */
import type { Settings } from "../options.ts";
import type { TimerWheel } from "../time/timer_wheel.ts";

/**
 * Doublings after which any delay has long reached its limit, and before which no number overflows.
 */
const DOUBLINGS_MAX = 32;

/**
 * Exponential back-off with full jitter: anything from 0 up to `baseMs × 2^attempt`, but at most
 * `maxMs`. Contenders that were denied together are spread out, and do not split the vote again.
 *
 * @param attempt How many attempts failed before this delay, from 0.
 * @param baseMs The first limit, in milliseconds.
 * @param maxMs The highest limit, in milliseconds.
 * @param fraction A random number from 0 up to but not including 1.
 * @returns Milliseconds.
 */
export function backoffMs(
  attempt: number,
  baseMs: number,
  maxMs: number,
  fraction: number,
): number {
  return Math.min(maxMs, baseMs * 2 ** Math.min(attempt, DOUBLINGS_MAX)) * fraction;
}

/** How long a caller that polls waits before it asks again, in milliseconds. */
export function pollingDelayMs(wheel: TimerWheel, settings: Settings, attempt: number): number {
  const { retryDelayMs, retryDelayMaxMs } = settings;
  return backoffMs(attempt, retryDelayMs, retryDelayMaxMs, wheel.random.fraction());
}
