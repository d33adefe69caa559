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

/** Those that no option sets. */
export const BACKOFFS = {
  /** A server was lost. */
  server: { retryDelayMs: 50, retryDelayMaxMs: 2_000, jitter: 0.5 },
  /** A quorum of nodes can notify calls again. */
  recovery: { retryDelayMs: 50, retryDelayMaxMs: 60_000 },
  /** Nodes can notify calls that could not, and a quorum of others could. */
  join: { retryDelayMs: 1_000, retryDelayMaxMs: 60_000 },
  /**
   * Readers let calls enter beside them, but when they last asked, another key was in the way; or
   * nodes in quarantine notify them.
   */
  entry: { retryDelayMs: 10, retryDelayMaxMs: 250 },
} satisfies Record<string, Backoff>;

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
