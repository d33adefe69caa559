/**
 * What votes amount to.
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

/** Decides a vote: granted once a quorum granted, refused once no quorum can be reached any more, also if N is even. */
export function decide(granted: number, pending: number, quorum: number): Decision {
  if (granted >= quorum) return "granted";
  // mutation: settled-by-grants-alone
  return granted + pending < quorum ? "refused" : "open";
}
