/**
 * The errors of the lock client, and the texts of their messages. What goes wrong on one node is a vote, not an error,
 * until the quorum is decided.
 *
 * @module
 */
import { printable } from "./printable.ts";
import type { Vote } from "./vote.ts";

/** Longest part of a resource that a message shows, in UTF-16 code units. */
const RESOURCE_LENGTH_MAX = 100;
/** Most resources that a message shows. */
const RESOURCES_SHOWN_MAX = 5;
/** The first half of a character that was cut in two. */
const CUT_PAIR = /[\ud800-\udbff]$/;

/** The stable codes of {@linkcode RedlockError} and its subclasses. */
export type RedlockErrorCode = "LOCK_HELD" | "NO_QUORUM" | "LOCK_LOST" | "CLOSED";

/** Details of a {@linkcode RedlockError}, for its constructor. */
export interface RedlockErrorDetails {
  /** The resources of the call that failed. */
  resources: readonly string[];
  /** What the nodes answered in the last attempt; empty by default. */
  votes?: readonly Vote[];
  /** The reason, such as an `AggregateError` of the nodes' errors. */
  cause?: unknown;
}

/**
 * Base class of the errors of the lock client. Thrown itself, with the code `CLOSED`, if the client is closed, or is
 * closed before the call settles.
 */
export class RedlockError extends Error {
  /** The name of the class. */
  override readonly name: string = "RedlockError";
  /** A stable identifier of the kind of error. */
  readonly code: RedlockErrorCode = "CLOSED";
  /** The resources of the call that failed; empty if it had none. */
  readonly resources: readonly string[];
  /** What the nodes answered in the last attempt; empty if no node was asked. */
  readonly votes: readonly Vote[];

  /**
   * Creates the error.
   *
   * @param message What failed, for which resource, and why.
   * @param details The resources, the votes and the cause.
   */
  constructor(message: string, details: RedlockErrorDetails) {
    super(message, { cause: details.cause });
    this.resources = details.resources;
    this.votes = details.votes ?? [];
  }
}

/** Details of a {@linkcode LockHeldError}, for its constructor. */
export interface LockHeldErrorDetails extends RedlockErrorDetails {
  /** How many clients wait for the lock. */
  waiters?: number;
  /** How long the key in the way lives, in milliseconds. */
  remainingMs?: number;
}

/**
 * Thrown if somebody else holds the lock and `waitMs` is over. The message says how long the call waited, how long the
 * key still lives, and what is wrong with a key that no lock library can have set. If this client itself holds the
 * lock, the message says so: locks are not reentrant.
 */
export class LockHeldError extends RedlockError {
  /** The name of the class. */
  override readonly name = "LockHeldError";
  /** A stable identifier of the kind of error. */
  override readonly code = "LOCK_HELD";
  /**
   * How many clients were waiting for the lock when a node last reported it, this one included. `undefined` if no node
   * did, because the call did not wait or because it polled.
   */
  readonly waiters: number | undefined;
  /**
   * How long the key lives unless its holder extends or releases it, in milliseconds: 0 or more, or `Infinity` if the
   * key has no TTL. Measured on one node when the wait was over; `undefined` if the node did not answer.
   */
  readonly remainingMs: number | undefined;

  /**
   * Creates the error.
   *
   * @param message What failed, for which resource, and why.
   * @param details The resources, the votes, the cause, and what is known about the key.
   */
  constructor(message: string, details: LockHeldErrorDetails) {
    super(message, details);
    this.waiters = details.waiters;
    this.remainingMs = details.remainingMs;
  }
}

/**
 * Thrown if fewer than a quorum of nodes gave a usable answer: the others failed, did not answer within
 * `nodeTimeoutMs`, or were quarantined. The message contains the first node's error; `cause` is an `AggregateError` of
 * all of them, if there are any.
 */
export class QuorumError extends RedlockError {
  /** The name of the class. */
  override readonly name = "QuorumError";
  /** A stable identifier of the kind of error. */
  override readonly code = "NO_QUORUM";
}

/**
 * Thrown if a lock was lost before it was released: its validity ended, a majority of the nodes no longer holds its
 * key, or the client was closed. Also the reason of `lock.signal`. `cause` says why the lock was lost.
 */
