/**
 * How long to wait before trying again: random delays that grow, so that those who failed together
 * do not come back together.
 *
 * @module
 */
import type { Random } from "./random.ts";

/**
 * Doublings after which any delay has long reached its limit, and before which no number overflows.
 */
const DOUBLINGS_MAX = 32;

/** How delays grow. The settings of a call that polls are one of these. */
export interface Backoff {
  /** The first limit of a delay, in milliseconds. */
  readonly retryDelayMs: number;
  /** The highest limit, in milliseconds. */
  readonly retryDelayMaxMs: number;
  /** Which share of the limit is random; all of it if missing. */
  readonly jitter?: number;
}

/**
 * That of a server that was lost, or refuses for the moment. A second, so that one that is back
 * just before a TTL of two ends is noticed in time; a thousand clients then ask a dead server 1 300
 * times a second.
 */
export const SERVER_BACKOFF: Backoff = { retryDelayMs: 50, retryDelayMaxMs: 1_000, jitter: 0.5 };

/**
 * A random delay of which the limit doubles each time.
 *
 * @param random Draws it.
 * @param times How often the caller has waited before, from 0.
 * @returns Milliseconds.
 */
export function backoffMs(random: Random, backoff: Backoff, times: number): number {
  const { retryDelayMs, retryDelayMaxMs, jitter = 1 } = backoff;
  const limitMs = Math.min(retryDelayMaxMs, retryDelayMs * 2 ** Math.min(times, DOUBLINGS_MAX));
  return limitMs * (1 - jitter * (1 - random.fraction()));
}
