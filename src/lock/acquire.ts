/**
 * Acquiring: the Redlock algorithm, on one screen.
 *
 * @module
 */
import { type Clock, elapsedMs, type Instant } from "../time/clock.ts";
import {
  type BlockingKey,
  closedError,
  isHopeless,
  type LockHeldError,
  lockHeldError,
  lockName,
  type QuorumError,
  quorumError,
} from "../errors.ts";
import { emit } from "../events.ts";
import { askFenced } from "../fencing/fenced_attempt.ts";
import { agreeOnToken } from "../fencing/token.ts";
import { HeldLock } from "./held_lock.ts";
import { queueKey } from "../waiting/local_queues.ts";
import type { QueueTicket } from "../quorum/queue_ticket.ts";
import type { Settings } from "../options.ts";
import { askToAcquire, Round } from "../quorum/round.ts";
import type { ClientState } from "../client_state.ts";
import { callTokenSource } from "../fencing/token_source.ts";
import { blockingKey } from "./inspection.ts";
import { undo } from "./undo.ts";
import { expiryMarginMs } from "../time/validity.ts";
import { pause } from "../time/pause.ts";

/** One call for a lock: a series of attempts, each a round with a value of its own. */
export class Acquisition {
  readonly #client: ClientState;
  readonly #settings: Settings;
  readonly #resources: readonly string[];
  readonly #keys: readonly string[];
  readonly #autoExtend: boolean;
  /** When the call began: with its first round. */
  #start: Instant | undefined = undefined;
  #attempts = 0;
  /** The last attempt; none where the call is still in line behind others of this client. */
  #round: Round | undefined = undefined;

  constructor(
    client: ClientState,
    settings: Settings,
    resources: readonly string[],
    autoExtend: boolean,
  ) {
    const { keyPrefix } = settings;
    this.#client = client;
    this.#settings = settings;
    this.#resources = resources;
    this.#keys = keyPrefix === "" ? resources : resources.map((resource) => keyPrefix + resource);
    this.#autoExtend = settings.autoExtend ?? autoExtend;
  }

