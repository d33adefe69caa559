/**
 * One call for a lock: its settings, how long it has lasted, and everything that stands around its attempts. What the
 * call does not use is not visited.
 *
 * @module
 */
import type { ClientState } from "../client_state.ts";
import { closedError, lockName } from "../errors.ts";
import { askFenced } from "../fencing/fenced_attempt.ts";
import { agreeOnToken } from "../fencing/token.ts";
import type { Settings } from "../options.ts";
import { askToAcquire, type Round } from "../quorum/round.ts";
import { elapsedMs, type Instant, instantOf } from "../time/clock.ts";
import { pause } from "../time/pause.ts";
import { queueKey } from "../waiting/local_queues.ts";
import type { Waiter } from "../waiting/waiter.ts";
import type { AcquireCall } from "./acquire.ts";
import { reportAttempt, reportWoken } from "./attempt_events.ts";
import { HeldLock } from "./held_lock.ts";
import { isHopeless, refusal } from "./refusal.ts";

/** A call for a lock. */
export class LockCall implements AcquireCall {
  readonly client: ClientState;
  readonly settings: Settings;
  readonly resources: readonly string[];
  readonly keys: readonly string[];
  /** The name of the keys in this client's queues. */
  readonly name: string;
  /** Whether the lock is extended for as long as it is held. */
  readonly autoExtend: boolean;
  /** How many attempts were made. */
  attempts = 0;
  /** When the call began: with its first attempt, or when it began to wait for its turn. */
  #start: Instant | undefined = undefined;
  #waiter: Waiter | undefined = undefined;

  /**
   * @param client The client.
   * @param settings The settings of the call.
   * @param resources The resources.
   * @param autoExtend Whether the lock is extended if the settings do not say it.
   */
  constructor(
    client: ClientState,
    settings: Settings,
    resources: readonly string[],
    autoExtend: boolean,
  ) {
    const { keyPrefix } = settings;
    this.client = client;
    this.settings = settings;
    this.resources = resources;
    this.keys = keyPrefix === "" ? resources : resources.map((resource) => keyPrefix + resource);
    this.name = queueKey(this.keys);
    this.autoExtend = settings.autoExtend ?? autoExtend;
  }

  /** For how long the call has lasted, in milliseconds. */
  get elapsedMs(): number {
    return this.#start ? elapsedMs(this.client.wheel.clock, this.#start) : 0;
  }

  /** What is left of the wait, in milliseconds. */
  leftMs(): number {
    return this.settings.waitMs - this.elapsedMs;
  }

  /** How long the resources stay in their cooldown, in milliseconds; 0 if they are in none. */
  get cooldownMs(): number {
    return this.client.cooldowns.leftMs(this.keys);
  }

  begin(round: Round): void {
    this.attempts++;
    this.#start ??= round;
    round.ticket = this.#waiter?.nextTicket();
    round.guardMs = this.settings.restartGuardMs;
  }

  /** Asks every node once; with fencing tokens, again until the counters of a quorum agree. */
  ask(round: Round): Promise<void> {
    const { nodeTimeoutMs, validityMs, signal, fencing } = this.settings;
    return fencing
      ? askFenced(round, this.settings, this.client)
      : round.ask(askToAcquire, Math.min(nodeTimeoutMs, validityMs), signal);
  }

  /** Accepts unless the call was ended, a cooldown began, or the counters do not agree on a fencing token. */
  accepts(round: Round): boolean {
    // mutation: accepted-in-its-cooldown
    if (this.#ended || this.cooldownMs > 0) return false;
    if (!round.counts) return true;
    const { token, agreed } = agreeOnToken(round.counts, this.client.quorum);
    if (!agreed) return false;
    round.counterFloor = token;
    return true;
  }

  /** Begins the time of the call, if it waits before its first attempt. */
  startClock(): void {
    this.#start ??= instantOf(this.client.wheel.clock);
  }

  /** Has the nodes put the first attempt in their queues if others wait for the lock; the result must be awaited. */
  lineUp(): Promise<void> | undefined {
    const { client: { localQueues }, name, keys, settings } = this;
    this.#waiter = localQueues.waiterIfContended(name, keys, settings);
    return this.#waiter?.ready?.(this.leftMs(), settings.signal);
  }

  report(result: HeldLock | Round): void {
    if (this.settings.onEvent) reportAttempt(this, result);
  }

  /** Whether the wait is over, or too many nodes refuse for good. */
  isOver(denied: Round): boolean {
    return this.leftMs() <= 0 || isHopeless(this, denied);
  }

  refusal(denied?: Round): Promise<Error> {
    return refusal(this, denied);
  }

  /**
   * Waits for a notification, polls, or waits for the end of a cooldown.
   *
   * @throws What {@linkcode coolDown} throws.
   */
  async wait(denied: Round): Promise<void> {
    const { client: { localQueues }, name, keys, settings } = this;
    const waiter = this.#waiter ??= localQueues.waiter(name, keys, settings);
    localQueues.recordDenial(name, denied);
    await waiter.wait(this.attempts - 1, this.leftMs(), settings.signal, denied);
    if (settings.onEvent && waiter.notified) reportWoken(this);
    if (this.cooldownMs > 0) await this.coolDown(denied);
  }

  /**
   * Waits until the cooldown of the resources is over, and leaves the queues meanwhile.
   *
   * @param denied The last attempt, if there was one.
   * @throws {LockHeldError} If the wait is over before the cooldown.
   * @throws The reason of the signal, or a {@linkcode RedlockError} if the client is closed.
   */
  async coolDown(denied?: Round): Promise<void> {
    const { client: { wheel, localQueues }, settings: { signal } } = this;
    this.throwIfEnded();
    this.startClock();
    localQueues.yield(this.name);
    this.#waiter = undefined;
    for (let cooldownMs; (cooldownMs = this.cooldownMs) > 0;) {
      const leftMs = this.leftMs();
      if (leftMs <= 0) throw await this.refusal(denied);
      await pause(wheel, Math.min(cooldownMs, leftMs), signal);
      this.throwIfEnded();
    }
  }

  throwIfEnded(result?: HeldLock | Round): void {
    if (!this.#ended) return;
    if (result instanceof HeldLock) result.lose(new Error("the call was ended"));
    this.settings.signal?.throwIfAborted();
    const votes = result instanceof HeldLock ? result.round.votes : result?.votes;
    throw closedError(`acquire ${lockName(this.resources)}`, this.resources, votes);
  }

  get #ended(): boolean {
    return this.client.closed || this.settings.signal?.aborted === true;
  }
}
