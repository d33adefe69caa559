/**
 * Taking back what a round may have set, without waiting for it.
 *
 * @module
 */
import type { LockRequest } from "../quorum/lock_node.ts";
import type { QueueTicket } from "../quorum/queue_ticket.ts";
import type { Round } from "../quorum/round.ts";

/**
 * Takes back what a round may have set: compare-and-delete on every node, after whatever was sent before.
 * Nobody waits for the answers; a node that cannot be reached now is told when it is back. One that has put the caller
 * in line has said with that that it set nothing, unless an extension has filled the keys in since.
 *
 * @param round The round that set it.
 * @param latest The last round about the same lock, to spare the nodes that have answered it: what they were
 *   asked before, they have done.
 * @param stays Whether its caller waits on in line.
 */
export function undo(round: Round, latest?: Round, stays = false): void {
  round.cancel();
  const request = new UndoRequest(round, stays);
  round.nodeSet.nodes.forEach((node, nodeIndex) => {
    const spared = round.enqueuedOn & ~round.maybeSet & 1 << nodeIndex;
    if (spared || latest?.answeredBy(nodeIndex)) return;
    try {
      node.release(request, nodeIndex);
    } catch {
      // The TTL takes over.
    }
  });
}

/** A ballot whose answers nobody reads. */
class UndoRequest implements LockRequest {
  readonly keys: readonly string[];
  readonly value: string;
  readonly ttlMs: number;
  readonly wanted = true;
  maybeSet: number;
  shared: unknown = undefined;
  readonly ticket: QueueTicket | undefined;
  readonly keepsTicket: boolean;

  constructor(round: Round, stays: boolean) {
    this.ticket = round.ticket;
    this.keepsTicket = stays;
    this.keys = round.keys;
    this.value = round.value;
    this.ttlMs = round.ttlMs;
    this.maybeSet = round.maybeSet;
  }

  grant(): void {}
  deny(): void {}
  fail(): void {}
}