  /**
   * Attempts until the lock is won or the wait is over.
   *
   * @throws {LockHeldError} If others hold it to the end.
   * @throws {QuorumError} If too few nodes answered in the last attempt.
   */
  async acquire(): Promise<HeldLock> {
    const { localQueues } = this.#client;
    if (this.#settings.waitMs === 0) {
      await this.attempt();
      const held = this.concludeAlone() ?? await this.#refuse();
      await this.drawToken(held);
      return held;
    }
    const name = queueKey(this.#keys);
    if (!localQueues.enter(name, this)) await this.#standInLine(name);
    try {
      const hold = await this.#contend(name);
      await this.drawToken(hold, this.#leftMs());
      localQueues.promote(name, this, hold);
      if (!hold.standing) localQueues.leave(name, hold); // lost while it was told of
      return hold;
    } catch (error) {
      localQueues.leave(name, this);
      throw error;
    }
  }

  /** Concludes a single attempt, which was made whoever else of this client waits for the lock. */
  concludeAlone(): HeldLock | undefined {
    const held = this.conclude();
    if (held?.standing) this.#client.localQueues.enter(queueKey(this.#keys), held);
    return held;
  }

  /**
   * Gives a lock that was won its token from elsewhere, if the settings name a source, and has it extended from then on.
   *
   * @param leftMs What is left of the wait, in milliseconds: the source may take so long, and never longer than the
   *   validity lasts. If nothing is left, the validity alone counts.
   * @throws Whatever the source throws, the call's signal's reason, or a {@linkcode LockLostError} if the time is over.
   *   The lock is released then, and nobody waits for the source, whose signal is aborted.
   */
  async drawToken(held: HeldLock, leftMs = 0): Promise<void> {
    const { tokenSource, signal } = this.#settings;
    const { wheel } = this.#client;
    if (!tokenSource) return;
    const tooLate = () => held.lose(new Error("'tokenSource' did not answer within 'waitMs'"));
    const limit = leftMs > 0 ? wheel.after(leftMs, tooLate) : undefined;
    wheel.ref();
    try {
      const token = await callTokenSource(tokenSource, this.#resources, held.signal, signal);
      if (held.lostError) throw held.lostError;
      this.#throwIfEnded(held);
      held.fencingToken = token;
      if (this.#autoExtend) held.renew();
    } catch (error) {
      this.#throwIfEnded(held);
      await held.release().catch(() => {});
      throw error;
    } finally {
      if (limit) wheel.cancel(limit);
      wheel.unref();
    }
  }

  /** Asks until the nodes grant the lock. Nobody else of this client asks for it meanwhile. */
  async #contend(name: string): Promise<HeldLock> {
    const { signal, onEvent } = this.#settings;
    const { localQueues } = this.#client;
    let waiter = localQueues.waiterIfContended(name, this.#keys, this.#settings);
    if (waiter?.ready) await waiter.ready(this.#leftMs(), signal);
    for (;;) {
      if (this.#coolingMs > 0) {
        await this.#coolDown(name);
        waiter = undefined;
      }
      await this.attempt(waiter?.nextTicket());
      const held = this.conclude();
      if (held) return held;
      const leftMs = this.#leftMs();
      if (leftMs <= 0 || this.#hopeless) return await this.#refuse();
      waiter ??= localQueues.waiter(name, this.#keys, this.#settings);
      localQueues.recordDenial(name, this.#round!);
      await waiter.wait(this.#attempts - 1, leftMs, signal, this.#round!);
      if (onEvent && waiter.notified) this.#reportWoken();
    }
  }

  /** Waits for as long as this client lets the resources be, and leaves them to others meanwhile. */
  async #coolDown(name: string): Promise<void> {
    const { wheel, localQueues } = this.#client;
    this.#throwIfEnded();
    this.#start ??= instantOf(wheel.clock);
    localQueues.yield(name);
    while (this.#coolingMs > 0) {
      const leftMs = this.#leftMs();
      if (leftMs <= 0) await this.#refuse();
      await pause(wheel, Math.min(this.#coolingMs, leftMs), this.#settings.signal);
      this.#throwIfEnded();
    }
  }

  /** For how much longer this client lets one of the resources be, in milliseconds. */
  get #coolingMs(): number {
    return this.#client.cooldowns.leftMs(this.#keys);
  }

  /** Waits for the calls of this client that came before. */
  async #standInLine(name: string): Promise<void> {
    const { waitMs, signal } = this.#settings;
    const { wheel: { clock }, localQueues } = this.#client;
    this.#throwIfEnded();
    this.#start = instantOf(clock);
    const first = await localQueues.wait(name, this, waitMs, signal);
    if (first) return;
    this.#throwIfEnded();
    this.#round = localQueues.latest(name);
    await this.#refuse();
  }

  /** What is left of the wait, in milliseconds. */
  #leftMs(): number {
    const { waitMs } = this.#settings;
    return this.#start ? waitMs - elapsedMs(this.#client.wheel.clock, this.#start) : waitMs;
  }

  /**
   * Asks all nodes for the lock, under a value of its own; {@linkcode conclude} says what came of it. Asks none where
   * this client lets a resource be.
   *
   * @param ticket Has the nodes put the call in line.
   * @throws The signal's reason, or a {@linkcode RedlockError} where the client is closed.
   */
  attempt(ticket?: QueueTicket): Promise<void> {
    this.#throwIfEnded();
    if (this.#coolingMs > 0) {
      this.#start ??= instantOf(this.#client.wheel.clock);
      return Promise.resolve();
    }
    const { signal, ttlMs, nodeTimeoutMs, validityMs, fencing, restartGuardMs } = this.#settings;
    const value = this.#client.wheel.random.value();
    this.#attempts++;
    const round = this.#round = new Round(this.#client, this.#keys, value, ttlMs);
    round.ticket = ticket;
    round.guardMs = restartGuardMs;
    this.#start ??= round;
    if (fencing) return askFenced(round, this.#settings, this.#client);
    return round.ask(askToAcquire, Math.min(nodeTimeoutMs, validityMs), signal);
  }

  /**
   * The lock, if the attempt won it and its validity is not over by now; else what was set is taken back.
   *
   * @returns The lock, or `undefined`: then nothing of it is left on the nodes, or will not be for long.
   * @throws The signal's reason, or a {@linkcode RedlockError} where the client is closed.
   */
  conclude(): HeldLock | undefined {
    const { signal, validityMs, onEvent } = this.#settings;
    const round = this.#round;
    if (!round) return undefined;
    const remainingMs = validityMs - elapsedMs(this.#client.wheel.clock, round);
    const ended = this.#client.closed || signal?.aborted;
    // A lock whose holder would have to be told of its end at once is none.
    const valid = remainingMs > expiryMarginMs(validityMs) && this.#coolingMs === 0;
    const token = round.counts && agreeOnToken(round.counts, this.#client.quorum);
    const granted = round.decision === "granted" && valid && !ended && (token?.agreed ?? true);
    const held = granted
      ? new HeldLock(this.#client, round, this.#settings, this.#resources)
      : undefined;
    if (this.#autoExtend && !this.#settings.tokenSource) held?.renew();
    if (held && token) {
      held.fencingToken = token.token;
      this.#client.highestToken = Math.max(token.token, this.#client.highestToken);
    }
    if (!held) undo(round, true);
    if (onEvent) this.#report(granted, remainingMs);
    this.#throwIfEnded(held);
    return held;
  }

  /** Whether the last attempt failed because nodes did not answer, or not in time, not because others hold it. */
  get unanswered(): boolean {
    return this.#round !== undefined && this.#coolingMs === 0 &&
      (this.#round.unanswered || this.#round.decision === "granted");
  }

  /** Whether no further attempt can succeed, because too many nodes refuse for good. */
  get #hopeless(): boolean {
    const { nodes, quorum } = this.#client;
    return this.unanswered && isHopeless(this.#round!.votes, nodes.length, quorum);
  }

  /**
   * Ends the call without a lock. A node that denied is asked first what stands under the key, so that the error says
   * it.
   */
  async #refuse(): Promise<never> {
    const { signal, nodeTimeoutMs } = this.#settings;
    const waitedMs = elapsedMs(this.#client.wheel.clock, this.#start!);
    const ownHeldMs = this.#ownHeldMs();
    const round = this.#round;
    let key: BlockingKey | undefined;
    if (round && !this.unanswered && this.#coolingMs === 0 && ownHeldMs === undefined) {
      const keys = this.#keys;
      const found = await blockingKey(this.#client, round, keys, nodeTimeoutMs, signal);
      const resource = keys.length > 1 ? this.#resources[found?.index ?? 0] : undefined;
      key = found && { ...found, resource };
      this.#throwIfEnded();
    }
    throw this.refusal(waitedMs, ownHeldMs, key);
  }

  /** For how long this client itself has held one of the resources, in milliseconds, if it does. */
  #ownHeldMs(): number | undefined {
    const { localQueues, wheel } = this.#client;
    const keys = new Set(this.#keys);
    for (const owner of localQueues.owners()) {
      if (!(owner instanceof HeldLock) || !owner.round.keys.some((key) => keys.has(key))) continue;
      return elapsedMs(wheel.clock, owner.round);
    }
    return undefined;
  }

  /**
   * Why there is no lock, as an error.
   *
   * @param waitedMs How long the call waited, in milliseconds.
   * @param ownHeldMs For how long this client itself has held one of the resources, in milliseconds, if it does.
   * @param key What stands under the key, if that is known.
   */
  refusal(waitedMs?: number, ownHeldMs?: number, key?: BlockingKey): LockHeldError | QuorumError {
    const votes = this.#round?.votes ?? [];
    const resources = this.#resources;
    const { unanswered } = this;
    if (this.#settings.onEvent) {
      emit(this.#settings.onEvent, {
        type: "denied",
        resources,
        reason: unanswered ? "no-quorum" : "held",
        votes,
        attempts: this.#attempts,
        elapsedMs: elapsedMs(this.#client.wheel.clock, this.#start!),
      });
    }
    const { nodes: { length: nodeCount }, quorum, localQueues } = this.#client;
    const refused = { resources, votes, nodeCount, quorum };
    if (unanswered) return quorumError("acquire", { ...refused, note: this.#note });
    return lockHeldError({
      ...refused,
      waitedMs: this.#settings.waitMs === 0 ? undefined : waitedMs,
      key,
      ownHeldMs,
      cooldownLeftMs: this.#coolingMs,
      waiters: localQueues.length(queueKey(this.#keys)),
    });
  }

  /** Why there is no lock although a quorum granted it, if so. */
  get #note(): string | undefined {
    const { decision, counts } = this.#round!;
    if (decision !== "granted") return undefined;
    const unsettled = counts !== undefined && !agreeOnToken(counts, this.#client.quorum).agreed;
    return unsettled
      ? "but they did not agree on a fencing token"
      : "but too late for its validity";
  }

  /** Ends the call where its signal was aborted or the client closed; also in a listener, so a lock is given back. */
  #throwIfEnded(held?: HeldLock): void {
    const { signal } = this.#settings;
    if (!this.#client.closed && !signal?.aborted) return;
    held?.lose(new Error("the call was ended"));
    signal?.throwIfAborted();
    throw closedError(`acquire ${lockName(this.#resources)}`, this.#resources, this.#round?.votes);
  }

  #report(granted: boolean, remainingMs: number): void {
    const onEvent = this.#settings.onEvent!;
    const { clock } = this.#client.wheel;
    const resources = this.#resources;
    const { votes } = this.#round!;
    const attemptMs = elapsedMs(clock, this.#round!);
    const attempts = this.#attempts;
    emit(onEvent, {
      type: "attempt",
      resources,
      attempt: attempts,
      granted,
      votes,
      elapsedMs: attemptMs,
    });
    if (!granted) return;
    const callMs = elapsedMs(clock, this.#start!);
    emit(onEvent, {
      type: "acquired",
      resources,
      votes,
      attempts,
      elapsedMs: callMs,
      remainingMs,
    });
  }

  #reportWoken(): void {
    const { clock } = this.#client.wheel;
    emit(this.#settings.onEvent!, {
      type: "woken",
      resources: this.#resources,
      elapsedMs: elapsedMs(clock, this.#start!),
    });
  }
}

function instantOf(clock: Clock): Instant {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
}
