/**
 * The errors of the lock. What one node did wrong is a vote, not an error, until the quorum is decided.
 *
 * @module
 */
import type { Vote } from "./vote.ts";

/** Longest part of a resource that a message shows, in UTF-16 code units. */
const RESOURCE_LENGTH_MAX = 100;
/** Most resources that a message shows. */
const RESOURCES_SHOWN_MAX = 5;
/** The first half of a character that was cut in two. */
const CUT_PAIR = /[\ud800-\udbff]$/;

/** The stable codes of {@linkcode RedlockError}. */
export type RedlockErrorCode = "LOCK_HELD" | "NO_QUORUM" | "LOCK_LOST" | "CLOSED";

/** What an error of the lock is about. */
export interface RedlockErrorDetails {
  /** The resources that were to be locked. */
  resources: readonly string[];
  /** What the nodes answered in the attempt that decided. */
  votes?: readonly Vote[];
  /** What led to it. */
  cause?: unknown;
}

/** The base of the lock's errors, and itself the error of calls on a client that was closed (`CLOSED`). */
export class RedlockError extends Error {
  /** The name of the class. */
  override readonly name: string = "RedlockError";
  /** A stable name for programs to compare. */
  readonly code: RedlockErrorCode = "CLOSED";
  /** The resources that were to be locked. */
  readonly resources: readonly string[];
  /** What the nodes answered in the attempt that decided; empty where none was asked. */
  readonly votes: readonly Vote[];

  /**
   * Makes the error.
   *
   * @param message What was attempted, on which resource, with which count.
   * @param details What it is about.
   */
  constructor(message: string, details: RedlockErrorDetails) {
    super(message, { cause: details.cause });
    this.resources = details.resources;
    this.votes = details.votes ?? [];
  }
}

/** What a {@linkcode LockHeldError} is about. */
export interface LockHeldErrorDetails extends RedlockErrorDetails {
  /** How many clients stood in line. */
  waiters?: number;
}

/** Others hold the resource, and the wait for it is over. */
export class LockHeldError extends RedlockError {
  /** The name of the class. */
  override readonly name = "LockHeldError";
  /** A stable name for programs to compare. */
  override readonly code = "LOCK_HELD";
  /**
   * How many clients stood in line for it when a node last told, this one included; `undefined` where none has: the
   * call did not wait, or it polled.
   */
  readonly waiters: number | undefined;

  /**
   * Makes the error.
   *
   * @param message What was attempted, on which resource, with which count.
   * @param details What it is about.
   */
  constructor(message: string, details: LockHeldErrorDetails) {
    super(message, details);
    this.waiters = details.waiters;
  }
}

/** Too few nodes answered to say anything: they failed, or did not answer in time. */
export class QuorumError extends RedlockError {
  /** The name of the class. */
  override readonly name = "QuorumError";
  /** A stable name for programs to compare. */
  override readonly code = "NO_QUORUM";
}

/** The lock is no longer certain; the reason of `lock.signal`. `cause` says why. */
export class LockLostError extends RedlockError {
  /** The name of the class. */
  override readonly name = "LockLostError";
  /** A stable name for programs to compare. */
  override readonly code = "LOCK_LOST";
}

/** What was thrown, as an error: other people's nodes may throw anything. */
export function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** A resource in quotes, for messages: escaped, and cut if it is long. */
export function quoted(resource: string): string {
  if (resource.length <= RESOURCE_LENGTH_MAX) return JSON.stringify(resource);
  return JSON.stringify(`${resource.slice(0, RESOURCE_LENGTH_MAX).replace(CUT_PAIR, "")}…`);
}

/** `lock "a"`, `locks "a", "b"` or `locks "a", "b", "c" and 5 more`, for messages. */
export function lockName(resources: readonly string[]): string {
  const names = resources.slice(0, RESOURCES_SHOWN_MAX).map(quoted).join(", ");
  const more = resources.length - RESOURCES_SHOWN_MAX;
  return `${resources.length === 1 ? "lock" : "locks"} ${names}${
    more > 0 ? ` and ${more} more` : ""
  }`;
}

/** The errors of the nodes as one, or `undefined` where none of them gave any. */
export function nodeErrors(votes: readonly Vote[]): AggregateError | undefined {
  const failed = votes.filter((vote) => vote.error);
  if (failed.length === 0) return undefined;
  const summary = failed.map((vote) => `${vote.node}: ${vote.error!.message}`).join("; ");
  return new AggregateError(failed.map((vote) => vote.error), summary);
}

/** How many of the nodes granted, and how many would have had to: the end of most messages. */
export function voteCount(votes: readonly Vote[], nodeCount: number, quorum: number): string {
  const count = (outcome: Vote["outcome"]) =>
    votes.filter((vote) => vote.outcome === outcome).length;
  const others = (["denied", "failed", "timed-out", "quarantined"] as const)
    .filter((outcome) => count(outcome) > 0)
    .map((outcome) => `, ${count(outcome)} ${outcome === "timed-out" ? "timed out" : outcome}`);
  return `${count("granted")} of ${nodeCount} nodes granted it${others.join("")}, ` +
    `${quorum} are needed`;
}
