/**
 * Times that tests on real servers and real clocks share.
 *
 * @module
 */

/** What a busy machine may add to a time: far less than what a test that fails would wait for. */
export const SLACK_MS = 4_000;

/**
 * Within what a call that was woken has its lock: the idle question of the first in the queue comes later, and so does
 * everything that polls.
 */
export const WOKEN_WITHIN_MS = 1_000;

/** A drift allowance that leaves a noisy machine room between the end of the validity and the TTL. */
export const AMPLE_DRIFT = 0.25;

/** A TTL that no test outlives: what is gone was deleted. */
export const TTL_MS = 60_000;

/** How long a client may wait for one node: so long that a test notices if it does. */
export const LONG_NODE_TIMEOUT_MS = 20_000;
