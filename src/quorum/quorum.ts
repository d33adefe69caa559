/**
 * When a vote is decided.
 *
 * @module
 */

/** The smallest number of nodes of which any two sets share one: ⌊N/2⌋ + 1. */
export function quorumSize(nodeCount: number): number {
  // mutation: quorum-one-too-small
  return Math.floor(nodeCount / 2) + 1;
}

/** The state of a vote that may not be complete. */
export type Decision = "open" | "granted" | "refused";

/**
 * Decides a vote: granted once a quorum granted, refused once no quorum can be reached any more.
 *
 * @param granted How many nodes granted.
 * @param pending How many have not answered.
 * @param quorum How many grants are needed.
 * @returns The decision; never `"open"` when nothing is pending, for even numbers of nodes too.
 */
export function decide(granted: number, pending: number, quorum: number): Decision {
  if (granted >= quorum) return "granted";
  // mutation: settled-by-grants-alone
  return granted + pending < quorum ? "refused" : "open";
}
