/**
 * The events of the lock client, for logs, metrics and traces.
 *
 * @module
 */
import type { LockLostReason } from "./errors.ts";
import type { OwnContext } from "./time/own_context.ts";
import type { Vote } from "./vote.ts";

/** Fields of every event about a lock. */
export interface LockEvent {
  /**
   * The resources of the lock, in the order of the call. All events of one call and of its lock
   * have the same array, which no other call has: it can be the key of a `WeakMap`. With `any:
   * true`, the lock has an array of its own, and `anyOf` of `acquired` is that of the call.
   */
  readonly resources: readonly string[];
}

/** Fields of every event about requests to the nodes. */
export interface VoteEvent extends LockEvent {
  /** What the nodes had answered when the event was emitted. */
  readonly votes: readonly Vote[];
  /**
   * Duration of the attempt, the extension or the release, in milliseconds. In `acquired` and
   * `denied` it is the duration of the whole call.
   */
  readonly elapsedMs: number;
}

/** Fields of every event about a node. */
export interface NodeEvent {
  /** The name of the node: its address without credentials. */
  readonly node: string;
}

/**
 * Any event of the lock client, discriminated by `type`: `Extract<RedlockEvent, { type: "acquired"
 * }>` is one of them. No event contains a password or the value of a lock.
 */
export type RedlockEvent =
  /** Emitted when one attempt to acquire a lock is over, whatever its result. */
  | (VoteEvent & {
    readonly type: "attempt";
    /** The number of this attempt within its call, from 1. */
    readonly attempt: number;
    /**
     * Whether a quorum granted the lock in time. Then `acquired` follows. If the call was aborted
     * in the same tick, or the client closed, the call rejects, and the lock ends.
     */
    readonly granted: boolean;
  })
  /**
   * Emitted when a waiting call was notified that the lock may be free, before its next attempt.
   */
  | (LockEvent & {
    readonly type: "woken";
    /** How long the call has waited, in milliseconds. */
    readonly elapsedMs: number;
  })
  /** Emitted when a lock was acquired. */
  | (VoteEvent & {
    readonly type: "acquired";
    /** Who holds the lock now: {@linkcode Lock.holder}. */
    readonly holder: string;
    /** Set if the lock is in shared mode. */
    readonly mode?: "shared";
    /** With `any: true`, the resources of the call, of which it has one. */
    readonly anyOf?: readonly string[];
    /** If it was adopted, who held it before: the `holder` of the `handed-over` event. */
    readonly adoptedFrom?: string;
    /** The number of attempts of the call, from 1. */
    readonly attempts: number;
    /** The validity of the lock at that moment, in milliseconds. */
    readonly remainingMs: number;
  })
  /** Emitted when a call ended without a lock. Not emitted if the client was closed. */
  | (VoteEvent & {
    readonly type: "denied";
    /**
     * `held` if somebody else holds the lock or it is in its cooldown; `no-quorum` if too few nodes
     * answered; `aborted` if the call's signal ended it, and then without votes; `gone` if it
     * cannot be adopted any more.
     */
    readonly reason: "held" | "no-quorum" | "aborted" | "gone";
    /** Set if the lock was to be in shared mode. */
    readonly mode?: "shared";
    /** The number of attempts of the call; 0 if it waited for other calls of this client only. */
    readonly attempts: number;
  })
  /** Emitted when a lock was extended, by `autoExtend` or by `extend()`. */
  | (VoteEvent & {
    readonly type: "extended";
    /** The number of extensions of this lock so far, from 1. */
    readonly extensions: number;
    /** The new validity at that moment, in milliseconds. */
    readonly remainingMs: number;
  })
  /**
   * Emitted when one try to extend a lock failed. The client tries again while the lock is valid.
   */
  | (VoteEvent & {
    readonly type: "extend-failed";
    /** What was left of the old validity, in milliseconds. */
    readonly remainingMs: number;
  })
  /** Emitted when a lock was lost: it ended without a call of `release()`, or was gone before. */
  | (LockEvent & {
    readonly type: "lost";
    /** Why the lock was lost, for programs. */
    readonly reason: LockLostReason;
    /** The same in detail, for people. */
    readonly cause: Error;
    /** How long it was held, from the start of the attempt that won it, in milliseconds. */
    readonly heldMs: number;
  })
  /**
   * Emitted when a lock was handed over: it is not held by this client any more, and its keys stay.
   */
  | (LockEvent & {
    readonly type: "handed-over";
    /** Who held it until now; `adoptedFrom` of the `acquired` event with which it is adopted. */
    readonly holder: string;
    /** As in `lost`. */
    readonly heldMs: number;
  })
  /** Emitted when a call of `release()` is over and enough nodes answered it. */
  | (VoteEvent & {
    readonly type: "released";
    /** Whether the lock was still there and was deleted; `false` if it was already gone. */
    readonly confirmed: boolean;
    /** As in `lost`, until the end of the release. */
    readonly heldMs: number;
    /**
     * For how long the keys live on because of `atLeastMs`, in milliseconds; 0 if they are deleted.
     */
    readonly keptMs: number;
  })
  /**
   * Emitted when too few nodes answered a release to confirm it. The keys expire with their TTL.
   */
  | (VoteEvent & {
    readonly type: "release-failed";
    /** The error that `release()` rejected with. */
    readonly error: Error;
    /** As in `lost`, until the end of the release. */
    readonly heldMs: number;
  })
  /**
   * Emitted when a term of {@linkcode Redlock.lead} has failed: the lock was lost, the routine
   * threw, or so many nodes refuse for good that no quorum is left. The next one begins after a
   * pause.
   */
  | (LockEvent & {
    readonly type: "lead-failed";
    /** What the term failed with. */
    readonly error: unknown;
    /** How long the pause is, in milliseconds. */
    readonly delayMs: number;
  })
  /** Emitted when the connection to a node is ready for commands. */
  | (NodeEvent & { readonly type: "node-connected" })
  /**
   * Emitted when the connection to a node was lost, or the first one could not be opened. Not
   * emitted again while reconnecting fails.
   */
  | (NodeEvent & {
    readonly type: "node-disconnected";
    /**
     * Why there is no connection. The message of a {@linkcode ConnectionError} contains that the
     * server became a replica, or how many connections in a row it has ended right after the login
     * (`endedEarly`).
     */
    readonly error: Error;
  })
  /**
   * Emitted when a node's vote does not count, because the node may have lost keys less than
   * `restartGuardMs` ago. Emitted once per restart or loss.
   */
  | (NodeEvent & {
    readonly type: "node-quarantined";
    /**
     * `restarted` if its uptime is too short; `emptied` if its creation marker is missing or too
     * young.
     */
    readonly reason: "restarted" | "emptied";
    /** How much longer the node's grants do not count, in milliseconds. */
    readonly remainingMs: number;
  })
  /**
   * Emitted when a node refused `SUBSCRIBE` or `PUBLISH`, and therefore sends no notifications. If
   * fewer than a quorum of nodes send them, waiting calls poll. Emitted once per node.
   */
  | (NodeEvent & {
    readonly type: "notify-refused";
    /** The error that the node replied with, or with which its connections end. */
    readonly error: Error;
  })
  /**
   * Emitted when a node could not list its keys, or not all of them. The list then lacks what this
   * node alone has; every lock that is held is in it all the same.
   */
  | (NodeEvent & {
    readonly type: "list-failed";
    /** Why not; it names the right if one is missing. */
    readonly error: Error;
  });

