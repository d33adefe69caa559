/**
 * One call for a lock: its settings, how long it has lasted, its turn among the calls of this client, and everything that
 * stands around its attempts.
 *
 * @module
 */
import type { ClientState } from "../client_state.ts";
import { closedError, lockName } from "../errors.ts";
import { emit } from "../events.ts";
import { askFenced, takeToken } from "../fencing/fenced_attempt.ts";
import type { Settings } from "../options.ts";
import { askToAcquire, type Round } from "../quorum/round.ts";
import { queueKey } from "../waiting/local_queues.ts";
import type { Waiter } from "../waiting/waiter.ts";
import { acquire, type AcquireCall, attempt } from "./acquire.ts";
import { reportAttempt } from "./attempt_events.ts";
import { coolDown, lineUp, wait, waitForTurn, type WaitingCall } from "./contend.ts";
import { HeldLock } from "./held_lock.ts";
import { refusal, reportRefusal } from "./refusal.ts";
import { Renewal } from "./renewal.ts";

/** A call for a lock. */
export class LockCall implements AcquireCall, WaitingCall {
  readonly client: ClientState;
  readonly settings: Settings;
  readonly resources: readonly string[];
  readonly keys: readonly string[];
  readonly name: string;
  /** Whether the lock is extended while it is held. */
  readonly autoExtend: boolean;
  /** How long it may wait, in milliseconds. */
  readonly waitMs: number;
  attempts = 0;
  waiter: Waiter | undefined = undefined;
  /** Whether it has won the lock, and reported that. */
  #won = false;
  /** When the call began: with its first attempt, or when it began to wait for its turn. */
  #startMs: number | undefined = undefined;

  /**
   * @param client The client.
   * @param settings The settings of the call.
   * @param resources The resources.
   * @param autoExtend Whether the lock is extended if `autoExtend` is not set.
   * @param trying Whether it makes one attempt, whatever `waitMs` is.
   */
  constructor(
    client: ClientState,
    settings: Settings,
    resources: readonly string[],
    autoExtend: boolean,
    trying: boolean,
  ) {
    const { keyPrefix } = settings;
    this.client = client;
    this.settings = settings;
    this.resources = resources;
    this.keys = keyPrefix === "" ? resources : resources.map((resource) => keyPrefix + resource);
    this.name = this.keys.length === 1 ? this.keys[0] : queueKey(this.keys);
    this.autoExtend = settings.autoExtend ?? autoExtend;
    this.waitMs = trying ? 0 : settings.waitMs;
  }

