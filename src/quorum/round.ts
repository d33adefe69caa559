/**
 * Asking all nodes at once, counting how they answer, and deciding as soon as a decision is
 * possible.
 *
 * Read first `quorum_node.ts` (what a node is asked), `outcome.ts` (how it answers) and
 * `queue_ticket.ts` (what it says of a call that waits). `lock_node.ts` is the public form of a
 * node, which `adapted_node.ts` turns into ours.
 *
 * A `// mutation:` marks a statement that the tests break, to see that they notice it.
 *
 * @module
 */
import { offAbort, onAbort } from "../time/abort_listeners.ts";
import { TimerEntry } from "../time/timer_wheel.ts";
import type { Vote } from "../vote.ts";
import {
  CONTENDED,
  type Detail,
  FAILED,
  GRANTED,
  MISSING,
  type Outcome,
  OUTDATED,
  PENDING,
  QUEUED,
  TIMED_OUT,
  UNSENT,
  VOTE_BY_OUTCOME,
} from "./outcome.ts";
import {
  answerDueMs,
  type NodeSet,
  type Question,
  type QuorumRequest,
  type RequestDetails,
} from "./quorum_node.ts";
import type { QueuePosition } from "./queue_ticket.ts";

/** How long a denied round that lingers waits for the last nodes at least, in milliseconds. */
const LINGER_MS_MIN = 2;

/**
 * Most rounds of one kind that a client has under way: more would not be faster, and their nodes
 * would answer the last of them late. Those beyond wait, each before its validity begins.
 */
export const ROUNDS_MAX = 4_096;

/**
 * A node's answer and when it came are one number: microseconds since the request, times this, plus
 * the outcome. So a lock keeps one small array.
 */
const OUTCOMES_MAX = 16;
const MICROSECONDS_PER_MS = 1_000;

/** What the nodes have counted for a fencing token. */
export interface Counts {
  /** The counter that each node answered last. */
  readonly last: (number | undefined)[];
  /** To what counters must be raised at least, because a node's may be outdated. */
  floor: number;
  /** The token of the lock, once a quorum has counted alike. */
  token?: number;
}

/** Its details are properties of its own, if it has any. */
export interface Round extends RequestDetails {}

/**
 * One request to all nodes, and how they have answered it so far. It is its own request and
 * deadline, so that an uncontended lock allocates one object and one promise for it.
 */
export class Round extends TimerEntry implements QuorumRequest {
  // What is asked. More of it is in the details.
  /** The nodes that are asked. */
  readonly nodeSet: NodeSet;
  readonly keys: readonly string[];
  readonly value: string;
  /**
   * Their TTL, in milliseconds: what it asks for; of a round that has won a lock, the longest that
   * they have got.
   */
  ttlMs: number;
  encoded: unknown = undefined;
  /** The round that won the lock which this one extends or releases. */
  readonly #origin: Round | undefined;
  #isRelease = false;
  #cancelled = false;

  // When it began, before the first byte was sent, and how long it waits.
  /** When it began, by the continuous clock. */
  readonly startMs: number;
  /** The same by the monotonic clock. */
  readonly sinceMs: number;
  /**
   * How long it waits at most for first connections that are being made, in milliseconds: only an
   * acquisition does.
   */
  connectingMs = 0;
  /**
   * Whether its caller, who may not wait for others, asks again if the vote was split: then it has
   * to know whether a node granted.
   */
  seeksGrant = false;
  #timeoutMs = 0;
  #resolve: (() => void) | undefined;

  // What the nodes have answered.
  /** How many nodes granted, and how many denied. */
  granted = 0;
  denied = 0;
  /** How many failed, did not answer in time, or are in quarantine. */
  failed = 0;
  readonly #answers: number[];
  /** One bit a node: which nodes were asked to set missing keys again. */
  filledInOn = 0;
  // What follows is set on few rounds, so all others have no place for it.
  /** Why nodes failed, by their indexes. */
  declare errors?: Error[];
  /** With fencing tokens, what the nodes have counted, and the token once they agree. */
  declare counts?: Counts;
  /** Called for every node that denies from now on. */
  declare onDenied?: (nodeIndex: number, missing: boolean) => void;

