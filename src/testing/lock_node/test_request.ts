/**
 * A request without a client, which records what a node answers.
 *
 * @module
 */
import type { LockRequest } from "../../quorum/lock_node.ts";
import type { QueuePosition, QueueTicket } from "../../quorum/queue_ticket.ts";

/** What a node answered. */
export interface TestAnswer {
  /** The method of the request that it called. */
  readonly outcome: "granted" | "denied" | "missing" | "enqueued" | "quarantined" | "failed";
  /** With a grant: the counter. */
  readonly count?: number | undefined;
  /** With a place in the queue: the place. */
  readonly position?: QueuePosition;
  /** With a failure: the reason. */
  readonly error?: Error;
}

/** What a request asks for. */
export interface TestRequestOptions {
  readonly keys: readonly string[];
  readonly value: string;
  readonly ttlMs: number;
  readonly counterFloor?: number | undefined;
  readonly ticket?: QueueTicket | undefined;
}

/** See the module. */
export class TestRequest implements LockRequest {
  readonly keys: readonly string[];
  readonly value: string;
  readonly ttlMs: number;
  readonly counterFloor: number | undefined;
  readonly ticket: QueueTicket | undefined;
  readonly keepsTicket = false;
  readonly guardMs = 0;
  wanted = true;
  maybeSet = 0;
  shared: unknown = undefined;
  hasWaiters = false;
  /** Resolves to the first answer. */
  readonly answer: Promise<TestAnswer>;
  /** What is wrong with how the node answered. */
  complaint: string | undefined = undefined;
  readonly #nodeIndex: number;
  #resolve!: (answer: TestAnswer) => void;
  #answers = 0;

  /**
   * @param nodeIndex The index that the node is asked with.
   * @param options What it is asked for.
   */
  constructor(nodeIndex: number, { keys, value, ttlMs, counterFloor, ticket }: TestRequestOptions) {
    this.keys = keys;
    this.value = value;
    this.ttlMs = ttlMs;
    this.counterFloor = counterFloor;
    this.ticket = ticket;
    this.#nodeIndex = nodeIndex;
    this.answer = new Promise((resolve) => this.#resolve = resolve);
  }

  grant(nodeIndex: number, _atMs?: number, count?: number): void {
    this.#settle(nodeIndex, { outcome: "granted", count });
  }

  deny(nodeIndex: number): void {
    this.#settle(nodeIndex, { outcome: "denied" });
  }

  missing(nodeIndex: number): void {
    this.#settle(nodeIndex, { outcome: "missing" });
  }

  enqueued(nodeIndex: number, position: QueuePosition): void {
    this.#settle(nodeIndex, { outcome: "enqueued", position });
  }

  quarantine(nodeIndex: number): void {
    this.#settle(nodeIndex, { outcome: "quarantined" });
  }

  fail(nodeIndex: number, error: Error): void {
    this.#settle(nodeIndex, { outcome: "failed", error });
  }

  #settle(nodeIndex: number, answer: TestAnswer): void {
    if (nodeIndex !== this.#nodeIndex) {
      this.complaint = `it answered with index ${nodeIndex} instead of ${this.#nodeIndex}`;
    }
    if (this.#answers++ > 0) this.complaint = "it answered a request twice";
    this.#resolve(answer);
  }
}