/**
 * A listener for events, called synchronously, but never while another listener runs: an event that
 * one causes comes when that one has returned. An exception that it throws, or a rejection, is
 * ignored.
 */
export type EventListener = (event: RedlockEvent) => void;

/** Whether a listener is running, and what was emitted meanwhile. */
let emitting = false;
const later: [listener: EventListener, event: RedlockEvent][] = [];

/**
 * Calls a listener, if there is one, and ignores what it throws. An event that a listener causes,
 * by closing the client for example, is emitted when that listener has returned: else whatever the
 * listener calls next would get the two in the wrong order.
 */
export function emit(listener: EventListener | undefined, event: RedlockEvent): void {
  if (!listener) return;
  if (emitting) return void later.push([listener, event]);
  emitting = true;
  callIsolated(listener, event);
  for (let next = later.shift(); next; next = later.shift()) callIsolated(...next);
  emitting = false;
}

/** A listener for a client's own events, which are emitted in the async context of the client. */
export function listenerIn(
  context: OwnContext,
  listener: EventListener | undefined,
): EventListener | undefined {
  return listener && ((event) => context.run(() => emit(listener, event)));
}

/**
 * Calls a function of the program, and ignores what it throws or rejects with: that must not change
 * what happens to the lock.
 */
export function callIsolated<T>(call: (argument: T) => unknown, argument: T): void {
  try {
    const result = call(argument);
    if (typeof result === "object") new Promise((resolve) => resolve(result)).catch(() => {});
  } catch {
    // A faulty listener must not change what happens to the lock.
  }
}
