/**
 * Acquiring: the Redlock algorithm, on one screen.
 *
 * @module
 */
import { elapsedMs, type Instant } from "./clock.ts";
import {
  LockHeldError,
  lockName,
  nodeErrors,
  QuorumError,
  RedlockError,
  voteCount,
} from "./errors.ts";
import { emit } from "./events.ts";
import { Hold } from "./hold.ts";
import type { Settings } from "./options.ts";
import { askToAcquire, type Electorate, Round, undo } from "./quorum.ts";
import { PollingWaiter } from "./waiter.ts";

/** One call for a lock: a series of attempts, each a round with a value of its own. */
export class Acquisition implements Instant {
  readonly monotonicMs: number;
  readonly wallMs: number;
  readonly #electorate: Electorate;
  readonly #settings: Settings;
  readonly #resources: readonly string[];
  readonly #keys: readonly string[];
  readonly #autoExtend: boolean;
  #attempts = 0;
  #round!: Round;

  constructor(
    electorate: Electorate,
    settings: Settings,
    resources: readonly string[],
    autoExtend: boolean,
  ) {
    const { keyPrefix } = settings;
    this.#electorate = electorate;
    this.#settings = settings;
    this.#resources = resources;
    this.#keys = keyPrefix === "" ? resources : resources.map((resource) => keyPrefix + resource);
    this.#autoExtend = settings.autoExtend ?? autoExtend;
    this.monotonicMs = electorate.wheel.clock.monotonicMs();
    this.wallMs = electorate.wheel.clock.wallMs();
  }

  /**
   * Attempts until the lock is won or the wait is over.
   *
   * @throws {LockHeldError} If others hold it to the end.
   * @throws {QuorumError} If too few nodes answered in the last attempt.
   */
  async acquire(): Promise<Hold> {
    const { waitMs, signal } = this.#settings;
    const { wheel } = this.#electorate;
    let waiter: PollingWaiter | undefined;
    for (;;) {
      const hold = await this.attempt();
      if (hold) return hold;
      const leftMs = waitMs - elapsedMs(wheel.clock, this);
      if (leftMs <= 0) throw this.refusal();
      waiter ??= new PollingWaiter(wheel, this.#settings);
      await waiter.wait(this.#attempts - 1, leftMs, signal);
    }
  }

  /**
   * One attempt.
   *
   * @returns The lock, or `undefined`: then nothing of it is left on the nodes, or will not be for long.
   * @throws The signal's reason, or a {@linkcode RedlockError} where the client is closed.
   */
  async attempt(): Promise<Hold | undefined> {
    const { signal, ttlMs, nodeTimeoutMs, validityMs } = this.#settings;
    const electorate = this.#electorate;
    const { wheel } = electorate;
    this.#throwIfEnded();
    this.#attempts++;
    const round = this.#round = new Round(electorate, this.#keys, wheel.random.value(), ttlMs);
    await round.ask(askToAcquire, Math.min(nodeTimeoutMs, validityMs), signal);
    const remainingMs = validityMs - elapsedMs(wheel.clock, round);
    const ended = electorate.closed || signal?.aborted;
    const granted = round.decision === "granted" && remainingMs > 0 && !ended;
    const hold = granted
      ? new Hold(electorate, this.#settings, this.#resources, round, this.#autoExtend)
      : undefined;
    if (!hold) undo(electorate, round);
    if (this.#settings.onEvent) this.#report(granted, remainingMs);
    this.#throwIfEnded(hold);
    return hold;
  }

  /** Whether the last attempt failed because nodes did not answer, or not in time, not because others hold it. */
  get unanswered(): boolean {
    return this.#round.unanswered || this.#round.decision === "granted";
  }

  /** Why there is no lock, as an error. */
  refusal(): LockHeldError | QuorumError {
    const votes = this.#round.votes;
    const resources = this.#resources;
    const { unanswered } = this;
    if (this.#settings.onEvent) {
      emit(this.#settings.onEvent, {
        type: "denied",
        resources,
        reason: unanswered ? "no-quorum" : "held",
        votes,
        attempts: this.#attempts,
        elapsedMs: elapsedMs(this.#electorate.wheel.clock, this),
      });
    }
    const late = this.#round.decision === "granted" ? ", too late for its validity" : "";
    const message = `Cannot acquire ${lockName(resources)}: ${
      voteCount(votes, this.#electorate.quorum)
    }${late}`;
    const details = { resources, votes, cause: nodeErrors(votes) };
    return unanswered ? new QuorumError(message, details) : new LockHeldError(message, details);
  }

  /** Ends the call where its signal was aborted or the client closed; also in a listener, so a lock is given back. */
  #throwIfEnded(hold?: Hold): void {
    const { signal } = this.#settings;
    if (!this.#electorate.closed && !signal?.aborted) return;
    hold?.lose(new Error("the call was ended"));
    signal?.throwIfAborted();
    const resources = this.#resources;
    throw new RedlockError(
      `Cannot acquire ${lockName(resources)}: the lock client is closed`,
      { resources, votes: this.#round?.votes },
    );
  }

  #report(granted: boolean, remainingMs: number): void {
    const onEvent = this.#settings.onEvent!;
    const { clock } = this.#electorate.wheel;
    const resources = this.#resources;
    const { votes } = this.#round;
    const attemptMs = elapsedMs(clock, this.#round);
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
    const callMs = elapsedMs(clock, this);
    emit(onEvent, {
      type: "acquired",
      resources,
      votes,
      attempts,
      elapsedMs: callMs,
      remainingMs,
    });
  }
}
