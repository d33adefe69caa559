/**
 * What the nodes' answers say about a ticket: where it stands, and for how long keys are in its way.
 *
 * @module
 */
import type { QueuePosition } from "../quorum/queue_ticket.ts";
import type { Round } from "../quorum/round.ts";

/** Where a ticket stands, node by node, as far as is known. */
export type QueuePositions = readonly (QueuePosition | undefined)[];

/** Where the nodes that have put the ticket of an attempt in their queues say that it stands. */
export function answersTo(denied: Round, positions: QueuePositions): QueuePosition[] {
  return positions.filter((position, nodeIndex): position is QueuePosition => {
    return position !== undefined && denied.tally.queuedBy(nodeIndex);
  });
}

/** How many tickets are in the queue, on the node with most; `undefined` if no node has reported it. */
export function lengthOf(positions: QueuePositions): number | undefined {
  const lengths = positions.flatMap((position) => position ? [position.length] : []);
  return lengths.length > 0 ? Math.max(...lengths) : undefined;
}

/**
 * How long the keys live that are in the way, in milliseconds; `undefined` if no answer says so.
 *
 * @param positions The answers.
 * @param ageMs How long ago they came, in milliseconds.
 */
export function remainingMsOf(positions: QueuePositions, ageMs: number): number | undefined {
  const lives = positions.flatMap((position) => position ? [position.remainingMs] : []);
  const remainingMs = Math.max(...lives) - ageMs;
  return remainingMs > 0 ? remainingMs : undefined;
}

/** How long keys will be in the way, node by node, as far as it is known, the shortest first. */
export function livesMsOf(positions: QueuePositions, denied: Round): number[] {
  return denied.nodeSet.nodes.flatMap((_, nodeIndex) => {
    if (denied.tally.grantedBy(nodeIndex)) return [0];
    const position = denied.tally.queuedBy(nodeIndex) ? positions[nodeIndex] : undefined;
    return position ? [position.remainingMs] : [];
  }).sort((one, other) => one - other);
}

/**
 * If nodes have different scores, a later one that a quorum of them will have next time: else each contender may be the
 * first on some nodes and on no quorum. Nodes that granted have put the ticket back with its own score.
 */
export function agreedScore(
  positions: readonly QueuePosition[],
  own: number,
  granted: number,
  quorum: number,
): number {
  const scores = positions.map(({ score = 0 }) => score);
  const all = [...scores, ...Array(granted).fill(own)].sort((one, other) => one - other);
  return Math.max(own, all[quorum - 1] ?? 0);
}