export class LockLostError extends RedlockError {
  /** The name of the class. */
  override readonly name = "LockLostError";
  /** A stable identifier of the kind of error. */
  override readonly code = "LOCK_LOST";
}

/** Converts a thrown value to an error, because nodes of other makers may throw anything. */
export function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** A resource in quotes, for messages: escaped, and cut if it is long. */
export function quoted(resource: string): string {
  if (resource.length <= RESOURCE_LENGTH_MAX) return JSON.stringify(resource);
  return JSON.stringify(`${resource.slice(0, RESOURCE_LENGTH_MAX).replace(CUT_PAIR, "")}…`);
}

/** `lock "a"`, `locks "a", "b"` or, of many, the first five `and 3 more`, for messages. */
export function lockName(resources: readonly string[]): string {
  const names = resources.slice(0, RESOURCES_SHOWN_MAX).map(quoted).join(", ");
  const more = resources.length - RESOURCES_SHOWN_MAX;
  const name = `${resources.length === 1 ? "lock" : "locks"} ${names}`;
  return more > 0 ? `${name} and ${more} more` : name;
}

/** The errors of the nodes as one, or `undefined` if there are none. */
export function nodeErrors(votes: readonly Vote[]): AggregateError | undefined {
  const failed = votes.filter((vote) => vote.error);
  if (failed.length === 0) return undefined;
  const summary = failed.map((vote) => `${vote.node}: ${printable(vote.error!.message)}`).join(
    "; ",
  );
  return new AggregateError(failed.map((vote) => vote.error), summary);
}

/** What was asked of the nodes, as the verb of a message. */
export type Attempt = "acquire" | "extend" | "inspect" | "release";

/** How a message says that nodes did as they were asked. */
const DONE: { readonly [Name in Attempt]: string } = {
  acquire: "granted it",
  extend: "extended it",
  inspect: "answered",
  release: "released it",
};

/** How many of the nodes did as they were asked, what the others did, and how many are needed. */
export function voteCount(
  votes: readonly Vote[],
  nodeCount: number,
  quorum: number,
  attempt: Attempt = "acquire",
): string {
  const count = (...outcomes: Vote["outcome"][]) =>
    votes.filter(({ outcome }) => outcomes.includes(outcome)).length;
  const others = (["denied", "held", "free", "failed", "timed-out", "quarantined"] as const)
    .filter((outcome) => count(outcome) > 0)
    .map((outcome) => `, ${count(outcome)} ${outcome === "timed-out" ? "timed out" : outcome}`);
  const done = count("granted", "held", "free");
  const nodes = `${nodeCount} ${nodeCount === 1 ? "node" : "nodes"}`;
  const needed = `${quorum} ${quorum === 1 ? "is" : "are"} needed`;
  return `${done} of ${nodes} ${DONE[attempt]}${others.join("")}, ${needed}`;
}

/**
 * Whether more than N − quorum of the nodes refuse for good, so that no later attempt can succeed. A node does if its
 * error has `permanent: true`, as the errors of the Redis client have for wrong credentials and missing permissions.
 */
export function isHopeless(votes: readonly Vote[], nodeCount: number, quorum: number): boolean {
  return votes.filter(({ error }) => isPermanent(error)).length > nodeCount - quorum;
}

function isPermanent(error: Error | undefined): boolean {
  return (error as { permanent?: unknown } | undefined)?.permanent === true;
}

/** What the message of a {@linkcode QuorumError} is made of. */
export interface NoQuorum {
  readonly resources: readonly string[];
  readonly votes: readonly Vote[];
  /** How many nodes there are. */
  readonly nodeCount: number;
  /** How many of them are needed. */
  readonly quorum: number;
  /** Why the votes are not enough although a quorum granted, if so: `but too late`. */
  readonly note?: string | undefined;
}

/** The error of a call that too few nodes answered. */
export function quorumError(attempt: Attempt, refusal: NoQuorum): QuorumError {
  const { resources, votes } = refusal;
  const message = `Cannot ${attempt} ${lockName(resources)}: ${whyNoQuorum(attempt, refusal)}`;
  return new QuorumError(message, { resources, votes, cause: nodeErrors(votes) });
}

