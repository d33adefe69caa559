/**
 * When a node's time for an answer is over.
 *
 * @module
 */
import type { LockNode } from "./lock_node.ts";

/**
 * Longest time, in milliseconds, for which a node's time does not run because its first connection is being made. A
 * node that never becomes ready still times out.
 */
const CONNECTING_MS_MAX = 60_000;

/**
 * When a node's time for an answer is over: `timeoutMs` after the question, or after the end of its first connecting.
 *
 * @param node The node, which may be anybody's: what it answers here is not trusted.
 * @param startMs When it was asked, by the monotonic clock.
 * @param timeoutMs How long it may take, in milliseconds.
 */
export function answerDueMs(
  node: Pick<LockNode, "readyAtMs">,
  startMs: number,
  timeoutMs: number,
): number {
  let readyAtMs = 0;
  try {
    readyAtMs = node.readyAtMs ?? 0;
  } catch {
    // It cannot be asked, and gets no more time for that.
  }
  const sinceMs = readyAtMs > startMs ? Math.min(readyAtMs, startMs + CONNECTING_MS_MAX) : startMs;
  return sinceMs + timeoutMs;
}
