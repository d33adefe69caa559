/**
 * What happens, told as it happens: for logs, metrics and traces.
 *
 * @module
 */
import type { Vote } from "./vote.ts";

/** What every event about a lock has. */
export interface LockEvent {
  /** What is, was or should have been locked. */
  readonly resources: readonly string[];
}

/** What every event about a round of votes has. */
export interface VoteEvent extends LockEvent {
  /** What the nodes had answered when the event was told. */
  readonly votes: readonly Vote[];
  /** How long it took, in milliseconds. For `acquired` and `denied` that is from the call on. */
  readonly elapsedMs: number;
}

/** One attempt at a lock is over, whatever came of it. */
export interface AttemptEvent extends VoteEvent {
  /** What tells it from other events. */
  readonly type: "attempt";
  /** Which attempt of this call it was, from 1. */
  readonly attempt: number;
  /** Whether it won the lock. */
  readonly granted: boolean;
}

/** A call that waits was told that the lock may be free, and asks again. */
export interface WokenEvent extends LockEvent {
  /** What tells it from other events. */
  readonly type: "woken";
  /** For how long it has waited, in milliseconds. */
  readonly elapsedMs: number;
}

/** A lock was acquired. */
export interface AcquiredEvent extends VoteEvent {
  /** What tells it from other events. */
  readonly type: "acquired";
  /** How many attempts it took. */
  readonly attempts: number;
  /** What was left of the validity, in milliseconds. */
  readonly remainingMs: number;
}

/** A call ended without a lock. */
export interface DeniedEvent extends VoteEvent {
  /** What tells it from other events. */
  readonly type: "denied";
  /** Whether others hold it, or too few nodes answered. */
  readonly reason: "held" | "no-quorum";
  /** How many attempts were made. */
  readonly attempts: number;
}

/** A lock was extended. */
export interface ExtendedEvent extends VoteEvent {
  /** What tells it from other events. */
  readonly type: "extended";
  /** How many extensions the lock has had. */
  readonly extensions: number;
  /** The new validity that was left, in milliseconds. */
  readonly remainingMs: number;
}

/** One try at extending a lock failed; there will be another while the lock is valid. */
export interface ExtendFailedEvent extends VoteEvent {
  /** What tells it from other events. */
  readonly type: "extend-failed";
  /** What was left of the old validity, in milliseconds. */
  readonly remainingMs: number;
}

/** A lock is no longer certain, though it was not released. */
export interface LostEvent extends LockEvent {
  /** What tells it from other events. */
  readonly type: "lost";
  /** Why. */
  readonly cause: Error;
  /** How long the lock was held, in milliseconds. */
  readonly heldMs: number;
}

/** A lock was released. */
export interface ReleasedEvent extends VoteEvent {
  /** What tells it from other events. */
  readonly type: "released";
  /** `false` where it was gone already. */
  readonly confirmed: boolean;
  /** How long the lock was held, in milliseconds. */
  readonly heldMs: number;
}

/** A release could not be confirmed: the TTL takes over. */
export interface ReleaseFailedEvent extends VoteEvent {
  /** What tells it from other events. */
  readonly type: "release-failed";
  /** What the caller of `release` was told. */
  readonly error: Error;
}

/** A node can be asked: its connection was made. */
export interface NodeConnectedEvent {
  /** What tells it from other events. */
  readonly type: "node-connected";
  /** The node's address without credentials. */
  readonly node: string;
}

/** A node cannot be asked: its connection was lost, or could not be made. */
export interface NodeDisconnectedEvent {
  /** What tells it from other events. */
  readonly type: "node-disconnected";
  /** The node's address without credentials. */
  readonly node: string;
  /** Why. */
  readonly error: Error;
}

/** A node granted, but may have forgotten locks, so that it does not count. Told once for each cause. */
export interface NodeQuarantinedEvent {
  /** What tells it from other events. */
  readonly type: "node-quarantined";
  /** The node's address without credentials. */
  readonly node: string;
  /** `restarted` by its uptime; `emptied`, or new, by its birth key. */
  readonly reason: "restarted" | "emptied";
  /** For how much longer its grants do not count, in milliseconds. */
  readonly remainingMs: number;
}

/** A node does not tell of releases: calls that wait poll instead, if too few others do. Told once a node. */
export interface NotifyRefusedEvent {
  /** What tells it from other events. */
  readonly type: "notify-refused";
  /** The node's address without credentials. */
  readonly node: string;
  /** Why. */
  readonly error: Error;
}

/** Everything that is told, discriminated by `type`. */
export type RedlockEvent =
  | AttemptEvent
  | WokenEvent
  | AcquiredEvent
  | DeniedEvent
  | ExtendedEvent
  | ExtendFailedEvent
  | LostEvent
  | ReleasedEvent
  | ReleaseFailedEvent
  | NodeConnectedEvent
  | NodeDisconnectedEvent
  | NodeQuarantinedEvent
  | NotifyRefusedEvent;

/** A listener. */
export type EventListener = (event: RedlockEvent) => void;

/** Tells a listener; one that throws changes nothing. */
export function emit(listener: EventListener, event: RedlockEvent): void {
  try {
    const result: unknown = listener(event);
    if (result instanceof Promise) result.catch(() => {});
  } catch {
    // A listener observes; what it thinks of an event is no concern of the lock's.
  }
}