  /**
   * @param nodeSet The nodes.
   * @param keys The keys of the lock.
   * @param value The value of the lock.
   * @param ttlMs Their TTL, in milliseconds.
   * @param details What else the request says.
   * @param origin The round that won the lock, if this one extends or releases it.
   */
  constructor(
    nodeSet: NodeSet,
    keys: readonly string[],
    value: string,
    ttlMs: number,
    details?: RequestDetails,
    origin?: Round,
  ) {
    super();
    const { continuous } = nodeSet.wheel;
    this.nodeSet = nodeSet;
    this.keys = keys;
    this.value = value;
    this.ttlMs = ttlMs;
    if (details) Object.assign(this, details);
    this.sinceMs = continuous.look();
    this.startMs = this.sinceMs + continuous.steppedMs;
    this.#origin = origin;
    this.#answers = new Array(nodeSet.nodes.length).fill(PENDING);
  }

  /** How much time may have passed since it began, in milliseconds. */
  get elapsedMs(): number {
    return this.nodeSet.wheel.continuous.nowMs() - this.startMs;
  }

  /**
   * How long ago it began, in milliseconds of the monotonic clock: what people are shown, which no
   * step of a clock spoils.
   */
  get ageMs(): number {
    return this.nodeSet.wheel.clock.monotonicMs() - this.sinceMs;
  }

  /** A round about the lock that this one won, with the same guard and mode. */
  follow(details?: RequestDetails): Round {
    const { nodeSet, keys, value, ttlMs, mode, guardMs } = this;
    const all = mode || guardMs ? { mode, guardMs, ...details } : details;
    return new Round(nodeSet, keys, value, ttlMs, all, this);
  }

  /**
   * Asks every node, all in this tick.
   *
   * @param question What it asks each node to do.
   * @param timeoutMs How long one node may take, in milliseconds, from now or from the end of a
   * first connecting that {@linkcode connectingMs} waits for.
   * @param signal Cuts the round short.
   * @returns A promise that resolves when the round is decided or was cut short, and never rejects.
   */
  ask(question: Question, timeoutMs: number, signal?: AbortSignal): Promise<void> {
    const { nodes, wheel } = this.nodeSet;
    if (wheel.closed) return Promise.resolve(); // as the nodes are
    this.#timeoutMs = timeoutMs;
    this.#isRelease = question === "release";
    for (let nodeIndex = 0; nodeIndex < nodes.length; nodeIndex++) {
      nodes[nodeIndex].ask(question, this, nodeIndex);
    }
    // It must not live as long as the lock: a node that has asked alone has left it here.
    this.encoded = undefined;
    const ended = this.nodeSet.closed && !this.#isRelease || signal?.aborted;
    if (ended || this.decided) return Promise.resolve();
    // mutation: no-deadline
    wheel.schedule(this, this.sinceMs + timeoutMs, true);
    wheel.ref();
    // Nothing is decided before all were asked, because an undo must follow the request that it
    // undoes.
    return new Promise((resolve) => {
      this.#resolve = signal ? stopOnAbort(this, signal, resolve) : resolve;
    });
  }

  /**
   * Whether an answer still matters: `false` when this round, or the lock that it belongs to, was
   * cancelled.
   */
  get wanted(): boolean {
    return !this.#cancelled && (this.#origin?.wanted ?? true);
  }

  /** Forbids nodes to send anything more that could set a key. */
  cancel(): void {
    this.#cancelled = true;
  }

  /** How many nodes have not answered, and still have time to. */
  get pending(): number {
    return this.nodeSet.nodes.length - this.granted - this.denied - this.failed;
  }

  /**
   * The decision by the votes so far: granted once a quorum granted, refused once no quorum can be
   * reached any more, also if N is even.
   */
  get decision(): "open" | "granted" | "refused" {
    const { granted, pending, nodeSet: { quorum } } = this;
    if (granted >= quorum) return "granted";
    // mutation: decided-by-grants-alone
    return granted + pending < quorum ? "refused" : "open";
  }

  /**
   * Whether so many nodes failed, timed out or are in quarantine that the others are too few for a
   * quorum.
   */
  get failedByMajority(): boolean {
    return this.failed > this.nodeSet.nodes.length - this.nodeSet.quorum;
  }

