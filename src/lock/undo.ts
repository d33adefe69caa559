/**
 * Taking back what a round may have set, without waiting for it (step 5 of the argument in `acquire.ts`).
 *
 * @module
 */
import { eachNode } from "../quorum/each_node.ts";
import type { LockRequest } from "../quorum/lock_node.ts";
import type { QueueTicket } from "../quorum/queue_ticket.ts";
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
  const request = new UndoRequest(round, keepsTicket, replaces);
  // If a node throws, its TTL takes over.
  eachNode(round.nodeSet.nodes, (node, nodeIndex): unknown => {
    // mutation: undo-spares-no-node
    // mutation: undo-spares-what-may-be-set
    if (round.deniedBy(nodeIndex) && !(round.maybeSet & 1 << nodeIndex)) return;
    return node.release(request, nodeIndex);
  });
}

/** A request whose answers nobody reads. */
class UndoRequest implements LockRequest {
  readonly keys: readonly string[];
  readonly value: string;
  readonly ttlMs: number;
  readonly wanted = true;
  maybeSet: number;
  shared: unknown = undefined;
  readonly ticket: QueueTicket | undefined;
  readonly keepsTicket: boolean;
  readonly replaces: string | undefined;

  constructor(round: Round, keepsTicket: boolean, replaces: string | undefined) {
    // mutation: failed-adoption-deletes
    this.replaces = replaces;
    this.ticket = round.ticket;
    this.keepsTicket = keepsTicket;
    this.keys = round.keys;
    this.value = round.value;
    this.ttlMs = round.ttlMs;
    this.maybeSet = round.maybeSet;
  }

  grant(): void {}
  deny(): void {}
  fail(): void {}
}
