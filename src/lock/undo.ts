/**
 * Taking back what a round may have set, without waiting for it (step 5 of the argument in
 * `acquire.ts`).
 *
 * @module
 */
import { type NodeSet, type QuorumRequest, UNREAD } from "../quorum/quorum_node.ts";
import type { Round } from "../quorum/round.ts";

/**
 * Asks every node to delete the keys that hold the round's value, after everything that it was sent
 * before. Nobody waits for the answers; a node that cannot be reached now is asked when it is back.
 * Left out is a node that denied and where nothing may be set: it answered a plain `SET NX`, or put
 * the caller in its queue.
 *
 * @param round The round that may have set keys. If it has `keptMs`, they live on for that time.
 * @param failed Whether it is an attempt that has failed, and not the round that won a lock: its
 * caller keeps waiting in
 *   the queues, and keys that it has adopted get their former value back.
 */
export function undo(round: Round, failed = false): void {
  round.cancel(); // nothing more is sent that could set a key
  const { keys, value, ttlMs, ticket, pool, mode, keptMs } = round;
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
    keptMs,
    keepsTicket: failed,
    replaces,
    maySet: (nodeIndex) => round.maySet(nodeIndex),
  };
  round.nodeSet.nodes.forEach((node, nodeIndex) => {
    // mutation: undo-spares-no-node
    // mutation: undo-spares-what-may-be-set
    if (round.deniedBy(nodeIndex) && !round.maySet(nodeIndex)) return;
    node.release(request, nodeIndex);
  });
  if (isKept(round)) leaveQueues(round);
  undoFormer(round);
}

/**
 * Has the former value of an adopted lock deleted on the nodes that have not adopted it. To be
 * called when the lock ends: until then its holder has them adopt it with each extension.
 */
export function undoFormer(won: Round): void {
  const { former, keys, nodeSet } = won;
  if (!former) return;
  const ttlMs = former.untilMs - nodeSet.wheel.clock.monotonicMs();
  // mutation: former-value-stays
  if (ttlMs > 0) deleteValue(nodeSet, keys, former.value, ttlMs, (index) => won.grantedBy(index));
}

/**
 * Has nodes delete the keys that hold a value which nobody holds any more.
 *
 * @param nodeSet The nodes.
 * @param keys The keys.
 * @param value The value.
 * @param ttlMs How long they live at most, in milliseconds: until then, nodes that cannot be
 * reached are asked when they
 *   are back.
 * @param spares Which nodes are certain not to have the value.
 */
export function deleteValue(
  { nodes }: NodeSet,
  keys: readonly string[],
  value: string,
  ttlMs: number,
  spares: (nodeIndex: number) => boolean = () => false,
): void {
  const request = { ...UNREAD, keys, value, ttlMs, maySet: () => true };
  nodes.forEach((node, nodeIndex) => {
    if (!spares(nodeIndex)) node.release(request, nodeIndex);
  });
}

/**
 * Whether the round that won a lock has a ticket in queues: one of a pool, or of a reader, has left
 * them.
 */
export function hasTicket({ ticket, pool, mode }: Round): boolean {
  return ticket !== undefined && !pool && !mode;
}

/** Whether the keys of a lock that ends now live on. */
export function isKept({ keptMs }: Round): boolean {
  // mutation: at-least-is-forgotten
  return keptMs !== undefined && keptMs() > 0;
}

/** Takes the ticket of a lock out of the queues, because its release notifies nobody. */
export function leaveQueues(won: Round): void {
  if (!hasTicket(won)) return;
  for (const node of won.nodeSet.nodes) node.leaveQueue?.(won.keys, won.ticket!.ticketId);
}
