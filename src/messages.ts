/**
 * The errors of calls that votes decided, and the texts of their messages.
 *
 * @module
 */
import { lockName, QuorumError } from "./errors.ts";
import { printable } from "./printable.ts";
import { stackless } from "./stackless.ts";
import { quorumSize, type Vote } from "./vote.ts";

/** The errors of the nodes as one, whose message names silent nodes too; `undefined` if none. */
export function nodeErrors(votes: readonly Vote[]): AggregateError | undefined {
  const failed = votes.filter(({ error, outcome }) => error || outcome === "timed-out");
  const errors = failed.flatMap(({ error }) => error ?? []);
  if (errors.length === 0) return undefined;
  return stackless(() => new AggregateError(errors, failed.map(errorOf).join("; ")));
}

/** What is wrong with a node, and its name. */
function errorOf({ node, error }: Vote): string {
  const message = error?.message ?? "no answer";
  return printable(message.includes(node) ? message : `${node}: ${message}`);
}

/** What was asked of the nodes, as the verb of a message. */
export type Verb = "acquire" | "adopt" | "extend" | "inspect" | "list" | "release";

/** The words for nodes that did as they were asked. */
const DONE: { readonly [Name in Verb]: string } = {
  acquire: "granted it",
  adopt: "granted it",
  extend: "extended it",
  inspect: "answered",
  list: "answered",
  release: "released it",
};

/**
 * How many of the nodes did as they were asked, what the others did, and how many are needed; if
 * they were asked what they have, how many must have the same.
 */
export function voteCount(
  votes: readonly Vote[],
  nodeCount: number,
  verb: Verb = "acquire",
): string {
  const quorum = quorumSize(nodeCount);
  const count = (...outcomes: Vote["outcome"][]) =>
    votes.filter(({ outcome }) => outcomes.includes(outcome)).length;
  const others = (["denied", "held", "free", "failed", "timed-out", "quarantined"] as const)
    .filter((outcome) => count(outcome) > 0)
    .map((outcome) => `, ${count(outcome)} ${outcome === "timed-out" ? "timed out" : outcome}`);
  const done = ofNodes(count("granted", "held", "free"), nodeCount);
  const agree = count("held") > 0 ? " to agree" : "";
  return `${done} ${DONE[verb]}${others.join("")}, ${are(quorum)} needed${agree}`;
}

/** `2 of 3 nodes`. */
export function ofNodes(count: number, nodeCount: number): string {
  return `${count} of ${nodeCount} ${nodeCount === 1 ? "node" : "nodes"}`;
}

/** `3 are`, or `1 is`. */
export function are(count: number): string {
  return `${count} ${count === 1 ? "is" : "are"}`;
}

/**
 * Whether more than N − quorum of the nodes refuse for good, so that no later attempt can succeed.
 * A node does if its error has `permanent: true`, as the errors of the Redis client have for wrong
 * credentials and missing permissions.
 */
export function isHopeless(votes: readonly Vote[], nodeCount: number, quorum: number): boolean {
  return votes.filter(({ error }) => isPermanent(error)).length > nodeCount - quorum;
}

function isPermanent(error: Error | undefined): boolean {
  return (error as { permanent?: unknown } | undefined)?.permanent === true;
}

/**
 * The error of a call that too few nodes answered.
 *
 * @param verb What it asked of the nodes.
 * @param resources The resources; none if it is not about a lock.
 * @param votes What the nodes answered.
 * @param nodeCount How many nodes there are.
 * @param note What else to say: `; waited 3 ms`.
 * @param any Whether it asked for any one of the resources.
 */
export function quorumError(
  verb: Verb,
  resources: readonly string[],
  votes: readonly Vote[],
  nodeCount: number,
  note = "",
  any?: boolean,
): QuorumError {
  const name = resources.length > 0 ? lockName(resources, any) : "locks";
  const message = `Cannot ${verb} ${name}: ${whyNoQuorum(verb, votes, nodeCount, note)}`;
  return new QuorumError(message, { resources, votes, cause: nodeErrors(votes) });
}

/**
 * The votes of an attempt that too few nodes answered, and the first node's error, or one that is
 * permanent; without an error, that a node was silent.
 */
export function whyNoQuorum(
  verb: Verb,
  votes: readonly Vote[],
  nodeCount: number,
  note = "",
): string {
  return voteCount(votes, nodeCount, verb) + note + reasonOf(votes);
}

/** `; first error: …`; nothing if no vote says why. */
export function reasonOf(votes: readonly Vote[]): string {
  const permanent = votes.find(({ error }) => isPermanent(error));
  const vote = permanent ?? votes.find(({ error }) => error) ??
    votes.find(({ outcome }) => outcome === "timed-out");
  return vote ? `; ${permanent ? "permanent" : "first"} error: ${errorOf(vote)}` : "";
}

/**
 * What is wrong with a key that no lock library can have set; `undefined` if it looks like a
 * lock's.
 */
export function foreignKey(remainingMs: number | undefined, type?: string): string | undefined {
  const found = [
    ...(type === undefined ? [] : [`holds a ${type}`]),
    ...(remainingMs === Infinity ? ["has no TTL"] : []),
  ];
  return found.length > 0 ? `${found.join(" and ")}, so no lock library set it` : undefined;
}
