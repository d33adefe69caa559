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

/** Within what time each of many asks once, for the first time and at most, in milliseconds. */
export type Spread = Pick<Settings, "retryDelayMs" | "retryDelayMaxMs">;

/** The spreads of those that all have the same reason to ask; that of those that poll is set. */
export const SPREADS = {
  /** A quorum of nodes can notify them again. */
  recovery: { retryDelayMs: 50, retryDelayMaxMs: 60_000 },
  /** Nodes can notify them that could not, and a quorum of others could. */
  join: { retryDelayMs: 1_000, retryDelayMaxMs: 60_000 },
  /** Readers let them enter beside them, but when they last asked, another key was in the way. */
  entry: { retryDelayMs: 10, retryDelayMaxMs: 250 },
} satisfies Record<string, Spread>;

/** How long one of many waits before it asks, in milliseconds; `times` counts from 0. */
export function spreadMs(wheel: TimerWheel, spread: Spread, times: number): number {
  const { retryDelayMs, retryDelayMaxMs } = spread;
  return backoffMs(times, retryDelayMs, retryDelayMaxMs, wheel.random.fraction());
}
