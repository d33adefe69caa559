/** A request without a round: it writes down what nodes answer. */
import {
  CONTENDED,
  DENIED,
  type Detail,
  FAILED,
  GRANTED,
  MISSING,
  type Outcome,
  OUTDATED,
  QUARANTINED,
  QUEUED,
  UNSENT,
} from "../../src/quorum/outcome.ts";
import type { QueuePosition, QueueTicket } from "../../src/quorum/queue_ticket.ts";
import type { QuorumRequest } from "../../src/quorum/quorum_node.ts";

/** The id of the ticket of {@linkcode ticketOf}; its client is `id`. */
export const TICKET_ID = "id:1";

/** Its score. */
export const SCORE = 1_700_000_000_000_000;

/** The ticket of a caller that waits. */
export function ticketOf(): QueueTicket {
  return {
    ticketId: TICKET_ID,
    score: SCORE,
    agreed: false,
    onEnqueued() {},
    onPutBack() {},
  };
}

/**
 * What one node answered: how, its index, when by the monotonic clock or why not, and what it
 * counted or queued.
 */
export type Answer = readonly [
  outcome: "granted" | "denied" | "missing" | "queued" | "failed" | "quarantined",
  nodeIndex: number,
  atMsOrMessage: number | string | undefined,
  detail?: number | QueuePosition,
];

/** The first words of answers, by their outcomes. */
const WORDS: Readonly<Record<Outcome, Answer[0]>> = {
  [GRANTED]: "granted",
  [CONTENDED]: "granted",
  [OUTDATED]: "granted",
  [DENIED]: "denied",
  [MISSING]: "missing",
  [QUEUED]: "queued",
  [QUARANTINED]: "quarantined",
};

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
  encoded: unknown = undefined;
  readonly guardMs: number = 0;
  readonly counterHint?: number;
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

  mayHaveKeys(): boolean {
    return this.set;
  }

  answer(nodeIndex: number, outcome: Outcome, detail?: Detail, atMs?: number): void {
    if (outcome === FAILED || outcome === UNSENT) {
      const error = detail as Error;
      this.unsent = outcome === UNSENT;
      this.errors.push(error);
      return this.note(["failed", nodeIndex, error.message]);
    }
    if (outcome === CONTENDED) this.hasWaiters = true;
    if (outcome === OUTDATED) this.countMin = detail as number;
    const noted = [WORDS[outcome], nodeIndex, atMs] as const;
    const isNoted = outcome === QUEUED || outcome === GRANTED && detail !== undefined;
    this.note(isNoted ? [...noted, detail as number | QueuePosition] : noted);
  }

  /** Writes down an answer. */
  note(answer: Answer): void {
    this.answers.push(answer);
    this.#onAnswered();
  }
}
