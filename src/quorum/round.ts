/**
 * Asking all nodes at once and deciding as soon as a decision is possible.
 *
 * @module
 */
import { offAbort, onAbort } from "../time/abort_listeners.ts";
import { answerDueMs } from "./answer_due.ts";
import { decide, type Decision, quorumSize } from "./decision.ts";
import type { KeyPool, QuorumNode, QuorumRequest } from "./quorum_node.ts";
import type { QueuePosition, QueueTicket } from "./queue_ticket.ts";
import type { Vote } from "../vote.ts";
import { TimerEntry, type TimerWheel } from "../time/timer_wheel.ts";

/** The nodes, and what is needed to ask them. */
export interface NodeSet {
  /** The nodes; a node's index names it in requests and bit sets. */
  readonly nodes: readonly QuorumNode[];
  /** How many of them must grant. */
  readonly quorum: number;
  /** The timer wheel of the deadlines. */
  readonly wheel: TimerWheel;
  /** Whether the client of these nodes was closed; missing: it is open. */
  readonly closed?: boolean;
}

/** The nodes of a client, with the quorum of their number. */
export function createNodeSet(wheel: TimerWheel, nodes: readonly QuorumNode[]): NodeSet {
  return { nodes, quorum: quorumSize(nodes.length), wheel };
}

/** Sends one node the request of a round. */
export type Question = (node: QuorumNode, request: QuorumRequest, nodeIndex: number) => void;

/** How long a denied round with a ticket waits for the last nodes at least, in milliseconds. */
const LINGER_MS_MIN = 2;

/** The questions. Each is a constant function, so that asking allocates no closure. */
export const askToAcquire: Question = (node, request, index) => node.acquire(request, index);
export const askToAdopt: Question = (node, request, index) => node.adopt!(request, index);
export const askToExtend: Question = (node, request, index) => node.extend(request, index);
export const askToRaiseCounters: Question = (node, request, index) =>
  node.raiseCounters!(request, index);
/** See {@linkcode askToAcquire}. */
export const askToRelease: Question = (node, request, index) =>
  request.shortens ? node.extend(request, index) : node.release(request, index);

/**
 * A node's answer and its time in one number, so that a lock keeps one small array: microseconds since the round began,
 * times 8, plus one of these.
 */
const PENDING = 0, GRANTED = 1, DENIED = 2, FAILED = 3, TIMED_OUT = 4, QUARANTINED = 5, UNSENT = 6;
const OUTCOMES_MAX = 8;
const OUTCOMES = ["", "granted", "denied", "failed", "timed-out", "quarantined", "failed"] as const;
/** The answers before any node has answered, of as many nodes as a client may have: a copy is faster than to fill an array. */
const NONE_ANSWERED: readonly number[] = /* @__PURE__ */ new Array(31).fill(PENDING);

/**
 * One request to all nodes. It is its own request, deadline and starting time, so that an uncontended lock allocates one
 * object and one promise for it.
 */
export class Round<Nodes extends NodeSet = NodeSet> extends TimerEntry implements QuorumRequest {
  readonly keys: readonly string[];
  readonly value: string;
  ttlMs: number;
  mode: "shared" | undefined;
  entersAtOnce = false;
  shared: unknown = undefined;
  ticket: QueueTicket | undefined = undefined;
  pool: KeyPool | undefined = undefined;
  /** With a pool, which of its keys are free on each node, as far as the node has said so. */
  free: number[] | undefined = undefined;
  hasWaiters = false;
  counterFloor: number | undefined = undefined;
  counterFloorNext: number | undefined = undefined;
  /** With fencing tokens, the counter that each node answered last. */
  counts: (number | undefined)[] | undefined = undefined;
  guardMs: number;
  /** How long it waits for first connections that are being made, in milliseconds: only an acquisition does. */
  connectingMs = 0;
  /** One bit a node: which nodes have put the ticket in their queues. */
  enqueuedOn = 0;
  /** One bit a node: which nodes answered that keys are missing. */
  missingOn = 0;
  /** One bit a node: which nodes were asked to set missing keys again. */
  filledInOn = 0;
  /** The monotonic clock when the round began, before the first byte was sent. */
  readonly monotonicMs: number;
  /** The continuous clock at the same moment. */
  readonly startMs: number;
  /** How many nodes granted, and how many denied. */
  granted = 0;
  denied = 0;
  /** How many failed, did not answer in time, or are in quarantine. */
  failed = 0;
  /** The nodes that are asked. */
  readonly nodeSet: Nodes;
  /** The round that won the lock which this one extends or releases. */
  readonly #origin: Round<Nodes> | undefined;
  #cancelled = false;
  readonly #answers: number[];
  #errors: Error[] | undefined = undefined;
  #timeoutMs = 0;
  /** Whether a refusal waits for more answers, because the reason matters. */
  #waitForReasons = false;
  #settle: (() => void) | undefined = undefined;
  #onMissing: ((nodeIndex: number) => void) | undefined = undefined;

