/**
 * Waiting between two attempts: the seam behind which a call learns that it may be worth asking again.
 *
 * @module
 */
import type { QueueTicket } from "../quorum/queue_ticket.ts";
import type { Round } from "../quorum/round.ts";

/** What a call waits for. */
export interface WaitingCall {
  /** The name of its queue in this client. */
  readonly name: string;
  /** The name of what it locks. */
  readonly lockName: string;
  /** The keys. */
  readonly keys: readonly string[];
  /** Set if it locks any one of them. */
  readonly pool: unknown;
  /** Set if it is for a lock in shared mode. */
  readonly mode: "shared" | undefined;
}

/** How a call waits after it was denied. */
export interface Waiter {
  /** Begins the next attempt; returns the ticket that the nodes are to put in their queues, if there is one. */
  nextTicket(): QueueTicket | undefined;
  /** Whether the last wait ended because a node notified the call of a release. */
  readonly notified: boolean;
  /** The index of the key in the pool to ask for next; `undefined` if it does not matter which. */
  readonly place?: number | undefined;
  /** Resolves when a first attempt with a ticket can be made; `signal` and the end of `limitMs` cut it short. */
  ready?(limitMs: number, signal: AbortSignal | undefined): Promise<void>;
  /**
   * Resolves when the next attempt is due, when `signal` aborts, or when the client closes, whichever is first.
   *
   * @param attempt How many attempts failed before the last, from 0.
   * @param limitMs The longest wait, in milliseconds.
   * @param signal Ends the wait.
   * @param denied The last attempt.
   */
  wait(
    attempt: number,
    limitMs: number,
    signal: AbortSignal | undefined,
    denied: Round,
  ): Promise<void>;
}