  /** Whether so many nodes denied that the others are too few for a quorum. */
  get deniedByMajority(): boolean {
    return this.denied > this.nodeSet.nodes.length - this.nodeSet.quorum;
  }

  /**
   * Whether there is nothing more to wait for. A release that is refused has to know whether the
   * lock was gone: it waits until a majority has denied, or all have answered.
   */
  get decided(): boolean {
    const { decision } = this;
    if (decision === "refused" && this.#isRelease) {
      return this.deniedByMajority || this.pending === 0;
    }
    return decision !== "open";
  }

  /** The vote of a node; `undefined`: it has not answered, and still has time to. */
  voteOf(nodeIndex: number): Vote["outcome"] | undefined {
    return VOTE_BY_OUTCOME[this.#outcomeOf(nodeIndex)];
  }

  /** Whether a node denied, and has put the ticket in its queues. */
  queuedBy(nodeIndex: number): boolean {
    return this.#outcomeOf(nodeIndex) === QUEUED;
  }

  /**
   * Whether keys of the lock may be set on a node, which may have been filled in: one that got
   * nothing has none, nor one that denied, unless its client may have sent the request twice.
   */
  mayHaveKeys(nodeIndex: number): boolean {
    if (this.#origin) return this.#origin.mayHaveKeys(nodeIndex);
    if (this.filledInOn & 1 << nodeIndex) return true;
    if (this.voteOf(nodeIndex) === "denied") return this.nodeSet.nodes[nodeIndex].resends === true;
    return this.#outcomeOf(nodeIndex) !== UNSENT;
  }

  /**
   * Calls `act` for every node that denied, and for each that will, with whether it has only found
   * keys missing.
   */
  forEachDenied(act: (nodeIndex: number, missing: boolean) => void): void {
    this.#answers.forEach((_, nodeIndex) => {
      if (this.voteOf(nodeIndex) !== "denied") return;
      act(nodeIndex, this.#outcomeOf(nodeIndex) === MISSING);
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
    const answered = this.votes.filter(({ outcome }) => ["granted", "denied"].includes(outcome));
    return Math.max(0, ...answered.map(({ elapsedMs }) => elapsedMs));
  }

  /** The answers so far; a node is left out that has not answered and still has time to. */
  get votes(): readonly Vote[] {
    const votes: Vote[] = [];
    this.nodeSet.nodes.forEach(({ name: node }, nodeIndex) => {
      const outcome = this.voteOf(nodeIndex);
      if (!outcome) return;
      const elapsedMs = this.#elapsedMsOf(nodeIndex);
      const error = this.errors?.[nodeIndex];
      votes.push(error ? { node, outcome, elapsedMs, error } : { node, outcome, elapsedMs });
    });
    return votes;
  }

  answer(
    nodeIndex: number,
    outcome: Outcome,
    detail?: Detail,
    atMs: number = this.nodeSet.wheel.clock.monotonicMs(),
  ): void {
    this.#note(nodeIndex, outcome, atMs, detail);
    this.#stopIfDecided();
  }

  /** Ends the wait for answers; called only while it waits. */
  stop(): void {
    const resolve = this.#resolve!;
    this.#resolve = undefined;
    this.nodeSet.wheel.cancel(this);
    this.nodeSet.wheel.unref();
    resolve();
  }

  /** The deadline: marks the nodes that have not answered in time as timed out. */
  override onDue(): void {
    const { nodeSet: { nodes, wheel } } = this;
    const timeoutMs = this.#timeoutMs;
    const nowMs = wheel.clock.monotonicMs();
    if (this.decided) return this.stop(); // it has lingered
    let nextMs = Infinity;
    for (let nodeIndex = 0; nodeIndex < nodes.length; nodeIndex++) {
      if (this.voteOf(nodeIndex)) continue;
      const dueMs = answerDueMs(nodes[nodeIndex], this.sinceMs, timeoutMs, this.connectingMs);
      if (dueMs <= nowMs) this.#note(nodeIndex, TIMED_OUT, nowMs);
      // by then the node may be ready, and its answer due earlier
      else nextMs = Math.min(nextMs, dueMs, nowMs + timeoutMs);
    }
    this.#stopIfDecided();
    if (this.#resolve) wheel.schedule(this, nextMs, true);
  }

  /** A release goes on while its client closes, which waits for it; until its nodes close. */
  override onClosed(): void {
    if (!this.#isRelease || this.nodeSet.wheel.closed) this.stop();
  }

  /**
   * Notes an answer, or that none came in time. A late answer counts, and replaces the node's
   * time-out; a second one does not.
   *
   * @param atMs When, by the monotonic clock.
   */
  #note(nodeIndex: number, outcome: Outcome, atMs: number, detail?: Detail): void {
    const before = this.#outcomeOf(nodeIndex);
    if (before === TIMED_OUT) this.failed--;
    else if (before !== PENDING) return;
    const elapsedUs = Math.max(Math.round((atMs - this.sinceMs) * MICROSECONDS_PER_MS), 0);
    this.#answers[nodeIndex] = elapsedUs * OUTCOMES_MAX + outcome;
    const vote = VOTE_BY_OUTCOME[outcome];
    // mutation: filled-in-node-counts
    if (vote === "granted") this.granted++;
    else if (vote === "denied") this.denied++;
    else this.failed++;
    if (outcome === FAILED || outcome === UNSENT) (this.errors ??= [])[nodeIndex] = detail as Error;
    if (this.counts) this.#noteCounter(this.counts, nodeIndex, outcome, detail);
    if (vote === "denied") this.#noteDenial(nodeIndex, outcome, atMs, detail);
  }

  #noteCounter(counts: Counts, nodeIndex: number, outcome: Outcome, detail?: Detail): void {
    // the key is gone, so its counter does not count
    if (VOTE_BY_OUTCOME[outcome] === "denied") counts.last[nodeIndex] = undefined;
    if (outcome === OUTDATED) counts.floor = Math.max(counts.floor, detail as number);
    // A node that raised it may be in quarantine, which only its answer to the attempt says.
    const isGranted = (this.#origin ?? this).voteOf(nodeIndex) === "granted";
    if (outcome === GRANTED && isGranted) counts.last[nodeIndex] = detail as number;
  }

  #noteDenial(nodeIndex: number, outcome: Outcome, atMs: number, detail?: Detail): void {
    const position = outcome === QUEUED ? detail as QueuePosition : undefined;
    if (this.pool) this.pool.free[nodeIndex] = position ? position.free : detail as number;
    if (position) this.ticket?.onEnqueued(nodeIndex, position, this.sinceMs, atMs);
    this.onDenied?.(nodeIndex, outcome === MISSING);
  }

  #stopIfDecided(): void {
    if (!this.#resolve || !this.decided) return;
    if (!this.#lingers) return this.stop();
    const { wheel } = this.nodeSet;
    const nowMs = wheel.clock.monotonicMs();
    const lingerMs = Math.max(nowMs - this.sinceMs, LINGER_MS_MIN);
    // it is due at the deadline, or when the lingering is over that an earlier answer began
    wheel.schedule(this, Math.min(this.dueMs, nowMs + lingerMs), true);
  }

  /**
   * Whether, although it is refused, it waits for the last nodes: for as long again as it took. A
   * caller with a ticket waits anyway, and those that deny need no release. One that may not wait
   * learns whether it is one of those that have split the vote.
   */
  get #lingers(): boolean {
    if (this.#isRelease || this.decision !== "refused" || this.pending === 0) return false;
    if (this.ticket) return true;
    return this.seeksGrant && this.granted === 0 && !this.failedByMajority;
  }

  #outcomeOf(nodeIndex: number): number {
    return this.#answers[nodeIndex] % OUTCOMES_MAX;
  }

  #elapsedMsOf(nodeIndex: number): number {
    return Math.floor(this.#answers[nodeIndex] / OUTCOMES_MAX) / MICROSECONDS_PER_MS;
  }
}

/** Has `signal` stop the round, and returns `resolve` with the listener gone. */
function stopOnAbort(round: Round, signal: AbortSignal, resolve: () => void): () => void {
  const stop = () => round.stop();
  onAbort(signal, stop);
  return () => {
    offAbort(signal, stop);
    resolve();
  };
}

/** Whether an answer says that others wait; no closure, because each release asks. */
function isContended(answer: number): boolean {
  return answer % OUTCOMES_MAX === CONTENDED;
}
