/**
 * Asking all nodes at once and deciding as soon as a decision is possible.
 *
 * @module
 */
import type { Instant } from "../time/clock.ts";
import { Cooldowns } from "../lock/cooldowns.ts";
import { decide, type Decision, quorumSize } from "./quorum.ts";
import type { EventListener } from "../events.ts";
import { Lines } from "../waiting/local_queues.ts";
import type { Ballot, LockNode, Place, Ticket, Vote } from "./lock_node.ts";
import { toError } from "../errors.ts";
import { Timed, type TimerWheel } from "../time/timer_wheel.ts";

/** The nodes, and what it takes to ask them. */
export interface Voters {
  /** The nodes, each in its seat. */
  readonly nodes: readonly LockNode[];
  /** How many of them must grant. */
  readonly quorum: number;
  /** Where deadlines wait. */
  readonly wheel: TimerWheel;
}

/** What all calls of one client share. */
export interface Electorate extends Voters {
  /** Who wants what in this process. */
  readonly lines: Lines;
  /** What it does not take again for a while. */
  readonly cooldowns: Cooldowns;
  /** Whether the client was closed. */
  closed: boolean;
  /** The highest fencing token there was. */
  highestToken: number;
}

/**
 * What all calls of one client share, at its beginning.
 *
 * @param wheel Where deadlines wait.
 * @param nodes Who is asked.
 * @param onEvent Told of nodes that refuse to tell of releases.
 */
export function electorateOf(
  wheel: TimerWheel,
  nodes: readonly LockNode[],
  onEvent?: EventListener,
): Electorate {
  const voters = { nodes, quorum: quorumSize(nodes.length), wheel };
  const cooldowns = new Cooldowns(wheel.clock);
  return {
    ...voters,
    lines: new Lines(voters, onEvent),
    cooldowns,
    closed: false,
    highestToken: 0,
  };
}

/** What one node is asked in a round. */
export type Question = (node: LockNode, ballot: Ballot, seat: number) => void;

/** The questions; each is one constant function, so that asking makes no closure. */
export const askToAcquire: Question = (node, ballot, seat) => node.acquire(ballot, seat);
/** See {@linkcode askToAcquire}. */
export const askToExtend: Question = (node, ballot, seat) => node.extend(ballot, seat);
/** See {@linkcode askToAcquire}. */
export const askToRaise: Question = (node, ballot, seat) => node.raise!(ballot, seat);
/** See {@linkcode askToAcquire}. */
export const askToRelease: Question = (node, ballot, seat) => node.release(ballot, seat);

/**
 * What a node answered and when, in one number, so that a lock keeps one small array: microseconds since the
 * round began, times 8, plus one of these.
 */
const PENDING = 0,
  GRANTED = 1,
  DENIED = 2,
  FAILED = 3,
  TIMED_OUT = 4,
  QUARANTINED = 5,
  OUTCOMES_MAX = 8;
const OUTCOMES = [undefined, "granted", "denied", "failed", "timed-out", "quarantined"] as const;

/**
 * One question to all nodes. It is its own ballot, its own deadline and its own starting time: a lock taken
 * without contention allocates one of these and one promise.
 */
export class Round extends Timed implements Ballot, Instant {
  readonly keys: readonly string[];
  readonly value: string;
  ttlMs: number;
  mayStand: number;
  shared: unknown = undefined;
  ticket: Ticket | undefined = undefined;
  othersWait = false;
  fence: number | undefined = undefined;
  fenceMin: number | undefined = undefined;
  /** With fencing tokens, the counter that each node answered last. */
  counts: (number | undefined)[] | undefined = undefined;
  guardMs: number;
  /** One bit a seat: which nodes have put the ticket in line, and so set nothing. */
  queued = 0;
  /** The monotonic clock when the round began, before the first byte was sent. */
  readonly monotonicMs: number;
  /** The wall clock at the same moment. */
  readonly wallMs: number;
  /** How many nodes granted. */
  granted = 0;
  /** How many denied. */
  denied = 0;
  /** How many failed, did not answer in time or are in quarantine. */
  failed = 0;
  /** Who is asked. */
  readonly electorate: Electorate;
  /** The round that won the lock which this one extends or releases. */
  readonly #origin: Round | undefined;
  #withdrawn = false;
  readonly #answers: number[];
  #errors: Error[] | undefined = undefined;
  #timeoutMs = 0;
  /** Whether a refusal waits for the answers that tell why. */
  #thorough = false;
  #settle: (() => void) | undefined = undefined;

