/**
 * The errors of calls that votes decided, and the texts of their messages.
 *
 * @module
 */
import { LockHeldError, lockName, QuorumError } from "./errors.ts";
import type { Holder } from "./holder.ts";
import { printable } from "./printable.ts";
import { quorumSize, type Vote } from "./vote.ts";

/** The errors of the nodes as one, or `undefined` without errors. */
export function nodeErrors(votes: readonly Vote[]): AggregateError | undefined {
  const failed = votes.filter((vote) => vote.error);
  if (failed.length === 0) return undefined;
  return new AggregateError(failed.map((vote) => vote.error), failed.map(errorOf).join("; "));
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

/** How many of the nodes did as they were asked, what the others did, and how many are needed. */
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
  return `${done} ${DONE[verb]}${others.join("")}, ${are(quorum)} needed`;
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
 * @param note Why the votes are not enough although a quorum granted, if so: `but too late`.
 * @param any Whether it asked for any one of the resources.
 */
export function quorumError(
  verb: Verb,
  resources: readonly string[],
  votes: readonly Vote[],
  nodeCount: number,
  note?: string,
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
  note?: string,
): string {
  const count = voteCount(votes, nodeCount, verb);
  return `${count}${note ? `, ${note}` : ""}${reasonOf(votes)}`;
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

/** What the message of a {@linkcode LockHeldError} is made of. */
export interface Held {
  readonly resources: readonly string[];
  readonly votes: readonly Vote[];
  /** How many nodes there are. */
  readonly nodeCount: number;
  /** Whether the call asked for any one of the resources. */
  readonly any?: boolean | undefined;
  /** How long the call waited, in milliseconds; `undefined` if it made one attempt only. */
  readonly waitedMs?: number | undefined;
  /** How long the key in the way lives, in milliseconds, if a node has reported it. */
  readonly remainingMs?: number | undefined;
  /** Who holds it, if that is known. */
  readonly holders?: readonly Holder[] | undefined;
  /** For how long this client itself has held one of the resources, in milliseconds, if it does. */
  readonly ownHeldMs?: number | undefined;
  /** Whether it holds that in shared mode. */
  readonly ownReads?: boolean | undefined;
  /** Whether the call asks for shared mode. */
  readonly reads?: boolean | undefined;
  /** For how long the resource stays in its cooldown, in milliseconds, if it is in one. */
  readonly cooldownLeftMs?: number | undefined;
  /** How many clients wait for the lock, if that is known. */
  readonly waiters?: number | undefined;
}

/** The error of a call that did not get its lock because it is held, or in its cooldown. */
export function lockHeldError(held: Held): LockHeldError {
  const { resources, votes, nodeCount, waitedMs, remainingMs, waiters, holders } = held;
  const parts = [
    obstacle(held),
    ...(waitedMs === undefined ? [] : [`waited ${Math.round(waitedMs)} ms`]),
    ...(remainingMs !== undefined ? [keyText(held, remainingMs)] : []),
    ...(votes.length > 0 ? [voteCount(votes, nodeCount)] : []),
  ];
  const message = `Cannot acquire ${lockName(resources, held.any)}: ${parts.join("; ")}`;
  const cause = nodeErrors(votes);
  return new LockHeldError(message, { resources, votes, cause, waiters, holders, remainingMs });
}

function obstacle(held: Held): string {
  const { votes, nodeCount, holders: [holder] = [], ownHeldMs, cooldownLeftMs = 0, any } = held;
  if (cooldownLeftMs > 0) {
    const who = any ? "each is held or" : "it is";
    return `${who} in its cooldown ('cooldownMs') for another ${Math.ceil(cooldownLeftMs)} ms`;
  }
  if (ownHeldMs !== undefined) {
    const [how, rule] = held.ownReads
      ? [
        " in shared mode",
        held.reads ? "a writer waits for that" : "a reader cannot become the writer",
      ]
      : ["", "locks are not reentrant"];
    return `this client itself has held it${how} for ${Math.round(ownHeldMs)} ms, and ${rule}`;
  }
  if (votes.length === 0) return "earlier calls of this client are still waiting for it";
  if (any) return "each of them is held, or others compete for it";
  const denied = votes.filter(({ outcome }) => outcome === "denied").length;
  if (denied <= nodeCount - quorumSize(nodeCount)) return "others hold it or compete for it";
  return `someone else ${holder?.label === undefined ? "" : `(${holder.label}) `}holds it`;
}

function keyText({ resources }: Held, remainingMs: number): string {
  const name = resources.length === 1 ? "its key" : "one of their keys";
  const foreign = foreignKey(remainingMs);
  if (foreign) return `${name} ${foreign}`;
  return `${name} expires in ${Math.ceil(remainingMs)} ms unless it is extended`;
}