  get elapsedMs(): number {
    if (this.#startMs === undefined) return 0;
    return this.client.wheel.continuous.nowMs() - this.#startMs;
  }

  leftMs(): number {
    return this.waitMs - this.elapsedMs;
  }

  get cooldownMs(): number {
    return this.client.cooldowns?.leftMs(this.keys) ?? 0;
  }

  startClock(): void {
    this.#startMs ??= this.client.wheel.continuous.nowMs();
  }

  /** Asks every node once; with fencing tokens, again until the counters of a quorum agree. */
  ask(round: Round): Promise<void> {
    const { nodeTimeoutMs, validityMs, signal, fencing, restartGuardMs } = this.settings;
    this.attempts++;
    this.#startMs ??= round.startMs;
    round.ticket = this.waiter?.nextTicket();
    round.guardMs = restartGuardMs;
    const waitedMs = round.startMs - this.#startMs;
    round.connectingMs = this.waitMs > 0 ? Math.max(this.waitMs - waitedMs, 0) : Infinity;
    return fencing
      ? askFenced(round, this.settings, this.client)
      : round.ask(askToAcquire, Math.min(nodeTimeoutMs, validityMs), signal);
  }

  /** Accepts unless the call was ended, a cooldown began, or the counters do not agree on a fencing token. */
  accepts(round: Round): boolean {
    // mutation: accepted-in-its-cooldown
    if (this.#ended || this.cooldownMs > 0) return false;
    return !round.counts || takeToken(round, round.counts);
  }

  report(result: HeldLock | Round): void {
    if (!this.settings.onEvent) return;
    this.#won = result instanceof HeldLock;
    reportAttempt(this, result);
  }

  /** Emits that the signal has ended the call without a lock, if that is what it failed with. */
  reportAbort(error: unknown): void {
    const { settings: { onEvent, signal }, resources, attempts, elapsedMs } = this;
    if (!onEvent || this.#won || !signal?.aborted || error !== signal.reason) return;
    emit(onEvent, { type: "denied", resources, reason: "aborted", votes: [], attempts, elapsedMs });
  }

  /** Waits for a notification, polls, or waits for the end of a cooldown. */
  wait(denied: Round): Promise<void> {
    return wait(this, denied);
  }

  isUnanswered(denied: Round | undefined): boolean {
    return denied !== undefined && this.cooldownMs === 0 &&
      (denied.unanswered || denied.decision === "granted");
  }

  throwIfEnded(result?: HeldLock | Round): void {
    if (!this.#ended) return;
    if (result instanceof HeldLock) result.giveBack();
    this.settings.signal?.throwIfAborted();
    const votes = result instanceof HeldLock ? result.round.votes : result?.votes;
    throw closedError(`acquire ${lockName(this.resources)}`, this.resources, votes);
  }

  get #ended(): boolean {
    return this.client.closed || this.settings.signal?.aborted === true;
  }
}

/**
 * Acquires the lock as soon as the earlier calls of this client for the same keys are done with it: only the first call
 * asks the nodes, and while the client holds the lock none does.
 *
 * @param use Makes the result of the call of the lock.
 * @throws What {@linkcode acquire} throws.
 */
export async function acquireInTurn<T>(
  call: LockCall,
  use: (held: HeldLock) => T | Promise<T>,
): Promise<T> {
  const { client, name } = call;
  const { localQueues, openCalls } = client;
  const first = localQueues.enter(name, call);
  if (!first) localQueues.join(name, call);
  let held: HeldLock;
  openCalls.begin();
  try {
    if (!first) await waitForTurn(call);
    if (client.cooldowns && call.cooldownMs > 0) await coolDown(call);
    const linedUp = client.contention && lineUp(call, client.contention);
    if (linedUp) await linedUp;
    held = await acquire(call);
    call.throwIfEnded(held); // in the tick in which it is handed out
  } catch (error) {
    // mutation: failed-call-blocks-its-client
    localQueues.leave(name, call);
    call.reportAbort(error);
    throw error;
  } finally {
    // mutation: open-calls-not-counted
    openCalls.end();
  }
  localQueues.promote(name, call, held);
  if (!held.active) localQueues.leave(name, held); // lost while it was reported
  if (call.autoExtend) held.renew(new Renewal(held));
  return use(held);
}

/**
 * Makes one attempt, whichever other calls of this client wait for the lock.
 *
 * @param use Makes the result of the call of the lock.
 * @throws What {@linkcode attempt} throws, and the refusal.
 */
export function acquireAtOnce<T>(
  call: LockCall,
  use: (held: HeldLock) => T | Promise<T>,
): Promise<T> {
  return attemptOnce(call, use, refuse);
}

/**
 * The same for a call that is `undefined` if somebody else holds the lock, or if the resources are in their cooldown.
 *
 * @param use Makes the result of the call of the lock.
 * @throws What {@linkcode attempt} throws.
 * @throws {QuorumError} If too few nodes answered.
 */
export function tryOnce<T>(
  call: LockCall,
  use: (held: HeldLock) => T | Promise<T>,
): Promise<T | undefined> {
  return attemptOnce<T | undefined>(call, use, refuseUnanswered);
}

async function attemptOnce<T>(
  call: LockCall,
  use: (held: HeldLock) => T | Promise<T>,
  refuse: (call: LockCall, denied: Round | undefined) => T | Promise<T>,
): Promise<T> {
  const { client: { localQueues, openCalls }, name } = call;
  let result: HeldLock | Round | undefined;
  openCalls.begin();
  try {
    call.throwIfEnded();
    if (call.cooldownMs === 0) result = await attempt(call);
    call.throwIfEnded(result); // in the tick in which it is handed out
  } catch (error) {
    call.reportAbort(error);
    throw error;
  } finally {
    openCalls.end();
  }
  if (!(result instanceof HeldLock)) return refuse(call, result);
  if (result.active) localQueues.enter(name, result);
  if (call.autoExtend) result.renew(new Renewal(result));
  return use(result);
}

function refuse(call: LockCall, denied: Round | undefined): never {
  throw refusal(call, denied);
}

function refuseUnanswered(call: LockCall, denied: Round | undefined): undefined {
  if (call.isUnanswered(denied)) throw refusal(call, denied);
  reportRefusal(call, denied);
  return undefined;
}
