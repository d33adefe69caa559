/**
 * The answer of one node to one request, and how many it takes.
 *
 * @module
 */

/** The answer of one node to one request, or the lack of one. */
export interface Vote {
  /** The name of the node: its address without credentials. */
  readonly node: string;
  /**
   * What the node answered:
   *
   * - `granted`: it did what the request asked for.
   * - `denied`: it did not, because somebody else holds the resource, or because the key no longer
   *   has this lock's value.
   * - `failed`: it replied with an error, or its connection is down; `error` is the reason.
   * - `timed-out`: it did not answer within `nodeTimeoutMs`.
   * - `quarantined`: it granted the request, or denied a lock, but this does not count, because it
   *   may have lost keys less than `restartGuardMs` ago.
   * - `held` and `free`: only in an {@linkcode Inspection} and its errors: the node has the key, or
   *   does not have it.
   */
  readonly outcome:
    | "granted"
    | "denied"
    | "failed"
    | "timed-out"
    | "quarantined"
    | "held"
    | "free";
  /**
   * Time from the start of the attempt to the node's answer, or to the end of waiting for it, in
   * milliseconds.
   */
  readonly elapsedMs: number;
  /**
   * Why the node failed; missing for every other outcome. What a node of another maker failed with
   * is copied if it cannot be printed safely.
   */
  readonly error?: Error;
}

/** The smallest number of nodes of which any two sets share one: ⌊N/2⌋ + 1. */
export function quorumSize(nodeCount: number): number {
  // mutation: quorum-one-too-small
  return Math.floor(nodeCount / 2) + 1;
}
