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

/** The first limit of a delay and the highest one, in milliseconds. */
export type BackoffLimits = Pick<Settings, "retryDelayMs" | "retryDelayMaxMs">;

/** Those of calls that all have the same reason to ask; for polling the options set them. */
export const BACKOFFS = {
  /** A quorum of nodes can notify them again. */
  recovery: { retryDelayMs: 50, retryDelayMaxMs: 60_000 },
  /** Nodes can notify them that could not, and a quorum of others could. */
  join: { retryDelayMs: 1_000, retryDelayMaxMs: 60_000 },
  /** Readers let them enter beside them, but when they last asked, another key was in the way. */
  entry: { retryDelayMs: 10, retryDelayMaxMs: 250 },
} satisfies Record<string, BackoffLimits>;

/**
 * Exponential back-off with full jitter: anything from 0 up to `retryDelayMs × 2^times`, but at
 * most `retryDelayMaxMs`. Contenders that were denied together are spread out, and do not split the
 * vote again.
 *
 * @param times How often the call has waited before, from 0.
 * @returns Milliseconds.
 */
export function backoffMs(wheel: TimerWheel, limits: BackoffLimits, times: number): number {
  const { retryDelayMs, retryDelayMaxMs } = limits;
  const limitMs = Math.min(retryDelayMaxMs, retryDelayMs * 2 ** Math.min(times, DOUBLINGS_MAX));
  return limitMs * wheel.random.fraction();
}
