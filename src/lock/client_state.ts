/**
 * The state that all calls of one client share.
 *
 * @module
 */
import { setLatest } from "../bounded_map.ts";
import { ALL_CLIENTS, CLIENTS_OPEN_MAX, manyClientsText, warnOnce } from "../console_warnings.ts";
import { listenerIn } from "../events.ts";
import type { LockOptions } from "../options.ts";
import { ROUNDS_MAX } from "../quorum/round.ts";
import { quorumSize } from "../vote.ts";
import type { NodeSet, QuorumNode } from "../quorum/quorum_node.ts";
import { Gate } from "../time/gate.ts";
import { pause, settledWithin } from "../time/pause.ts";
import type { TimerWheel } from "../time/timer_wheel.ts";
import { LocalQueues } from "../waiting/local_queues.ts";

/**
 * Longest wait for calls to end, and for a node's own `close`, in milliseconds: one of ours closes
 * a quarter of a second after the last reply, or when this is over.
 */
const CLOSE_TIMEOUT_MS = 2_000;
/** How much longer nodes may take for each timer, in milliseconds: most are those of held locks. */
const CLOSE_TIMEOUT_MS_PER_LOCK = 0.1;

/** Of so many calls that too few nodes answered, one waits for a tick of the event loop. */
const UNANSWERED_PER_TICK = 16;

/** Most keys in cooldown; one more ends the cooldown of the oldest. */
export const COOLDOWNS_MAX = 10_000;

/** How many clients of this process are not closed. */
let clientsOpen = 0;

/** What all calls of one client share. */
export class ClientState implements NodeSet {
  readonly nodes: readonly QuorumNode[];
  readonly quorum: number;
  readonly wheel: TimerWheel;
  readonly options: LockOptions;
  closed = false;
  /** The calls and locks of this client, by their keys. */
  readonly localQueues: LocalQueues;
  /** Until when each key is in its cooldown, by the monotonic clock; the oldest first. */
  readonly #cooldowns: Map<string, number> = new Map();
  /** Which of several keys a call had last, by the name of all. */
  readonly lastPlaces: Map<string, number> = new Map();
  /**
   * Attempts, extensions and releases, each apart, so that none waits for a crowd of another kind.
   */
  readonly attemptGate: Gate;
  readonly extensionGate: Gate;
  readonly releaseGate: Gate;
  /** How many calls may still send something; each counts itself before its first byte. */
  openCalls = 0;
  /** How many calls too few nodes have answered. */
  #unanswered = 0;
  #onLastEnded: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  /**
   * @param wheel The timer wheel of its deadlines.
   * @param nodes The nodes.
   * @param options The options of its calls. Their listener is called for nodes that send no
   * notifications of releases; without one, the console gets warnings.
   */
  constructor(wheel: TimerWheel, nodes: readonly QuorumNode[], options: LockOptions) {
    const { onEvent } = options.defaults;
    this.nodes = nodes;
    this.options = options;
    this.quorum = quorumSize(nodes.length);
    this.wheel = wheel;
    this.localQueues = new LocalQueues(this, listenerIn(wheel.context, onEvent));
    this.attemptGate = new Gate(wheel, ROUNDS_MAX);
    this.extensionGate = new Gate(wheel, ROUNDS_MAX);
    this.releaseGate = new Gate(wheel, ROUNDS_MAX);
    if (++clientsOpen === CLIENTS_OPEN_MAX && !onEvent) warnOnce(ALL_CLIENTS, manyClientsText());
  }

  /**
   * Begins the cooldown of keys, because a lock of this client on them was lost, or ended without a
   * confirmed release.
   *
   * @param keys The keys of the lock.
   * @param forMs How long it takes, in milliseconds; a key whose cooldown takes longer already
   * keeps it.
   */
  beginCooldown(keys: readonly string[], forMs: number): void {
    const untilMs = this.wheel.clock.monotonicMs() + forMs;
    for (const key of keys) {
      const latestMs = Math.max(untilMs, this.#cooldowns.get(key) ?? 0);
      setLatest(this.#cooldowns, key, latestMs, COOLDOWNS_MAX);
    }
  }

  /** How long until none of the keys is in its cooldown, in milliseconds. */
  cooldownLeftMs(keys: readonly string[]): number {
    if (this.#cooldowns.size === 0) return 0;
    let untilMs = 0; // in a loop, because a closure would cost every call memory
    for (const key of keys) untilMs = Math.max(untilMs, this.#cooldowns.get(key) ?? 0);
    return Math.max(untilMs - this.wheel.clock.monotonicMs(), 0);
  }

  /** A call has its lock, or has sent everything that undoes what it sent. */
  endCall(): void {
    if (--this.openCalls === 0) this.#onLastEnded?.();
  }

  /**
   * Counts a call that too few nodes answered, which is about to reject; now and then one waits for
   * a tick. If nodes are down, calls fail without asking them: a caller that repeats them without a
   * pause would keep the event loop from ever connecting again.
   */
  noteNoQuorum(): Promise<void> | undefined {
    if (this.closed || ++this.#unanswered % UNANSWERED_PER_TICK > 0) return undefined;
    return pause(this.wheel, 0, undefined);
  }

  /** Ends the calls and locks, then the nodes; in bounded time. Idempotent. */
  close(): Promise<void> {
    if (this.#closing) return this.#closing;
    this.closed = true;
    clientsOpen--;
    this.#closing = this.#close(); // first: what it ends may have a listener that closes
    this.wheel.announceClose(); // it waits for what ends now
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { nodes, wheel } = this;
    const limitMs = CLOSE_TIMEOUT_MS + CLOSE_TIMEOUT_MS_PER_LOCK * wheel.size;
    wheel.ref();
    await undefined; // until that is announced, which ends all waits
    // Every call ends now, and sends what undoes its requests before the nodes close.
    const ended = new Promise<void>((resolve) => {
      if (this.openCalls === 0) resolve();
      else this.#onLastEnded = resolve;
    });
    // mutation: nodes-closed-before-calls-end
    await settledWithin(wheel, ended, CLOSE_TIMEOUT_MS);
    await Promise.all(nodes.map((node) => {
      const close = async () => await node.close?.();
      return settledWithin(wheel, close(), limitMs);
    }));
    wheel.unref();
    wheel.close();
  }
}
