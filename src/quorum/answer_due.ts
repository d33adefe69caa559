/**
 * When a node's time for an answer is over.
 *
 * @module
 */
import type { QuorumNode } from "./quorum_node.ts";

/**
 * Longest time, in milliseconds, that any question waits for a node's first connection, because a node of somebody else's
 * may never become ready.
 */
export const CONNECTING_MS_MAX = 60_000;

/**
 * When a node's time for an answer is over: `timeoutMs` after the question, or after the end of its first connecting.
 *
 * @param node The node.
 * @param startMs When it was asked, by the monotonic clock.
 * @param timeoutMs How long it may take, in milliseconds.
 * @param connectingMs How long its first connecting may take, in milliseconds; 0 or less for no more time.
 */
export function answerDueMs(
  node: Pick<QuorumNode, "readyAtMs">,
  startMs: number,
  timeoutMs: number,
  connectingMs: number,
): number {
  const { readyAtMs = 0 } = node;
  const limitMs = startMs + Math.min(connectingMs, CONNECTING_MS_MAX);
  if (readyAtMs > limitMs) return Math.max(limitMs, startMs + timeoutMs); // not ready in time: no answer is due
  return Math.max(readyAtMs, startMs) + timeoutMs;
}
