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
import { expiryMarginMs } from "./validity.ts";
import { PollingWaiter } from "./waiter.ts";

/** One call for a lock: a series of attempts, each a round with a value of its own. */
export class Acquisition {
  readonly #electorate: Electorate;
  readonly #settings: Settings;
  readonly #resources: readonly string[];
  readonly #keys: readonly string[];
  readonly #autoExtend: boolean;
  /** When the call began: with its first round. */
  #start: Instant | undefined = undefined;
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
      await this.attempt();
      const hold = this.conclude();
      if (hold) return hold;
      const leftMs = waitMs - elapsedMs(wheel.clock, this.#start!);
      if (leftMs <= 0) throw this.refusal();
      waiter ??= new PollingWaiter(wheel, this.#settings);
      await waiter.wait(this.#attempts - 1, leftMs, signal);
    }
  }

  /**
   * Asks all nodes for the lock, under a value of its own; {@linkcode conclude} says what came of it.
   *
   * @throws The signal's reason, or a {@linkcode RedlockError} where the client is closed.
   */
  attempt(): Promise<void> {
    this.#throwIfEnded();
    const { signal, ttlMs, nodeTimeoutMs, validityMs } = this.#settings;
    const value = this.#electorate.wheel.random.value();
    this.#attempts++;
    this.#round = new Round(this.#electorate, this.#keys, value, ttlMs);
    this.#start ??= this.#round;
    return this.#round.ask(askToAcquire, Math.min(nodeTimeoutMs, validityMs), signal);
  }

  /**
   * The lock, if the attempt won it and its validity is not over by now; else what was set is taken back.
   *
   * @returns The lock, or `undefined`: then nothing of it is left on the nodes, or will not be for long.
   * @throws The signal's reason, or a {@linkcode RedlockError} where the client is closed.
   */
  conclude(): Hold | undefined {
    const { signal, validityMs, onEvent } = this.#settings;
    const round = this.#round;
    const remainingMs = validityMs - elapsedMs(this.#electorate.wheel.clock, round);
    const ended = this.#electorate.closed || signal?.aborted;
    // A lock whose holder would have to be told of its end at once is none.
    const valid = remainingMs > expiryMarginMs(validityMs);
    const granted = round.decision === "granted" && valid && !ended;
    const hold = granted
      ? new Hold(round, this.#settings, this.#resources, this.#autoExtend)
      : undefined;
    if (!hold) undo(round);
    if (onEvent) this.#report(granted, remainingMs);
    this.#throwIfEnded(hold);
    return hold;
  }

  /** Whether the last attempt failed because nodes did not answer, or not in time, not because others hold it. */
  get unanswered(): boolean {
    return this.#round.unanswered || this.#round.decision === "granted";
  }

  /** Why there is no lock, as an error. */
  refusal(): LockHeldError | QuorumError {
    const { nodes, quorum } = this.#electorate;
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
        elapsedMs: elapsedMs(this.#electorate.wheel.clock, this.#start!),
      });
    }
    const late = this.#round.decision === "granted" ? ", too late for its validity" : "";
    const message = `Cannot acquire ${lockName(resources)}: ${
      voteCount(votes, nodes.length, quorum)
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
}