  /**
   * @param nodeSet The nodes.
   * @param keys The keys of the lock.
   * @param value The value of the lock.
   * @param ttlMs Their TTL, in milliseconds.
   * @param origin The round that won the lock, if this one extends or releases it.
   */
  constructor(
    nodeSet: Nodes,
    keys: readonly string[],
    value: string,
    ttlMs: number,
    origin?: Round<Nodes>,
  ) {
    super();
    this.nodeSet = nodeSet;
    this.keys = keys;
    this.value = value;
    this.ttlMs = ttlMs;
    this.guardMs = origin?.guardMs ?? 0;
    this.mode = origin?.mode;
    this.#origin = origin;
    this.#answers = NONE_ANSWERED.slice(0, nodeSet.nodes.length);
    const { continuous } = nodeSet.wheel;
    this.monotonicMs = continuous.look();
    this.startMs = this.monotonicMs + continuous.steppedMs;
  }

  /** How much time may have passed since it began, in milliseconds. */
  get elapsedMs(): number {
    return this.nodeSet.wheel.continuous.nowMs() - this.startMs;
  }

  /** A round about the lock that this one won. */
  follow(ttlMs = this.ttlMs): Round<Nodes> {
    return new Round(this.nodeSet, this.keys, this.value, ttlMs, this);
  }

  /**
   * Asks every node, all in this tick.
   *
   * @param question Sends the request to one node.
   * @param timeoutMs How long one node may take, in milliseconds, from now or from the end of a first connecting that
   *   {@linkcode connectingMs} waits for.
   * @param signal Cuts the round short.
   * @returns A promise that resolves when the round is decided or was cut short, and never rejects.
   */
  ask(question: Question, timeoutMs: number, signal?: AbortSignal): Promise<void> {
    const { nodes, wheel } = this.nodeSet;
    this.#timeoutMs = timeoutMs;
    this.#waitForReasons = question === askToRelease;
    return new Promise((resolve) => {
      // Nothing is decided before all were asked, because an undo must follow the request that it undoes.
      for (let nodeIndex = 0; nodeIndex < nodes.length; nodeIndex++) {
        question(nodes[nodeIndex], this, nodeIndex);
      }
      this.shared = undefined; // the encoded command is sent, and must not live as long as the lock
      if (this.settled || signal?.aborted || this.nodeSet.closed) return resolve();
      this.#settle = signal ? stopOnAbort(this, signal, resolve) : resolve;
      // mutation: no-deadline
      wheel.schedule(this, this.monotonicMs + timeoutMs);
      wheel.ref();
    });
  }

  /** Whether an answer still matters: `false` when this round, or the lock that it belongs to, was cancelled. */
  get wanted(): boolean {
    return !this.#cancelled && (this.#origin?.wanted ?? true);
  }

  /** Forbids nodes to send anything more that could set a key. */
  cancel(): void {
    this.#cancelled = true;
  }

  /** The decision by the votes so far. */
  get decision(): Decision {
    const { nodes, quorum } = this.nodeSet;
    const pending = nodes.length - this.granted - this.denied - this.failed;
    return decide(this.granted, pending, quorum);
  }

  /** Whether so many nodes gave no answer that the others are too few for a quorum. */
  get unanswered(): boolean {
    return this.failed > this.nodeSet.nodes.length - this.nodeSet.quorum;
  }

