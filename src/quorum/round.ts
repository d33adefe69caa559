/**
 * Asking all nodes at once and deciding as soon as a decision is possible.
 *
 * @module
 */
import { offAbort, onAbort } from "../time/abort_listeners.ts";
import { answerDueMs } from "./ask_node.ts";
import type { KeyPool, NodeSet, QuorumNode, QuorumRequest } from "./quorum_node.ts";
import type { QueuePosition, QueueTicket } from "./queue_ticket.ts";
import {
  type Detail,
  FAILED,
  GRANTED,
  isDenial,
  type Outcome,
  OUTDATED,
  QUEUED,
  TIMED_OUT,
  UNSENT,
} from "./outcome.ts";
import { Tally } from "./tally.ts";

/** Sends one node the request of a round. */
export type Question = (node: QuorumNode, request: QuorumRequest, nodeIndex: number) => void;

/** How long a denied round that lingers waits for the last nodes at least, in milliseconds. */
const LINGER_MS_MIN = 2;

/**
 * Most rounds of one kind that a client has under way: more would not be faster, and their nodes
 * would answer the last of them late. Those beyond wait, each before its validity begins.
 */
export const ROUNDS_MAX = 4_096;

/** The questions. Each is a constant function, so that asking allocates no closure. */
export const askToAcquire: Question = (node, request, index) =>
  request.replaces === undefined ? node.acquire(request, index) : node.adopt!(request, index);
export const askToExtend: Question = (node, request, index) => node.extend(request, index);
export const askToRaiseCounters: Question = (node, request, index) =>
  node.raiseCounters!(request, index);
export const askToRelease: Question = (node, request, index) => node.release(request, index);

/**
 * One request to all nodes. It is its own request, deadline and tally, so that an uncontended lock
 * allocates one object and one promise for it.
 */
