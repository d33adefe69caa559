/**
 * Taking back what a round may have set, without waiting for it (step 5 of the argument in `acquire.ts`).
 *
 * @module
 */
import { type QuorumRequest, UNREAD } from "../quorum/quorum_node.ts";
import type { Round } from "../quorum/round.ts";

/**
 * Asks every node to delete the keys that hold the round's value, after everything that it was sent before. Nobody waits
 * for the answers; a node that cannot be reached now is asked when it is back. Left out is a node that denied and where
 * nothing may be set: it answered a plain `SET NX`, or put the caller in its queue.
 *
 * @param round The round that may have set keys.
 * @param failed Whether it is an attempt that has failed, and not the round that won a lock: its caller keeps waiting in
 *   the queues, and keys that it has adopted get their former value back.
 */
export function undo(round: Round, failed = false): void {
  round.cancel(); // nothing more is sent that could set a key
  const { keys, value, ttlMs, ticket, pool, mode } = round;
  // mutation: failed-adoption-deletes
  const replaces = failed ? round.replaces : undefined;
  const request: QuorumRequest = {
    ...UNREAD,
    keys,
    value,
    ttlMs,
    ticket,
    pool,
    mode,
    keepsTicket: failed,
    replaces,
    maySet: (nodeIndex) => round.maySet(nodeIndex),
  };
  round.nodeSet.nodes.forEach((node, nodeIndex) => {
    // mutation: undo-spares-no-node
    // mutation: undo-spares-what-may-be-set
    if (round.tally.deniedBy(nodeIndex) && !round.maySet(nodeIndex)) return;
    node.release(request, nodeIndex);
  });
}
