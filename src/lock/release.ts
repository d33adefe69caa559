/**
 * Having nodes delete keys: the release of a lock, and taking back what a round may have set,
 * without waiting for it (step 5 of the argument in `acquire.ts`).
 *
 * @module
 */
import { type QuorumRequest, UNREAD } from "../quorum/quorum_node.ts";
import type { Round } from "../quorum/round.ts";

/**
 * Undoes an attempt that did not become a lock: its keys are deleted, or, if it is an adoption, get
 * their former value back. Its caller keeps waiting in the queues.
 */
export function undoAttempt(attempt: Round): void {
  const { ticket } = attempt;
  const pool = ticket && attempt.pool; // only a ticket is about the other keys, too
  // mutation: failed-adoption-deletes
  const replaces = attempt.replaces;
  takeBack(attempt, attempt.follow({ ticket, keepsTicket: true, pool, replaces }));
}

/**
 * Has every node release what a round may have set, after everything that it was sent before.
 * Nobody waits for the answers; a node that cannot be reached now is asked when it is back. Left
 * out is a node where nothing may be set: it denied, or got nothing of the round.
 *
 * @param round The round that may have set keys; nothing more is sent for it that could set one.
 * @param release The request.
 */
export function takeBack(round: Round, release: QuorumRequest): void {
  round.cancel();
  round.nodeSet.nodes.forEach((node, nodeIndex) => {
    // mutation: undo-spares-no-node
    // mutation: undo-spares-what-may-be-set
    if (!round.mayHaveKeys(nodeIndex)) return;
    node.ask("release", release, nodeIndex);
    release.ticket?.onPutBack(nodeIndex);
  });
}

/**
 * What has the nodes delete the keys of a lock, and take the ticket out of their queues. A lock of
 * a pool, in shared mode, or whose keys may live on has left the queues when it was won.
 *
 * @param won The round that won the lock.
 * @param atLeastMs For how long the keys are to live at least since that round began, in
 * milliseconds. How long that is yet, each node finds out when it is asked.
 */
export function releaseOf(won: Round, atLeastMs: number): Round {
  const { ticket, pool, mode } = won;
  // mutation: at-least-is-forgotten
  if (atLeastMs > 0) return won.follow({ keptMs: () => atLeastMs - won.ageMs });
  return won.follow(ticket && !pool && !mode ? { ticket } : undefined);
}

/**
 * Has nodes delete the value that an adoption replaces, which no handle has; but for those that
 * have replaced it, unless the adoption was undone. Nodes that cannot be reached are asked when
 * they are back, until the TTL of the adoption is over.
 *
 * @param adoption The round of the adoption.
 */
export function deleteFormer(adoption: Round): void {
  const { nodeSet: { nodes }, keys, ttlMs, replaces, wanted } = adoption;
  const request = { ...UNREAD, keys, value: replaces!, ttlMs };
  // A node that hung may run these in this order, and keep the old value: the adoption, which it
  // denies; this request, which finds nothing; the giver's acquisition, from another connection.
  // So one that denies the adoption is asked again.
  adoption.onDenied = (nodeIndex) => nodes[nodeIndex].ask("release", request, nodeIndex);
  nodes.forEach((node, nodeIndex) => {
    if (wanted && adoption.voteOf(nodeIndex) === "granted") return;
    node.ask("release", request, nodeIndex);
  });
}
