/**
 * Counting how the nodes answer one request.
 *
 * @module
 */
import type { Vote } from "../vote.ts";
import { TimerEntry } from "../time/timer_wheel.ts";
import {
  CONTENDED,
  isDenial,
  isGrant,
  MISSING,
  type Outcome,
  PENDING,
  QUEUED,
  TIMED_OUT,
  UNSENT,
} from "./outcome.ts";
import type { NodeSet } from "./quorum_node.ts";

/** What votes call each of these. */
const VOTES: readonly (Vote["outcome"] | undefined)[] = [
  undefined,
  "granted",
  "granted",
  "granted",
  "denied",
  "denied",
  "denied",
  "failed",
  "failed",
  "timed-out",
  "quarantined",
];
/**
 * A node's answer and when it came are one number: microseconds since the request, times this, plus
 * one of the above. So a lock keeps one small array.
 */
const OUTCOMES_MAX = 16;
const MICROSECONDS_PER_MS = 1_000;
/**
 * The answers before any node has answered, of as many nodes as a client may have: a copy is faster
 * than to fill an array.
 */
const NONE_ANSWERED: readonly number[] = /* @__PURE__ */ new Array(31).fill(PENDING);

/** What the nodes have counted for a fencing token. */
export interface Counts {
  /** The counter that each node answered last. */
  readonly last: (number | undefined)[];
  /** The value to which counters must be raised at least, because a node's may be outdated. */
  min: number;
}

/** The state of a vote that may not be complete. */
export type Decision = "open" | "granted" | "refused";

/**
 * Decides a vote: granted once a quorum granted, refused once no quorum can be reached any more,
 * also if N is even.
 */
export function decide(granted: number, pending: number, quorum: number): Decision {
  if (granted >= quorum) return "granted";
  // mutation: settled-by-grants-alone
  return granted + pending < quorum ? "refused" : "open";
}

/** How the nodes have answered one request so far: what a round has of it. */
export abstract class Tally<Nodes extends NodeSet = NodeSet> extends TimerEntry {
  /** How many nodes granted, and how many denied. */
  granted = 0;
  denied = 0;
  /** How many failed, did not answer in time, or are in quarantine. */
  failed = 0;
  /** Whether a refusal waits for more answers, because the reason matters. */
  waitsForReasons = false;
  /** One bit a node: which nodes were asked to set missing keys again. */
  filledInOn = 0;
  // Set on few tallies, so all others have no place for them.
  /** With fencing tokens, what the nodes have counted. */
  declare counts?: Counts;
  /** Called for every node that denies from now on. */
  declare onDenied?: (nodeIndex: number, missing: boolean) => void;
  /** Why nodes failed, by their indexes. */
  declare errors?: Error[];
  /** When the request began, by the monotonic clock. */
  readonly sinceMs: number;
  /** The nodes that are asked. */
  readonly nodeSet: Nodes;
  readonly #answers: number[];

  constructor(nodeSet: Nodes, sinceMs: number) {
    super();
    this.nodeSet = nodeSet;
    this.sinceMs = sinceMs;
    this.#answers = NONE_ANSWERED.slice(0, nodeSet.nodes.length);
  }

  /** How many nodes have not answered, and still have time to. */
  get pending(): number {
    return this.nodeSet.nodes.length - this.granted - this.denied - this.failed;
  }

  /** The decision by the votes so far. */
  get decision(): Decision {
    return decide(this.granted, this.pending, this.nodeSet.quorum);
  }

  /** Whether so many nodes gave no answer that the others are too few for a quorum. */
  get unanswered(): boolean {
    return this.failed > this.nodeSet.nodes.length - this.nodeSet.quorum;
  }

  /** Whether so many nodes denied that the others are too few for a quorum. */
  get deniedByMajority(): boolean {
    return this.denied > this.nodeSet.nodes.length - this.nodeSet.quorum;
  }

  /** Whether there is nothing more to wait for. */
  get settled(): boolean {
    const { decision } = this;
    if (decision !== "refused" || !this.waitsForReasons) return decision !== "open";
    // A release without a quorum has to know why: the lock was gone, or the nodes do not answer.
    return this.deniedByMajority || this.pending === 0;
  }

