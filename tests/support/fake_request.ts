/**
 * A ballot without a round: it writes down what a node answered.
 *
 * @module
 */
import type { LockRequest } from "../../src/quorum/lock_node.ts";

/** What one node answered: how, in which seat, and when by the monotonic clock or why not. */
export type Answer = readonly [
  outcome: "granted" | "denied" | "failed" | "quarantined",
  seat: number,
  atMsOrMessage: number | string | undefined,
];

/** A question about some keys, for a second unless told otherwise. */
export class FakeRequest implements LockRequest {
  readonly keys: readonly string[];
  readonly value: string;
  ttlMs = 1_000;
  wanted = true;
  maybeSet = 0;
  shared: unknown = undefined;
  guardMs = 0;
  /** What was answered, in order. */
  readonly answers: Answer[] = [];
  /** The errors among it. */
  readonly errors: Error[] = [];

  constructor(keys: string | readonly string[] = "k", value = "v") {
    this.keys = typeof keys === "string" ? [keys] : keys;
    this.value = value;
  }

  grant(nodeIndex: number, atMs?: number): void {
    this.answers.push(["granted", nodeIndex, atMs]);
  }

  deny(nodeIndex: number, atMs?: number): void {
    this.answers.push(["denied", nodeIndex, atMs]);
  }

  quarantine(nodeIndex: number, atMs?: number): void {
    this.answers.push(["quarantined", nodeIndex, atMs]);
  }

  fail(nodeIndex: number, error: Error): void {
    this.errors.push(error);
    this.answers.push(["failed", nodeIndex, error.message]);
  }
}
