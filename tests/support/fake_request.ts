/**
 * A request without a round: it writes down what nodes answer.
 *
 * @module
 */
import type { LockRequest } from "../../src/quorum/lock_node.ts";
import type { QueuePosition, QueuePriority, QueueTicket } from "../../src/quorum/queue_ticket.ts";

/** The id of the ticket of {@linkcode ticketOf}; its client is `id`. */
export const TICKET_ID = "id:1";

/** Its score. */
export const SCORE = 1_700_000_000_000_000;

/** The ticket of a caller that waits. */
export function ticketOf(priority: QueuePriority = "in-order"): QueueTicket {
  return { ticketId: TICKET_ID, priority, score: SCORE, onEnqueued() {} };
}

/** What one node answered: how, its index, when by the monotonic clock or why not, and what it counted or queued. */
export type Answer = readonly [
  outcome: "granted" | "denied" | "queued" | "failed" | "quarantined",
  nodeIndex: number,
  atMsOrMessage: number | string | undefined,
  detail?: number | QueuePosition,
];

/** A request about some keys, with a TTL of a second by default. */
export class FakeRequest implements LockRequest {
  readonly keys: readonly string[];
  readonly value: string = "v";
  readonly ttlMs: number = 1_000;
  wanted = true;
  maybeSet = 0;
  shared: unknown = undefined;
  readonly guardMs: number = 0;
  readonly counterFloor?: number;
  counterFloorNext: number | undefined = undefined;
  readonly ticket?: QueueTicket;
  readonly keepsTicket: boolean = false;
  hasWaiters = false;
  /** What was answered, in order. */
  readonly answers: Answer[] = [];
  /** The errors among it. */
  readonly errors: Error[] = [];

  constructor(keys: string | readonly string[] = "k", parts: Partial<LockRequest> = {}) {
    this.keys = typeof keys === "string" ? [keys] : keys;
    Object.assign(this, parts);
  }

  /** The first word of each answer. */
  get outcomes(): string[] {
    return this.answers.map(([outcome]) => outcome);
  }

  grant(nodeIndex: number, atMs?: number, count?: number): void {
    const answer = ["granted", nodeIndex, atMs] as const;
    this.answers.push(count === undefined ? answer : [...answer, count]);
  }

  deny(nodeIndex: number, atMs?: number): void {
    this.answers.push(["denied", nodeIndex, atMs]);
  }

  enqueued(nodeIndex: number, position: QueuePosition, atMs?: number): void {
    this.answers.push(["queued", nodeIndex, atMs, position]);
  }

  quarantine(nodeIndex: number, atMs?: number): void {
    this.answers.push(["quarantined", nodeIndex, atMs]);
  }

  fail(nodeIndex: number, error: Error): void {
    this.errors.push(error);
    this.answers.push(["failed", nodeIndex, error.message]);
  }
}