  /** Whether a node granted. */
  grantedBy(nodeIndex: number): boolean {
    return isGrant(this.#outcomeOf(nodeIndex));
  }

  /** Whether a node denied. */
  deniedBy(nodeIndex: number): boolean {
    return isDenial(this.#outcomeOf(nodeIndex));
  }

  /** Whether a node denied, and has put the ticket in its queues. */
  queuedBy(nodeIndex: number): boolean {
    return this.#outcomeOf(nodeIndex) === QUEUED;
  }

  /** Whether a node has not answered, and still has time to. */
  pendingOn(nodeIndex: number): boolean {
    return this.#outcomeOf(nodeIndex) === PENDING;
  }

  /**
   * Whether keys of the lock may be set on a node: one that denied or got nothing has none, unless
   * it was filled in.
   */
  maySet(nodeIndex: number): boolean {
    if (this.filledInOn & 1 << nodeIndex) return true;
    if (this.deniedBy(nodeIndex)) return this.nodeSet.nodes[nodeIndex].resends === true;
    return this.#outcomeOf(nodeIndex) !== UNSENT;
  }

  /**
   * Calls `act` for every node that denied, and for each that will, with whether it has only found
   * keys missing.
   */
  forEachDenied(act: (nodeIndex: number, missing: boolean) => void): void {
    this.#answers.forEach((_, nodeIndex) => {
      if (this.deniedBy(nodeIndex)) act(nodeIndex, this.#outcomeOf(nodeIndex) === MISSING);
    });
    this.onDenied = act;
  }

  /** How many nodes answered that keys are missing. */
  get missing(): number {
    return this.#answers.filter((_, nodeIndex) => this.#outcomeOf(nodeIndex) === MISSING).length;
  }

  /** Whether a node that released the keys answered that others wait for them. */
  get hasWaiters(): boolean {
    return this.#answers.some(isContended);
  }

  /** How long the slowest node took that has granted or denied, in milliseconds. */
  get slowestMs(): number {
    return Math.max(
      0,
      ...this.#answers.map((_, nodeIndex) => {
        const answered = this.grantedBy(nodeIndex) || this.deniedBy(nodeIndex);
        return answered ? this.#elapsedMsOf(nodeIndex) : 0;
      }),
    );
  }

  /** The answers so far; a node is left out that has not answered and still has time to. */
  get votes(): readonly Vote[] {
    const votes: Vote[] = [];
    this.nodeSet.nodes.forEach(({ name: node }, nodeIndex) => {
      const outcome = VOTES[this.#outcomeOf(nodeIndex)];
      if (!outcome) return;
      const elapsedMs = this.#elapsedMsOf(nodeIndex);
      const error = this.errors?.[nodeIndex];
      votes.push(error ? { node, outcome, elapsedMs, error } : { node, outcome, elapsedMs });
    });
    return votes;
  }

  /**
   * Notes an answer, or that none came in time. A late answer counts, and replaces the node's
   * time-out; a second one does not.
   *
   * @param outcome How the node answered.
   * @param atMs When, by the monotonic clock.
   * @param count With fencing tokens, the node's counter.
   */
  note(nodeIndex: number, outcome: Outcome, atMs: number, count?: number): void {
    const before = this.#outcomeOf(nodeIndex);
    if (before === TIMED_OUT) this.failed--;
    else if (before !== PENDING) return;
    const elapsedUs = Math.max(Math.round((atMs - this.sinceMs) * MICROSECONDS_PER_MS), 0);
    this.#answers[nodeIndex] = elapsedUs * OUTCOMES_MAX + outcome;
    // mutation: filled-in-node-counts
    const granted = isGrant(outcome);
    const denied = isDenial(outcome);
    if (granted) this.granted++;
    else if (denied) this.denied++;
    else this.failed++;
    if (denied) this.onDenied?.(nodeIndex, outcome === MISSING);
    if (!this.counts) return;
    // the key is gone, so its counter does not count
    if (denied) this.counts.last[nodeIndex] = undefined;
    else if (count !== undefined) this.counts.last[nodeIndex] = count;
  }

  /** Notes why a node failed. */
  noteError(nodeIndex: number, error: Error): void {
    (this.errors ??= [])[nodeIndex] ??= error;
  }

  #outcomeOf(nodeIndex: number): number {
    return this.#answers[nodeIndex] % OUTCOMES_MAX;
  }

  #elapsedMsOf(nodeIndex: number): number {
    return Math.floor(this.#answers[nodeIndex] / OUTCOMES_MAX) / MICROSECONDS_PER_MS;
  }
}

function isContended(answer: number): boolean {
  return answer % OUTCOMES_MAX === CONTENDED;
}
