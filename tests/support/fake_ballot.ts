/**
 * A ballot without a round: it writes down what a node answered.
 *
 * @module
 */
import type { Ballot } from "../../src/quorum/lock_node.ts";

/** What one node answered: how, in which seat, and when by the monotonic clock or why not. */
export type Answer = readonly [
  outcome: "granted" | "denied" | "failed" | "quarantined",
  seat: number,
  atMsOrMessage: number | string | undefined,
];

/** A question about some keys, for a second unless told otherwise. */
export class FakeBallot implements Ballot {
  readonly keys: readonly string[];
  readonly value: string;
  ttlMs = 1_000;
  wanted = true;
  mayStand = 0;
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

  grant(seat: number, atMs?: number): void {
    this.answers.push(["granted", seat, atMs]);
  }

  deny(seat: number, atMs?: number): void {
    this.answers.push(["denied", seat, atMs]);
  }

  quarantine(seat: number, atMs?: number): void {
    this.answers.push(["quarantined", seat, atMs]);
  }

  fail(seat: number, error: Error): void {
    this.errors.push(error);
    this.answers.push(["failed", seat, error.message]);
  }
}
