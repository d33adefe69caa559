/**
 * How long to wait before a server that was lost is tried again.
 *
 * @module
 */
import type { Random } from "./random.ts";

/** First delay, in milliseconds. */
const RETRY_DELAY_MS = 50;
/** Longest delay, in milliseconds. */
const RETRY_DELAY_MS_MAX = 2_000;

/**
 * A delay that doubles with each failure, with jitter down to one half: clients that lost a server
 * together do not come back together.
 *
 * @param random Draws the jitter.
 * @param failures How many attempts have failed in a row before.
 * @returns Milliseconds.
 */
export function retryDelayMs(random: Random, failures: number): number {
  const longestMs = Math.min(RETRY_DELAY_MS * 2 ** failures, RETRY_DELAY_MS_MAX);
  return longestMs * (1 + random.fraction()) / 2;
}
