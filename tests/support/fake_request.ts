/**
 * A request without a round: it writes down what nodes answer.
 *
 * @module
 */
import type { QueuePosition, QueueTicket } from "../../src/quorum/queue_ticket.ts";
import type { QuorumRequest } from "../../src/quorum/quorum_node.ts";

/** The id of the ticket of {@linkcode ticketOf}; its client is `id`. */
export const TICKET_ID = "id:1";

/** Its score. */
export const SCORE = 1_700_000_000_000_000;

/** The ticket of a caller that waits. */
export function ticketOf(...stuck: string[]): QueueTicket {
  return {
    ticketId: TICKET_ID,
    stuck,
    score: SCORE,
    agreed: false,
    onEnqueued() {},
  };
}

/** What one node answered: how, its index, when by the monotonic clock or why not, and what it counted or queued. */
export type Answer = readonly [
  outcome: "granted" | "denied" | "missing" | "queued" | "failed" | "quarantined",
  nodeIndex: number,
  atMsOrMessage: number | string | undefined,
  detail?: number | QueuePosition,
];

/** A request about some keys, with a TTL of a second by default. */
export class FakeRequest implements QuorumRequest {
  readonly keys: readonly string[];
  readonly value: string = "v";
  readonly ttlMs: number = 1_000;
  wanted = true;
  /** What it says of every node. */
  set = false;
  /** Whether the failure was that nothing was sent. */
  unsent = false;
  shared: unknown = undefined;
  readonly guardMs: number = 0;
  readonly counterFloor?: number;
  countMin: number | undefined = undefined;
  readonly replaces?: string;
  readonly mode?: "shared";
  readonly ticket?: QueueTicket;
  readonly keepsTicket: boolean = false;
  hasWaiters = false;
  /** What was answered, in order. */
  readonly answers: Answer[] = [];
  /** The errors among it. */
  readonly errors: Error[] = [];

  constructor(keys: string | readonly string[] = "k", parts: Partial<QuorumRequest> = {}) {
    this.keys = typeof keys === "string" ? [keys] : keys;
    Object.assign(this, parts);
  }

  #onAnswered = () => {};
  /** Resolves with the first answer. */
  readonly answered: Promise<void> = new Promise((resolve) => this.#onAnswered = resolve);

  /** The first word of each answer. */
  get outcomes(): string[] {
    return this.answers.map(([outcome]) => outcome);
  }

  maySet(): boolean {
    return this.set;
  }

  contended(nodeIndex: number, atMs?: number): void {
    this.hasWaiters = true;
    this.grant(nodeIndex, atMs);
  }

  outdated(nodeIndex: number, countMin: number, atMs?: number): void {
    this.countMin = countMin;
    this.grant(nodeIndex, atMs);
  }

  grant(nodeIndex: number, atMs?: number, count?: number): void {
    const answer = ["granted", nodeIndex, atMs] as const;
    this.note(count === undefined ? answer : [...answer, count]);
  }

  deny(nodeIndex: number, atMs?: number): void {
    this.note(["denied", nodeIndex, atMs]);
  }

  enqueued(nodeIndex: number, position: QueuePosition, atMs?: number): void {
    this.note(["queued", nodeIndex, atMs, position]);
  }

  quarantine(nodeIndex: number, atMs?: number): void {
    this.note(["quarantined", nodeIndex, atMs]);
  }

  fail(nodeIndex: number, error: Error, unsent = false): void {
    this.unsent = unsent;
    this.errors.push(error);
    this.note(["failed", nodeIndex, error.message]);
  }

  /** Writes down an answer. */
  note(answer: Answer): void {
    this.answers.push(answer);
    this.#onAnswered();
  }
}
