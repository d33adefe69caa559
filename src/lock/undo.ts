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
 * @param keepsTicket Whether its caller keeps waiting in the queues.
 * @param replaces The value that the round's value replaced, and that the keys get back.
 */
export function undo(round: Round, keepsTicket = false, replaces?: string): void {
  round.cancel(); // nothing more is sent that could set a key
  const { keys, value, ttlMs, ticket, pool, mode } = round;
  // mutation: failed-adoption-deletes
  const givenBack = replaces;
  const request: QuorumRequest = {
    ...UNREAD,
    keys,
    value,
    ttlMs,
    ticket,
    pool,
    mode,
    keepsTicket,
    replaces: givenBack,
    maySet: (nodeIndex) => round.maySet(nodeIndex),
  };
  round.nodeSet.nodes.forEach((node, nodeIndex) => {
    // mutation: undo-spares-no-node
    // mutation: undo-spares-what-may-be-set
    if (round.tally.deniedBy(nodeIndex) && !round.maySet(nodeIndex)) return;
    node.release(request, nodeIndex);
  });
}