export class Round<Nodes extends NodeSet = NodeSet> extends Tally<Nodes> implements QuorumRequest {
  readonly keys: readonly string[];
  readonly value: string;
  ttlMs: number;
  shared: unknown = undefined;
  ticket: QueueTicket | undefined = undefined;
  // Set on few rounds, so all others have no place for them.
  declare mode?: "shared";
  declare entersAtOnce?: boolean;
  declare pool?: KeyPool;
  declare counterFloor?: number;
  declare guardMs?: number;
  declare replaces?: string;
  declare keptMs?: () => number;
  /**
   * Whether it lingers for a grant if it is refused without one. A round with a ticket always
   * lingers.
   */
  declare seeksGrant?: boolean;
  /**
   * Of an adopted lock: the value that it has replaced, which some nodes may have, and until when,
   * by the monotonic clock.
   */
  declare former?: { readonly value: string; readonly untilMs: number };
  /**
   * How long it waits for first connections that are being made, in milliseconds: only an
   * acquisition does.
   */
  connectingMs = 0;
  /** The continuous clock when the round began, before the first byte was sent. */
  readonly startMs: number;
  /** The round that won the lock which this one extends or releases. */
  readonly #origin: Round<Nodes> | undefined;
  #cancelled = false;
  #timeoutMs = 0;
  #settle: (() => void) | undefined = undefined;

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
    const { continuous } = nodeSet.wheel;
    const monotonicMs = continuous.look();
    super(nodeSet, monotonicMs);
    this.keys = keys;
    this.value = value;
    this.ttlMs = ttlMs;
    if (origin?.guardMs) this.guardMs = origin.guardMs;
    if (origin?.mode) this.mode = origin.mode;
    this.#origin = origin;
    this.startMs = monotonicMs + continuous.steppedMs;
  }

  /** How much time may have passed since it began, in milliseconds. */
  get elapsedMs(): number {
    return this.nodeSet.wheel.continuous.nowMs() - this.startMs;
  }

  /**
   * How long it has taken, in milliseconds of the monotonic clock: what people are shown, which no
   * step of a clock spoils.
   */
  get tookMs(): number {
    return this.nodeSet.wheel.clock.monotonicMs() - this.sinceMs;
  }

  /** A round about the lock that this one won. */
  follow(ttlMs = this.ttlMs): Round<Nodes> {
    return new Round(this.nodeSet, this.keys, this.value, ttlMs, this);
  }

  /**
   * Asks every node, all in this tick.
   *
   * @param question Sends the request to one node.
   * @param timeoutMs How long one node may take, in milliseconds, from now or from the end of a
   * first connecting that
   *   {@linkcode connectingMs} waits for.
   * @param signal Cuts the round short.
   * @returns A promise that resolves when the round is decided or was cut short, and never rejects.
   */
  ask(question: Question, timeoutMs: number, signal?: AbortSignal): Promise<void> {
    const { nodes, wheel } = this.nodeSet;
    this.#timeoutMs = timeoutMs;
    this.waitsForReasons = question === askToRelease;
    for (let nodeIndex = 0; nodeIndex < nodes.length; nodeIndex++) {
      question(nodes[nodeIndex], this, nodeIndex);
    }
    this.shared = undefined; // the encoded command is sent, and must not live as long as the lock
    if (this.settled || signal?.aborted || this.nodeSet.closed) return Promise.resolve();
    // mutation: no-deadline
    wheel.schedule(this, this.sinceMs + timeoutMs);
    wheel.ref();
    // Nothing is decided before all were asked, because an undo must follow the request that it
    // undoes.
    return new Promise((resolve) => {
      this.#settle = signal ? stopOnAbort(this, signal, resolve) : resolve;
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

  override maySet(nodeIndex: number): boolean {
    return this.#origin ? this.#origin.maySet(nodeIndex) : super.maySet(nodeIndex);
  }

  answer(
    nodeIndex: number,
    outcome: Outcome,
    detail?: Detail,
    atMs: number = this.nodeSet.wheel.clock.monotonicMs(),
  ): void {
    const { counts, pool } = this;
    if (outcome === FAILED || outcome === UNSENT) this.noteError(nodeIndex, detail as Error);
    if (outcome === OUTDATED && counts) counts.min = Math.max(counts.min, detail as number);
    const position = outcome === QUEUED ? detail as QueuePosition : undefined;
    if (pool && isDenial(outcome)) {
      pool.free[nodeIndex] = position ? position.free : detail as number | undefined;
    }
    // A counter that was raised counts only on a node that granted the lock.
    const counted = outcome === GRANTED && this.#origin?.grantedBy(nodeIndex) !== false;
    this.note(nodeIndex, outcome, atMs, counted ? detail as number | undefined : undefined);
    // which looks at what is noted
    if (position) this.ticket?.onEnqueued(nodeIndex, position, this.sinceMs, atMs);
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
    const { nodeSet: { nodes, wheel } } = this;
    const timeoutMs = this.#timeoutMs;
    const nowMs = wheel.clock.monotonicMs();
    if (this.settled) return this.stop(); // it has lingered
    let nextMs = Infinity;
    for (let nodeIndex = 0; nodeIndex < nodes.length; nodeIndex++) {
      if (!this.pendingOn(nodeIndex)) continue;
      const dueMs = answerDueMs(nodes[nodeIndex], this.sinceMs, timeoutMs, this.connectingMs);
      if (dueMs <= nowMs) this.note(nodeIndex, TIMED_OUT, nowMs);
      else nextMs = Math.min(nextMs, dueMs, nowMs + timeoutMs);
    }
    this.#settleIfDecided();
    if (this.#settle) wheel.schedule(this, nextMs);
  }

  override onClosed(): void {
    this.stop();
  }

  #settleIfDecided(): void {
    if (!this.#settle || !this.settled) return;
    const { nodeSet: { wheel } } = this;
    const lingers = this.ticket || this.seeksGrant && this.granted === 0 && !this.unanswered;
    if (!lingers || this.pending === 0 || this.decision !== "refused") return this.stop();
    // A caller that is denied waits anyway. So it lingers, for as long again, for the answers of
    // the last nodes: those that deny need no release. One that may not wait learns whether it is
    // one of those that have split the vote.
    const nowMs = wheel.clock.monotonicMs();
    const lingerMs = Math.max(nowMs - this.sinceMs, LINGER_MS_MIN);
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
