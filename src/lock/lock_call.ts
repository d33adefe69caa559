/**
 * One call for a lock: what it asks for, how long it has lasted, and whether it still matters.
 *
 * @module
 */
import type { ClientState } from "../client_state.ts";
import { closedError, lockName } from "../errors.ts";
import type { Settings } from "../options.ts";
import { CONNECTING_MS_MAX } from "../quorum/ask_node.ts";
import type { Round } from "../quorum/round.ts";
import type { Vote } from "../vote.ts";
import { keysName, readersName } from "../waiting/local_names.ts";
import type { QueuedWaiter } from "../waiting/queued_waiter.ts";
import type { HandedOver } from "./hand_over_token.ts";
import { Pool } from "./pool.ts";

/**
 * What a lock is for: its caller gets it, or gets it if nobody else holds it, or a routine runs
 * while it is held.
 */
export type Purpose = "acquire" | "try" | "use";

/** A call for a lock. */
export class LockCall {
  readonly client: ClientState;
  readonly settings: Settings;
  readonly resources: readonly string[];
  readonly keys: readonly string[];
  /**
   * The name of its local queue: that of its keys, of all keys of a pool, or of readers of the
   * keys.
   */
  readonly localName: string;
  /** How it chooses between its keys, if it locks any one of them. */
  readonly pool: Pool | undefined;
  /** What the lock is for. */
  readonly purpose: Purpose;
  /** How long it may wait, in milliseconds. */
  waitMs: number;
  /** The lock that it adopts, if it does. */
  readonly adopts: HandedOver | undefined;
  /** Set if the lock is in shared mode; one that is adopted is not. */
  readonly mode: "shared" | undefined;
  /**
   * Whether a call in shared mode that it was behind has the lock now: its next attempt passes
   * those that wait.
   */
  admitted = false;
  /** How many attempts were made. */
  attempts = 0;
  /**
   * Whether an attempt was granted by some nodes, and by too few, since the call began or last
   * paused.
   */
  split = false;
  /** How often it tried again because of that. */
  retries = 0;
  /** How it waits among other clients, if it has waited and does not poll. */
  waiter: QueuedWaiter | undefined = undefined;
  /**
   * When the call began, by the monotonic clock: with its first attempt, or when it began to wait
   * for its turn.
   */
  #startMs: number | undefined = undefined;

  /**
   * @param client The client.
   * @param settings The settings of the call.
   * @param resources The resources.
   * @param purpose To try is not to wait, whatever `waitMs` is; to use is to extend, unless
   * `autoExtend` is `false`.
   * @param adopts The lock that it adopts, if it does.
   */
  constructor(
    client: ClientState,
    settings: Settings,
    resources: readonly string[],
    purpose: Purpose,
    adopts?: HandedOver,
  ) {
    const { keyPrefix } = settings;
    this.client = client;
    this.settings = settings;
    this.resources = resources;
    const any = settings.any && adopts === undefined;
    this.keys = keyPrefix === "" ? resources : resources.map((resource) => keyPrefix + resource);
    this.pool = any ? new Pool(client, this.keys) : undefined;
    this.mode = settings.mode === "shared" && adopts === undefined ? "shared" : undefined;
    this.localName = this.pool?.name ??
      (this.mode ? readersName(keysName(this.keys)) : keysName(this.keys));
    this.purpose = purpose;
    this.waitMs = purpose === "try" ? 0 : settings.waitMs;
    this.adopts = adopts;
  }

  /** What it does, for messages. */
  get verb(): "acquire" | "adopt" {
    return this.adopts === undefined ? "acquire" : "adopt";
  }

  /**
   * What it asks for now, by which this client remembers that others wait for it: readers wait for
   * what writers do.
   */
  get contendedName(): string {
    return this.pool?.key ?? (this.mode ? keysName(this.keys) : this.localName);
  }

  /**
   * Whether it waits for earlier calls. One that adopts a lock does not: they may wait for that
   * very lock.
   */
  get takesTurns(): boolean {
    return this.waitMs > 0 && this.adopts === undefined;
  }

  /** For how long the call has lasted, in milliseconds. */
  get elapsedMs(): number {
    if (this.#startMs === undefined) return 0;
    return this.client.wheel.clock.monotonicMs() - this.#startMs;
  }

  /** What is left of the wait, in milliseconds. */
  leftMs(): number {
    return this.waitMs - this.elapsedMs;
  }

  /** How long an attempt that begins at `startMs` waits for first connections, in milliseconds. */
  connectingMs(startMs: number): number {
    if (this.waitMs === 0) return CONNECTING_MS_MAX;
    return this.waitMs - (startMs - this.#startMs!);
  }

  /** Begins the time of the call, unless it has begun. */
  startClock(nowMs: number = this.client.wheel.clock.monotonicMs()): void {
    this.#startMs ??= nowMs;
  }

  /** What the lock is for, once an attempt has won it: with a pool, the one of its key. */
  get locked(): readonly string[] {
    const { pool, resources } = this;
    return pool ? [resources[pool.place]] : resources;
  }

  /**
   * How long the resources stay in their cooldown, in milliseconds; 0 if they are in none, if one
   * of several is not, or if the call adopts a lock: its holder changes then, and nobody begins to
   * work.
   */
  get cooldownMs(): number {
    if (!this.pool) return this.cooldownOf(this.keys);
    return Math.min(...this.keys.map((key) => this.cooldownOf([key])));
  }

  /**
   * How long some of the keys stay in their cooldown, in milliseconds; 0 as {@linkcode cooldownMs}
   * is.
   */
  cooldownOf(keys: readonly string[]): number {
    return this.adopts === undefined ? this.client.cooldowns.leftMs(keys) : 0;
  }

  /**
   * Notes whether an attempt that failed was granted by some nodes, and by too few of those that
   * answered.
   */
  noteVotes({ decision, granted, unanswered }: Round): void {
    if (decision === "refused" && granted > 0 && !unanswered) this.split = true;
  }

  /**
   * Whether an attempt failed because nodes did not answer, or not in time, and not because others
   * hold the lock.
   */
  isUnanswered(denied: Round | undefined): boolean {
    return denied !== undefined && this.cooldownMs === 0 &&
      (denied.unanswered || denied.decision === "granted");
  }

  /** Whether its signal was aborted or the client was closed. */
  get ended(): boolean {
    return this.client.closed || this.settings.signal?.aborted === true;
  }

  /** Throws the reason of the signal, or a {@linkcode RedlockError} if the client is closed. */
  throwIfEnded(votes?: readonly Vote[]): void {
    if (!this.ended) return;
    this.settings.signal?.throwIfAborted();
    const name = lockName(this.resources, this.pool !== undefined);
    throw closedError(`${this.verb} ${name}`, this.resources, votes);
  }
}