/** The votes of an attempt that too few nodes answered, and the first node's error, or one that is permanent. */
export function whyNoQuorum(
  attempt: Attempt,
  { votes, nodeCount, quorum, note }: Omit<NoQuorum, "resources">,
): string {
  const count = voteCount(votes, nodeCount, quorum, attempt);
  const errors = votes.flatMap(({ error }) => error ?? []);
  const permanent = errors.find(isPermanent);
  const first = permanent ?? errors[0];
  const which = permanent ? "permanent error" : "first error";
  return `${count}${note ? `, ${note}` : ""}${
    first ? `; ${which}: ${printable(first.message)}` : ""
  }`;
}

/** The key that is in a lock's way, as far as a message describes it. */
export interface BlockingKey {
  /** The resource, if the call has several. */
  readonly resource?: string | undefined;
  /** How long the key lives, in milliseconds; `Infinity` if it has no TTL. */
  readonly remainingMs: number;
  /** The type of its value, if it is not a string. */
  readonly type?: string | undefined;
}

/** What is wrong with a key that no lock library can have set; `undefined` if it looks like a lock's. */
export function foreignKey(
  { remainingMs, type }: Omit<BlockingKey, "resource">,
): string | undefined {
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
  /** How many of them are needed. */
  readonly quorum: number;
  /** How long the call waited, in milliseconds; `undefined` if it made one attempt only. */
  readonly waitedMs?: number | undefined;
  /** The key that is in the way, if it is known. */
  readonly key?: BlockingKey | undefined;
  /** For how long this client itself has held one of the resources, in milliseconds, if it does. */
  readonly ownHeldMs?: number | undefined;
  /** For how long the resource stays in its cooldown, in milliseconds, if it is in one. */
  readonly cooldownLeftMs?: number | undefined;
  /** How many clients wait for the lock, if that is known. */
  readonly waiters?: number | undefined;
}

/** The error of a call that did not get its lock because it is held, or in its cooldown. */
export function lockHeldError(held: Held): LockHeldError {
  const { resources, votes, nodeCount, quorum, waitedMs, key, cooldownLeftMs = 0, waiters } = held;
  const cooling = cooldownLeftMs > 0;
  const parts = [
    holder(held),
    ...(waitedMs === undefined ? [] : [`waited ${Math.round(waitedMs)} ms`]),
    ...(key && !cooling ? [keyText(key)] : []),
    ...(votes.length > 0 && !cooling ? [voteCount(votes, nodeCount, quorum)] : []),
  ];
  const message = `Cannot acquire ${lockName(resources)}: ${parts.join("; ")}`;
  const cause = cooling ? cooldownError(cooldownLeftMs) : nodeErrors(votes);
  const remainingMs = key?.remainingMs;
  return new LockHeldError(message, { resources, votes, cause, waiters, remainingMs });
}

function holder({ votes, nodeCount, quorum, ownHeldMs, cooldownLeftMs = 0 }: Held): string {
  if (cooldownLeftMs > 0) {
    return `it is in its cooldown for another ${Math.ceil(cooldownLeftMs)} ms`;
  }
  if (ownHeldMs !== undefined) {
    return `this client itself has held it for ${
      Math.round(ownHeldMs)
    } ms, and locks are not reentrant`;
  }
  if (votes.length === 0) return "earlier calls of this client are still waiting for it";
  const denied = votes.filter(({ outcome }) => outcome === "denied").length;
  return denied > nodeCount - quorum ? "someone else holds it" : "others hold it or compete for it";
}

function keyText(key: BlockingKey): string {
  const name = key.resource === undefined ? "its key" : `the key of ${quoted(key.resource)}`;
  const foreign = foreignKey(key);
  if (foreign) return `${name} ${foreign}`;
  return `${name} expires in ${Math.ceil(key.remainingMs)} ms unless it is extended`;
}

function cooldownError(leftMs: number): Error {
  return new Error(
    `a lock of this client ended without a confirmed release, so 'cooldownMs' delays the next one by another ${
      Math.ceil(leftMs)
    } ms`,
  );
}

/** The error of a call on a client that is closed. */
export function closedError(
  attempt: string,
  resources: readonly string[],
  votes?: readonly Vote[],
): RedlockError {
  return new RedlockError(`Cannot ${attempt}: the lock client is closed`, { resources, votes });
}