  /**
   * @param electorate Who is asked.
   * @param keys What about.
   * @param value Whose they are.
   * @param ttlMs For how long, in milliseconds.
   * @param origin The round that won the lock, where this one extends or releases it.
   */
  constructor(
    electorate: Electorate,
    keys: readonly string[],
    value: string,
    ttlMs: number,
    origin?: Round,
  ) {
    super();
    this.electorate = electorate;
    this.keys = keys;
    this.value = value;
    this.ttlMs = ttlMs;
    this.mayStand = origin?.mayStand ?? 0;
    this.guardMs = origin?.guardMs ?? 0;
    this.#origin = origin;
    this.#answers = new Array(electorate.nodes.length).fill(PENDING);
    const { clock } = electorate.wheel;
    this.monotonicMs = clock.monotonicMs();
    this.wallMs = clock.wallMs();
  }

  /** A round about the lock that this one won. */
  follow(ttlMs = this.ttlMs): Round {
    return new Round(this.electorate, this.keys, this.value, ttlMs, this);
  }

  /**
   * Asks every node, all in this tick.
   *
   * @param question What each is asked.
   * @param timeoutMs How long one node may take, in milliseconds, from now or from the end of its first connecting.
   * @param signal Cuts the round short.
   * @returns Once the round is decided, or was cut short. Never rejects.
   */
  ask(question: Question, timeoutMs: number, signal?: AbortSignal): Promise<void> {
    const { nodes, wheel } = this.electorate;
    this.#timeoutMs = timeoutMs;
    this.#thorough = question === askToRelease;
    return new Promise((resolve) => {
      // Nothing is decided before all were asked: what an early failure takes back must come after what it undoes.
      for (let seat = 0; seat < nodes.length; seat++) this.#askOne(question, nodes[seat], seat);
      this.shared = undefined; // the encoded command is on its way, and need not live as long as the lock
      if (this.#settled || signal?.aborted) return resolve();
      this.#settle = signal ? stopOnAbort(this, signal, resolve) : resolve;
      wheel.schedule(this, this.monotonicMs + timeoutMs);
      wheel.hold();
    });
  }

  /** Whether an answer still matters: not once this round, or the lock it belongs to, is over. */
  get wanted(): boolean {
    return !this.#withdrawn && (this.#origin?.wanted ?? true);
  }

  /** From here on nothing may be sent that could set a key. */
  withdraw(): void {
    this.#withdrawn = true;
  }

  /** Whether the node in this seat granted or denied, whether or not that counts. */
  answeredBy(seat: number): boolean {
    const outcome = this.#answers[seat] % OUTCOMES_MAX;
    return outcome === GRANTED || outcome === DENIED || outcome === QUARANTINED;
  }

  /** What can be said by now. */
  get decision(): Decision {
    const { nodes, quorum } = this.electorate;
    const pending = nodes.length - this.granted - this.denied - this.failed;
    return decide(this.granted, pending, quorum);
  }

  /** Whether so many nodes gave no answer that the others are no quorum. */
  get unanswered(): boolean {
    return this.failed > this.electorate.nodes.length - this.electorate.quorum;
  }

  /** Whether so many nodes denied that the others are no quorum. */
  get deniedByMajority(): boolean {
    return this.denied > this.electorate.nodes.length - this.electorate.quorum;
  }

  /** Whether the node in this seat granted. */
  grantedBy(seat: number): boolean {
    return this.#answers[seat] % OUTCOMES_MAX === GRANTED;
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

  /** What the nodes have answered so far; one that has neither answered nor had its time yet is left out. */
  get votes(): readonly Vote[] {
    const votes: Vote[] = [];
    this.electorate.nodes.forEach(({ name: node }, seat) => {
      const answer = this.#answers[seat];
      const outcome = OUTCOMES[answer % OUTCOMES_MAX];
      if (!outcome) return;
      const elapsedMs = Math.floor(answer / OUTCOMES_MAX) / 1_000;
      const error = this.#errors?.[seat];
      votes.push(error ? { node, outcome, elapsedMs, error } : { node, outcome, elapsedMs });
    });
    return votes;
  }

  grant(seat: number, atMs?: number, count?: number): void {
    this.#count(seat, count);
    if (this.#cast(seat, GRANTED, atMs)) this.granted++;
    this.#settleIfDecided();
  }

  /** Notes a counter; where it was raised, only of a node whose vote counted. */
  #count(seat: number, count: number | undefined): void {
    if (!this.counts || count === undefined || this.#origin?.grantedBy(seat) === false) return;
    this.counts[seat] = count;
  }

  deny(seat: number, atMs?: number): void {
    if (this.counts) this.counts[seat] = undefined; // the key is gone, and with it what made the count one of ours
    if (this.#cast(seat, DENIED, atMs)) this.denied++;
    this.#settleIfDecided();
  }

  queue(seat: number, place: Place, atMs?: number): void {
    this.queued |= 1 << seat;
    this.mayStand &= ~(1 << seat);
    this.ticket?.onQueued(seat, place);
    this.deny(seat, atMs);
  }

  quarantine(seat: number, atMs?: number): void {
    if (this.#cast(seat, QUARANTINED, atMs)) this.failed++;
    this.#settleIfDecided();
  }

  fail(seat: number, error: Error): void {
    if (this.#cast(seat, FAILED)) {
      this.failed++;
      (this.#errors ??= [])[seat] = error;
    }
    this.#settleIfDecided();
  }

  /** Ends the waiting, whatever has come. */
  stop(): void {
    const settle = this.#settle;
    if (!settle) return;
    this.#settle = undefined;
    this.electorate.wheel.cancel(this);
    this.electorate.wheel.release();
    settle();
  }

  /** The deadline: whoever had its time and did not answer is no longer waited for. */
  override onDue(): void {
    const { nodes, wheel } = this.electorate;
    const nowMs = wheel.clock.monotonicMs();
    let nextMs = Infinity;
    for (let seat = 0; seat < nodes.length; seat++) {
      if (this.#answers[seat] !== PENDING) continue;
      const dueMs = Math.max(this.monotonicMs, nodes[seat].readyAtMs ?? 0) + this.#timeoutMs;
      if (dueMs <= nowMs) {
        this.#note(seat, TIMED_OUT, nowMs);
        this.failed++;
      } else {
        nextMs = Math.min(nextMs, dueMs, nowMs + this.#timeoutMs);
      }
    }
    this.#settleIfDecided();
    if (this.#settle) wheel.schedule(this, nextMs);
  }

  override onClosed(): boolean {
    this.stop();
    return true;
  }

  #askOne(question: Question, node: LockNode, seat: number): void {
    try {
      question(node, this, seat);
    } catch (error) {
      this.fail(seat, toError(error));
    }
  }

  /** Notes an answer; says whether it counts. An answer that comes late still does, in place of its time-out. */
  #cast(seat: number, outcome: number, atMs?: number): boolean {
    const before = this.#answers[seat] % OUTCOMES_MAX;
    if (before === TIMED_OUT) this.failed--;
    else if (before !== PENDING) return false;
    this.#note(seat, outcome, atMs ?? this.electorate.wheel.clock.monotonicMs());
    return true;
  }

  #note(seat: number, outcome: number, nowMs: number): void {
    const elapsedUs = Math.max(Math.round((nowMs - this.monotonicMs) * 1_000), 0);
    this.#answers[seat] = elapsedUs * OUTCOMES_MAX + outcome;
  }

  #settleIfDecided(): void {
    if (this.#settle && this.#settled) this.stop();
  }

  /**
   * Whether there is nothing more to wait for. A release that finds no quorum is told apart by *why*: whether the
   * lock was gone or the nodes don't answer, which a few denials and failures do not say.
   */
  get #settled(): boolean {
    const { decision } = this;
    if (decision !== "refused" || !this.#thorough) return decision !== "open";
    const { nodes } = this.electorate;
    return this.deniedByMajority || this.granted + this.denied + this.failed === nodes.length;
  }
}

/** Has `signal` stop the round, and returns what settles it: with the listener gone. */
function stopOnAbort(round: Round, signal: AbortSignal, resolve: () => void): () => void {
  const stop = () => round.stop();
  signal.addEventListener("abort", stop, { once: true });
  return () => {
    signal.removeEventListener("abort", stop);
    resolve();
  };
}
