/**
 * Having nodes delete keys: the release of a lock, and taking back what a round may have set,
 * without waiting for it (step 5 of the argument in `acquire.ts`).
 *
 * @module
 */
import { type NodeSet, type QuorumRequest, UNREAD } from "../quorum/quorum_node.ts";
import type { Round } from "../quorum/round.ts";
import type { Clock } from "../time/clock.ts";

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
 * out is a node that denied and where nothing may be set: it answered a plain `SET NX`, or put the
 * caller in its queue.
 *
 * @param round The round that may have set keys; nothing more is sent for it that could set one.
 * @param release The request.
 */
export function takeBack(round: Round, release: QuorumRequest): void {
  round.cancel();
  round.nodeSet.nodes.forEach((node, nodeIndex) => {
    // mutation: undo-spares-no-node
    // mutation: undo-spares-what-may-be-set
    if (round.deniedBy(nodeIndex) && !round.mayHaveKeys(nodeIndex)) return;
    node.release(release, nodeIndex);
  });
}

/**
 * Has nodes delete the keys that hold a value which nobody holds any more.
 *
 * @param nodeSet The nodes.
 * @param keys The keys.
 * @param value The value.
 * @param ttlMs How long they live at most, in milliseconds: until then, nodes that cannot be
 * reached are asked when they are back.
 * @param adopted The round that has replaced the value on the nodes that granted it, if one has:
 * they are left out.
 */
export function deleteValue(
  { nodes }: NodeSet,
  keys: readonly string[],
  value: string,
  ttlMs: number,
  adopted?: Round,
): void {
  const request = { ...UNREAD, keys, value, ttlMs };
  nodes.forEach((node, nodeIndex) => {
    if (!adopted?.grantedBy(nodeIndex)) node.release(request, nodeIndex);
  });
}

/**
 * What has the nodes delete the keys of a lock, and take the ticket out of their queues. A lock of
 * a pool, in shared mode, or whose keys may live on has left the queues when it was won.
 *
 * @param won The round that won the lock.
 * @param keptUntilMs Until when the keys are to live at least, by the monotonic clock. How long
 * that is yet, each node finds out when it is asked.
 */
export function releaseOf(won: Round, keptUntilMs: number | undefined): Round {
  const { ticket, pool, mode, nodeSet: { wheel } } = won;
  // mutation: at-least-is-forgotten
  if (keptUntilMs !== undefined) return won.follow({ keptMs: restUntil(wheel.clock, keptUntilMs) });
  return won.follow(ticket && !pool && !mode ? { ticket } : undefined);
}

/** Apart, because a closure costs the function that has it memory, even where it is not made. */
function restUntil(clock: Clock, untilMs: number): () => number {
  return () => untilMs - clock.monotonicMs();
}

/** The value that an adopted lock has replaced. */
export interface Former {
  readonly value: string;
  /** Until when nodes that have missed the adoption may still have it, by the monotonic clock. */
  readonly untilMs: number;
}

/**
 * The lock ends: if it was adopted, has the former value deleted on the nodes that have not adopted
 * it. Until then, each extension has them adopt it.
 */
export function deleteFormer(won: Round, former: Former | undefined): void {
  if (!former || won.nodeSet.wheel.closed) return;
  const { nodeSet, keys } = won;
  const ttlMs = former.untilMs - nodeSet.wheel.clock.monotonicMs();
  // mutation: former-value-stays
  if (ttlMs > 0) deleteValue(nodeSet, keys, former.value, ttlMs, won);
}
