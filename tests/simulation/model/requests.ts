/**
 * What models of callers on a few nodes have in common: the requests of a caller, node by node.
 *
 * @module
 */

/** What is on its way from a caller to a node, or stands there. */
export type Request =
  | "none"
  | "asked"
  | "granted"
  | "denied"
  | "undone before it came"
  | "released";

/** Whether nothing is on its way, and nothing stands. */
export function isQuiet(requests: readonly Request[]): boolean {
  return requests.every((request) => request === "none");
}

/** How many nodes granted. */
export function grantedCount(requests: readonly Request[]): number {
  return requests.filter((request) => request === "granted").length;
}

/**
 * What becomes of requests when their caller gives the attempt or the lock up. It does not know
 * which nodes granted, so the release goes to all that did not deny.
 */
export function givenUp(requests: readonly Request[]): Request[] {
  return requests.map((request) => {
    if (request === "asked") return "undone before it came";
    return request === "granted" ? "released" : "none";
  });
}
