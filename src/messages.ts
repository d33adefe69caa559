/**
 * What the errors of calls are made of: their messages, causes and stacks.
 *
 * @module
 */
import { LockLostError, type LockLostReason, QuorumError, RedlockError } from "./errors.ts";
import { printable, quoted } from "./printable.ts";
import { stackless } from "./stackless.ts";
import { quorumSize, type Vote } from "./vote.ts";

/** Most resources that a message shows. */
const RESOURCES_SHOWN_MAX = 5;

/** The errors of the nodes as one, whose message names silent nodes too; `undefined` if none. */
export function nodeErrors(votes: readonly Vote[]): AggregateError | undefined {
  const failed = failedOf(votes);
  const errors = failed.flatMap(({ error }) => error ?? []);
  if (errors.length === 0) return undefined;
  return stackless(() => new AggregateError(errors, failed.map(errorOf).join("; ")));
}

/** The votes of nodes that failed or were silent. */
function failedOf(votes: readonly Vote[]): readonly Vote[] {
  return votes.filter(({ error, outcome }) => error || outcome === "timed-out");
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
 * they were asked what they have, how many must have the same. Of one node, what it did.
 */
export function voteCount(
  votes: readonly Vote[],
  nodeCount: number,
  verb: Verb = "acquire",
): string {
  const quorum = quorumSize(nodeCount);
  const count = (...outcomes: Vote["outcome"][]) =>
    votes.filter(({ outcome }) => outcomes.includes(outcome)).length;
  const doneCount = count("granted", "held", "free");
  const [only] = nodeCount === 1 ? votes : [];
  if (only) {
    const failed = `${only.outcome === "quarantined" ? "is " : ""}${inWords(only.outcome)}`;
    return `the node ${doneCount > 0 ? DONE[verb] : failed}`;
  }
  const others = (["denied", "held", "free", "failed", "timed-out", "quarantined"] as const)
    .filter((outcome) => count(outcome) > 0)
    .map((outcome) => `, ${count(outcome)} ${inWords(outcome)}`);
  const agree = count("held") > 0 ? " to agree" : "";
  return `${ofNodes(doneCount, nodeCount)} ${DONE[verb]}${others.join("")}, ${
    are(quorum)
  } needed${agree}`;
}

/** `timed out` */
function inWords(outcome: Vote["outcome"]): string {
  return outcome.replace("-", " ");
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
export function isHopeless(votes: readonly Vote[], nodeCount: number): boolean {
  return votes.filter(({ error }) => isPermanent(error)).length > nodeCount - quorumSize(nodeCount);
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
  const why = voteCount(votes, nodeCount, verb) + note + reasonOf(votes);
  return new QuorumError(`Cannot ${verb} ${name}: ${why}`, {
    resources,
    votes,
    cause: nodeErrors(votes),
  });
}

/**
 * `; error: …`, or of several `; first error: …`: that of the first node that failed or, before
 * that, of one that refuses for good; without an error, that a node was silent. Nothing if no vote
 * says why.
 */
export function reasonOf(votes: readonly Vote[]): string {
  const failed = failedOf(votes);
  const permanent = failed.find(({ error }) => isPermanent(error));
  const vote = permanent ?? failed.find(({ error }) => error) ?? failed[0];
  if (!vote) return "";
  const first = failed.length > 1 ? "first " : "";
  return `; ${permanent ? "permanent " : first}error: ${errorOf(vote)}`;
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

/** `lock "a"`, `any of locks "a", "b"` or, of many, the first five `and 3 more`, for messages. */
export function lockName(resources: readonly string[], any?: boolean): string {
  const names = resources.slice(0, RESOURCES_SHOWN_MAX).map(quoted).join(", ");
  const more = resources.length - RESOURCES_SHOWN_MAX;
  const name = `${any ? "any of " : ""}${resources.length === 1 ? "lock" : "locks"} ${names}`;
  return more > 0 ? `${name} and ${more} more` : name;
}

/** The error of a call on a client that is closed. */
export function closedError(
  action: string,
  resources: readonly string[],
  votes?: readonly Vote[],
): RedlockError {
  return new RedlockError(`Cannot ${action}: the lock client is closed`, { resources, votes });
}

/** The error of a call about a lock that has ended. */
export function lostError(
  action: string,
  resources: readonly string[],
  votes: readonly Vote[],
  reason: LockLostReason,
  cause: Error,
): LockLostError {
  const message = `Cannot ${action} ${lockName(resources)}: ${cause.message}`;
  return new LockLostError(message, { resources, votes, reason, cause });
}

/**
 * The cause of a loss if a majority of the nodes denied. Of several keys, no node says which are
 * gone.
 */
export function keysGone(keys: readonly string[], note = ""): Error {
  const what = keys.length > 1 ? "one of its keys" : "its key";
  return new Error(`${what} is gone, or somebody else has it${note}`);
}

/** The error of a lock that was lost while nobody called: a trace would name a timer. */
export function lossError(...details: Parameters<typeof lostError>): LockLostError {
  return stackless(() => lostError(...details));
}

/**
 * Gives the error of a loss, which was made without a trace, that of the first caller who gets it.
 * To remember the trace of each call would cost more than the rest of its lock.
 *
 * @param error What a caller gets; anything but such an error is left as it is.
 */
export function thrownHere<T>(error: T): T {
  // A text, because a program may have replaced what makes stacks; one line has no trace.
  if (error instanceof LockLostError && !`${error.stack}`.includes("\n")) {
    const { name, message } = error;
    error.stack = `${new Error().stack}`.replace(/^.*/u, () => `${name}: ${message}`);
  }
  return error;
}
