/**
 * The errors of the lock client. What goes wrong on one node is a vote, not an error, until the
 * quorum is decided.
 *
 * @module
 */
import type { Holder } from "./holder.ts";
import type { Vote } from "./vote.ts";

/** The page of the manual about errors; each code is one of its headings. */
const HELP_PAGE = "https://github.com/hasp-lock/redlock/blob/main/docs/errors.md";

/** The stable codes of {@linkcode RedlockError} and its subclasses. */
export type RedlockErrorCode = "LOCK_HELD" | "NO_QUORUM" | "LOCK_LOST" | "CLOSED";

/** Details of a {@linkcode RedlockError}, for its constructor. */
export interface RedlockErrorDetails {
  /** The resources of the call that failed. */
  resources: readonly string[];
  /** What the nodes answered in the last attempt; empty by default. */
  votes?: readonly Vote[] | undefined;
  /** The reason, such as an `AggregateError` of the nodes' errors. */
  cause?: unknown;
}

/**
 * Base class of the errors of the lock client. Thrown itself, with the code `CLOSED`, if the client
 * is closed, or is closed before the call settles.
 */
export class RedlockError extends Error {
  /** The name of the class. */
  override readonly name: string = "RedlockError";
  /** A stable identifier of the kind of error. */
  readonly code: RedlockErrorCode = "CLOSED";
  /** Link to the section of the manual about this kind of error, and what to do about it. */
  readonly help: string = `${HELP_PAGE}#closed`;
  /** The resources of the call that failed; empty if it had none. */
  readonly resources: readonly string[];
  /**
   * What the nodes answered in the last attempt; empty if no node was asked. Consoles do not show
   * it: the message counts the votes if they say more, and `cause` has the errors.
   */
  declare readonly votes: readonly Vote[];

  /**
   * Creates the error.
   *
   * @param message What failed, for which resource, and why.
   * @param details The resources, the votes and the cause.
   */
  constructor(message: string, details: RedlockErrorDetails) {
    super(message, details.cause === undefined ? {} : details);
    // copies, because a listener may change what it gets
    this.resources = [...details.resources];
    // like `message`, so that a subclass or a logger may replace it
    const value = [...details.votes ?? []];
    Object.defineProperty(this, "votes", { value, configurable: true, writable: true });
  }

  /** What `JSON.stringify` shows: the message, `votes` and everything else but stack and cause. */
  toJSON(): object {
    return { ...this, message: this.message, votes: this.votes };
  }
}

/** Details of a {@linkcode LockHeldError}, for its constructor. */
export interface LockHeldErrorDetails extends RedlockErrorDetails {
  /** How many clients wait for the lock. */
  waiters?: number | undefined;
  /** How long the key in the way lives, in milliseconds. */
  remainingMs?: number | undefined;
  /** Who holds the lock. */
  holders?: readonly Holder[] | undefined;
}

/**
 * Thrown if somebody else holds the lock and `waitMs` is over. The message contains how long the
 * call waited, how long the key still lives, and what is wrong with a key that no lock library can
 * have set. It also reports if this client itself holds the lock, because locks are not reentrant.
 */
export class LockHeldError extends RedlockError {
  /** The name of the class. */
  override readonly name = "LockHeldError";
  /** A stable identifier of the kind of error. */
  override readonly code = "LOCK_HELD";
  /** Link to the section of the manual about this kind of error, and what to do about it. */
  override readonly help: string = `${HELP_PAGE}#lock_held`;
  /**
   * How many clients were waiting for the lock when a node last reported it, this one included.
   * `undefined` if no node did, because the call did not wait or because it polled.
   */
  readonly waiters: number | undefined;
  /**
   * How long the key lives unless its holder extends or releases it, in milliseconds: 0 or more, or
   * `Infinity` if the key has no TTL. As a node last reported it; `undefined` if no node did,
   * because the call did not wait or because it polled, or if the key should have expired since.
   */
  readonly remainingMs: number | undefined;
  /**
   * Who held the lock when the wait was over, as in {@linkcode Inspection.holders}: as a node last
   * reported it, or this client's own lock. Of several readers it is the one with the latest
   * deadline. Empty if no node did, because the call did not wait or because it polled, or if its
   * key is not a string.
   */
  readonly holders: readonly Holder[];

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
    this.holders = details.holders ?? [];
  }
}

/**
 * Thrown if fewer than a quorum of nodes gave a usable answer: the others failed, did not answer
 * within `nodeTimeoutMs`, or were quarantined. The message contains the first node's error; `cause`
 * is an `AggregateError` of all of them, if there are any.
 */
export class QuorumError extends RedlockError {
  /** The name of the class. */
  override readonly name = "QuorumError";
  /** A stable identifier of the kind of error. */
  override readonly code = "NO_QUORUM";
  /** Link to the section of the manual about this kind of error, and what to do about it. */
  override readonly help: string = `${HELP_PAGE}#no_quorum`;
}

/**
 * Why a lock ended before its holder released it:
 *
 * - `expired`: its validity was over, and nobody extended it: the holder took too long without
 *   `autoExtend`.
 * - `stalled`: its validity was over because the process stood still; `cause` says for how long.
 * - `clock-stepped`: its validity was over because the wall clock was stepped ahead, or the machine
 *   slept, which looks the same; `cause` says by how much.
 * - `extend-failed`: its validity was over before a quorum of nodes had extended it.
 * - `answers-late`: a quorum extended it, but the answers came when its validity was over; `cause`
 *   names the nodes.
 * - `extensions-max`: it was extended `extensionsMax` times.
 * - `gone`: a majority of the nodes no longer holds its keys, or, from `adopt()`, somebody else
 *   holds it.
 * - `forgotten`: its handle and its `signal` were garbage-collected, and only `autoExtend` kept it.
 * - `closed`: the lock client was closed.
 * - `released`: only from {@linkcode Lock.extend} and {@linkcode Lock.handOver}: it was released or
 *   handed over before.
 */
export type LockLostReason =
  | "expired"
  | "stalled"
  | "clock-stepped"
  | "extend-failed"
  | "answers-late"
  | "extensions-max"
  | "gone"
  | "forgotten"
  | "closed"
  | "released";

/** Details of a {@linkcode LockLostError}, for its constructor. */
export interface LockLostErrorDetails extends RedlockErrorDetails {
  /** Why the lock ended. */
  reason: LockLostReason;
}

/**
 * Thrown if a lock was lost before it was released: its validity ended, a majority of the nodes no
 * longer holds its key, or the client was closed. Also the reason of `lock.signal`. `reason` says
 * which of these it was, and `cause` the details.
 */
export class LockLostError extends RedlockError {
  /** The name of the class. */
  override readonly name = "LockLostError";
  /** A stable identifier of the kind of error. */
  override readonly code = "LOCK_LOST";
  /** Link to the section of the manual about this kind of error, and what to do about it. */
  override readonly help: string = `${HELP_PAGE}#lock_lost`;
  /** Why the lock ended. */
  readonly reason: LockLostReason;

  /**
   * Creates the error.
   *
   * @param message What failed, for which resource, and why.
   * @param details The resources, the votes, the reason and the cause.
   */
  constructor(message: string, details: LockLostErrorDetails) {
    super(message, details);
    this.reason = details.reason;
  }
}