  /** Whether so many nodes denied that the others are too few for a quorum. */
  get deniedByMajority(): boolean {
    return this.denied > this.nodeSet.nodes.length - this.nodeSet.quorum;
  }

  /** How many nodes answered that keys are missing. */
  get missingCount(): number {
    return this.nodeSet.nodes.filter((_, nodeIndex) => this.missingOn & 1 << nodeIndex).length;
  }

  /** Whether there is nothing more to wait for, so that an open round was cut short. */
  get settled(): boolean {
    const { decision } = this;
    if (decision !== "refused" || !this.#waitForReasons) return decision !== "open";
    // A release without a quorum has to know why: the lock was gone, or the nodes do not answer.
    const { nodes } = this.nodeSet;
    return this.deniedByMajority || this.granted + this.denied + this.failed === nodes.length;
  }

  /** Whether a node granted. */
  grantedBy(nodeIndex: number): boolean {
    return this.#answers[nodeIndex] % OUTCOMES_MAX === GRANTED;
  }

  /** Whether a node denied. */
  deniedBy(nodeIndex: number): boolean {
    return this.#answers[nodeIndex] % OUTCOMES_MAX === DENIED;
  }

  /** Whether keys of the lock may be set on a node: one that denied or got nothing has none, unless it was filled in. */
  maySet(nodeIndex: number): boolean {
    const round = this.#origin ?? this;
    if (round.filledInOn & 1 << nodeIndex) return true;
    const outcome = round.#answers[nodeIndex] % OUTCOMES_MAX;
    if (outcome === DENIED) return this.nodeSet.nodes[nodeIndex].resends === true;
    return outcome !== UNSENT;
  }

  /** Whether a node has not answered, and still has time to. */
  pendingOn(nodeIndex: number): boolean {
    return this.#answers[nodeIndex] % OUTCOMES_MAX === PENDING;
  }

  /** Calls `act` for every node that answered that keys are missing, and for each that will. */
  forEachMissing(act: (nodeIndex: number) => void): void {
    this.nodeSet.nodes.forEach((_, nodeIndex) => {
      if (this.missingOn & 1 << nodeIndex) act(nodeIndex);
    });
    this.#onMissing = act;
  }

  /** How long the slowest node took that has answered, in milliseconds. */
  get slowestMs(): number {
    let slowestUs = 0;
    for (const answer of this.#answers) {
      const outcome = answer % OUTCOMES_MAX;
      if (outcome !== GRANTED && outcome !== DENIED) continue;
      slowestUs = Math.max(slowestUs, Math.floor(answer / OUTCOMES_MAX));
    }
    return slowestUs / 1_000;
  }

  /** The answers so far; a node is left out that has not answered and still has time to. */
  get votes(): readonly Vote[] {
    const votes: Vote[] = [];
    this.nodeSet.nodes.forEach(({ name: node }, nodeIndex) => {
      const answer = this.#answers[nodeIndex];
      const outcome = OUTCOMES[answer % OUTCOMES_MAX];
      if (!outcome) return;
      const elapsedMs = Math.floor(answer / OUTCOMES_MAX) / 1_000;
      const error = this.#errors?.[nodeIndex];
      votes.push(error ? { node, outcome, elapsedMs, error } : { node, outcome, elapsedMs });
    });
    return votes;
  }

  // mutation: filled-in-node-counts
  grant(nodeIndex: number, atMs?: number, count?: number): void {
    this.#count(nodeIndex, count);
    if (this.#cast(nodeIndex, GRANTED, atMs)) this.granted++;
    this.#settleIfDecided();
  }

  /** Notes a counter; one that was raised counts only on a node that granted the lock. */
  #count(nodeIndex: number, count: number | undefined): void {
    if (!this.counts || count === undefined || this.#origin?.grantedBy(nodeIndex) === false) return;
    this.counts[nodeIndex] = count;
  }

  deny(nodeIndex: number, atMs?: number, free?: number): void {
    if (free !== undefined) (this.free ??= [])[nodeIndex] = free;
    if (this.counts) this.counts[nodeIndex] = undefined; // the key is gone, so its counter does not count
    if (this.#cast(nodeIndex, DENIED, atMs)) this.denied++;
    this.#settleIfDecided();
  }

  enqueued(
    nodeIndex: number,
    position: QueuePosition,
    atMs: number = this.nodeSet.wheel.clock.monotonicMs(),
  ): void {
    this.enqueuedOn |= 1 << nodeIndex;
    this.ticket?.onEnqueued(nodeIndex, position, this.monotonicMs, atMs);
    this.deny(nodeIndex, atMs, position.free);
  }

  missing(nodeIndex: number, atMs?: number): void {
    this.missingOn |= 1 << nodeIndex;
    // mutation: filled-in-node-counts
    this.deny(nodeIndex, atMs);
    this.#onMissing?.(nodeIndex);
  }

  quarantine(nodeIndex: number, atMs?: number): void {
    if (this.#cast(nodeIndex, QUARANTINED, atMs)) this.failed++;
    this.#settleIfDecided();
  }

  fail(nodeIndex: number, error: Error, unsent = false): void {
    if (this.#cast(nodeIndex, unsent ? UNSENT : FAILED)) {
      this.failed++;
      (this.#errors ??= [])[nodeIndex] = error;
    }
    this.#settleIfDecided();
  }

  /** Ends the wait for answers. */
  stop(): void {
    const settle = this.#settle;
    if (!settle) return;
    this.#settle = undefined;
    this.nodeSet.wheel.cancel(this);
    this.nodeSet.wheel.unref();
    settle();
  }

  override get isDeadline(): boolean {
    return true;
  }

  /** The deadline: marks the nodes that have not answered in time as timed out. */
  override onDue(): void {
    const { nodes, wheel } = this.nodeSet;
    const nowMs = wheel.clock.monotonicMs();
    if (this.ticket && this.settled) return this.stop();
    let nextMs = Infinity;
    for (let nodeIndex = 0; nodeIndex < nodes.length; nodeIndex++) {
      if (this.#answers[nodeIndex] !== PENDING) continue;
      const { monotonicMs, connectingMs } = this;
      const dueMs = answerDueMs(nodes[nodeIndex], monotonicMs, this.#timeoutMs, connectingMs);
      if (dueMs <= nowMs) {
        this.#note(nodeIndex, TIMED_OUT, nowMs);
        this.failed++;
      } else {
        nextMs = Math.min(nextMs, dueMs, nowMs + this.#timeoutMs);
      }
    }
    this.#settleIfDecided();
    if (this.#settle) wheel.schedule(this, nextMs);
  }

  override onClosed(): void {
    this.stop();
  }

  /** Notes an answer; returns whether it counts. A late answer counts, and replaces the node's time-out. */
  #cast(nodeIndex: number, outcome: number, atMs?: number): boolean {
    const before = this.#answers[nodeIndex] % OUTCOMES_MAX;
    if (before === TIMED_OUT) this.failed--;
    else if (before !== PENDING) return false;
    this.#note(nodeIndex, outcome, atMs ?? this.nodeSet.wheel.clock.monotonicMs());
    return true;
  }

  #note(nodeIndex: number, outcome: number, nowMs: number): void {
    const elapsedUs = Math.max(Math.round((nowMs - this.monotonicMs) * 1_000), 0);
    this.#answers[nodeIndex] = elapsedUs * OUTCOMES_MAX + outcome;
  }

  #settleIfDecided(): void {
    if (!this.#settle || !this.settled) return;
    const { nodes, wheel } = this.nodeSet;
    const missing = nodes.length - this.granted - this.denied - this.failed;
    if (!this.ticket || missing === 0 || this.decision !== "refused") return this.stop();
    // A caller that is denied waits anyway: as long again for the last nodes, which need no release if they deny too.
    const nowMs = wheel.clock.monotonicMs();
    const lingerMs = Math.max(nowMs - this.monotonicMs, LINGER_MS_MIN);
    wheel.schedule(this, Math.min(this.dueMs, nowMs + lingerMs));
  }
}

/** Has `signal` stop the round, and returns what settles it: with the listener gone. */
function stopOnAbort(round: Round, signal: AbortSignal, resolve: () => void): () => void {
  const stop = () => round.stop();
  onAbort(signal, stop);
  return () => {
    offAbort(signal, stop);
    resolve();
  };
}
