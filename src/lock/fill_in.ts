/**
 * Setting a held lock's keys again on a node that lost them.
 *
 * @module
 */
import { type QuorumRequest, UNREAD } from "../quorum/quorum_node.ts";
import type { Round } from "../quorum/round.ts";

/**
 * Asks one node to set the keys, if nobody else has one of them. A lock would erode otherwise as nodes restart one by
 * one. The answer counts for nothing: the node counts from the next extension on. A node that lost only some of several
 * keys denies, and stays without them.
 *
 * @param won The round that won the lock. Its release takes these keys back as well.
 * @param ttlMs How long the keys are to live, in milliseconds.
 * @param nodeIndex Which node.
 * @param token The fencing token, if the nodes count: the node's counter is raised to it.
 */
export function fillIn(won: Round, ttlMs: number, nodeIndex: number, token?: number): void {
  const node = won.nodeSet.nodes[nodeIndex];
  // mutation: filled-in-key-forgotten
  won.tally.filledInOn |= 1 << nodeIndex;
  node.acquire(requestOf(won, ttlMs), nodeIndex);
  if (token === undefined) return;
  node.raiseCounters!(requestOf(won, ttlMs, token), nodeIndex);
}

/** A request that belongs to the round that won the lock. */
function requestOf(won: Round, ttlMs: number, token?: number): QuorumRequest {
  const { keys, value, mode } = won;
  return {
    ...UNREAD,
    keys,
    value,
    ttlMs,
    mode,
    counterFloor: token,
    entersAtOnce: true,
    /** Whether the lock is not over: a command that takes the keys back may be on its way then. */
    get wanted() {
      return won.wanted;
    },
  };
}
