/**
 * What happens, told as it happens: for logs, metrics and traces.
 *
 * @module
 */
import type { Vote } from "./node.ts";

/** One attempt at a lock is over, whatever came of it. */
export interface AttemptEvent {
  readonly type: "attempt";
  readonly resources: readonly string[];
  /** Which attempt of this call it was, from 1. */
  readonly attempt: number;
  /** Whether it won the lock. */
  readonly granted: boolean;
  readonly votes: readonly Vote[];
  /** How long the attempt took, in milliseconds. */
  readonly elapsedMs: number;
}

/** A lock was acquired. */
export interface AcquiredEvent {
  readonly type: "acquired";
  readonly resources: readonly string[];
  readonly votes: readonly Vote[];
  /** How many attempts it took. */
  readonly attempts: number;
  /** From the call to the lock, in milliseconds. */
  readonly elapsedMs: number;
  /** What was left of the validity, in milliseconds. */
  readonly remainingMs: number;
}

/** A call ended without a lock, because others hold it or because too few nodes answered. */
export interface DeniedEvent {
  readonly type: "denied";
  readonly resources: readonly string[];
  readonly reason: "held" | "no-quorum";
  readonly votes: readonly Vote[];
  /** How many attempts were made. */
  readonly attempts: number;
  /** From the call to its end, in milliseconds. */
  readonly elapsedMs: number;
}

/** A lock was extended. */
export interface ExtendedEvent {
  readonly type: "extended";
  readonly resources: readonly string[];
  readonly votes: readonly Vote[];
  /** How many extensions the lock has had. */
  readonly extensions: number;
  /** How long it took, in milliseconds. */
  readonly elapsedMs: number;
  /** The new validity that was left, in milliseconds. */
  readonly remainingMs: number;
}

/** One try at extending a lock failed; the lock stands, and there will be another try. */
export interface ExtendFailedEvent {
  readonly type: "extend-failed";
  readonly resources: readonly string[];
  readonly votes: readonly Vote[];
  /** How long it took, in milliseconds. */
  readonly elapsedMs: number;
  /** What was left of the old validity, in milliseconds. */
  readonly remainingMs: number;
}

/** A lock is no longer certain, though it was not released. */
export interface LostEvent {
  readonly type: "lost";
  readonly resources: readonly string[];
  /** Why. */
  readonly cause: unknown;
  /** How long the lock was held, in milliseconds. */
  readonly heldMs: number;
}

/** A lock was released. */
export interface ReleasedEvent {
  readonly type: "released";
  readonly resources: readonly string[];
  readonly votes: readonly Vote[];
  /** `false` where it was gone already. */
  readonly confirmed: boolean;
  /** How long the release took, in milliseconds. */
  readonly elapsedMs: number;
  /** How long the lock was held, in milliseconds. */
  readonly heldMs: number;
}

/** A release could not be confirmed: the TTL takes over. */
export interface ReleaseFailedEvent {
  readonly type: "release-failed";
  readonly resources: readonly string[];
  readonly votes: readonly Vote[];
  readonly error: Error;
  /** How long it took, in milliseconds. */
  readonly elapsedMs: number;
}

/** A node can be asked: its connection was made. */
export interface NodeConnectedEvent {
  readonly type: "node-connected";
  /** The node's address without credentials. */
  readonly node: string;
}

/** A node cannot be asked: its connection was lost, or could not be made. */
export interface NodeDisconnectedEvent {
  readonly type: "node-disconnected";
  /** The node's address without credentials. */
  readonly node: string;
  readonly error: Error;
}

/** Everything that is told, discriminated by `type`. */
export type RedlockEvent =
  | AttemptEvent
  | AcquiredEvent
  | DeniedEvent
  | ExtendedEvent
  | ExtendFailedEvent
  | LostEvent
  | ReleasedEvent
  | ReleaseFailedEvent
  | NodeConnectedEvent
  | NodeDisconnectedEvent;

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
