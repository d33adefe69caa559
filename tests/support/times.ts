/** Times that tests on real servers and real clocks share. */

/** What a busy machine may add to a time: far less than what a test that fails would wait for. */
export const SLACK_MS = 4_000;

/** How long a busy machine may stand still in the middle of a test. */
const STALL_MS = 2_000;

/**
 * The TTL of a lock that is extended by itself: after a third of it, so that two thirds outlast a
 * stall.
 */
export const KEPT_TTL_MS = 2 * STALL_MS;

/** A TTL that no test outlives: what is gone was deleted. */
export const TTL_MS = 60_000;

/** How long a client may wait for one node: so long that a test notices if it does. */
export const LONG_NODE_TIMEOUT_MS = 20_000;
