/**
 * A lock while it is held: its validity by the clock, its end, and who is told of it.
 *
 * @module
 */
import { elapsedMs, type Instant } from "./clock.ts";
import { LockLostError, lockName, nodeErrors, QuorumError, voteCount } from "./errors.ts";
import { emit } from "./events.ts";
import type { Settings } from "./options.ts";
import { askToRelease, type Electorate, Round, undo } from "./quorum.ts";
import { EXTEND_AFTER_FACTOR, renew } from "./renewal.ts";
import { Timed } from "./timer_wheel.ts";
import { expiryMarginMs } from "./validity.ts";

/**
 * What is known of one acquisition. It waits in the timer wheel for whatever comes first: the next extension, or
 * the end of the validity. Whatever the network does, the end comes by the clock.
 */
export class Hold extends Timed {
  readonly electorate: Electorate;
  readonly settings: Settings;
  readonly resources: readonly string[];
  /** The round that won it. */
  readonly round: Round;
  /** How often it was extended. */
  extensions = 0;
  /** Why no further extension is tried, once none is. */
  extensionsEnded: Error | undefined = undefined;
  #state: "held" | "lost" | "released" = "held";
  /** From when the validity counts, and how long it is. */
  #since: Instant;
  #validityMs: number;
  #extendAtMs: number;
  #extending = false;
  /** An extension was sent of which no quorum is known: some keys may outlive the validity. */
  #inDoubt = false;
  #controller: AbortController | undefined = undefined;
  #reason: unknown = undefined;
  #released: Promise<boolean> | undefined = undefined;

  constructor(
    electorate: Electorate,
    settings: Settings,
    resources: readonly string[],
    round: Round,
    autoExtend: boolean,
  ) {
    super();
    this.electorate = electorate;
    this.settings = settings;
    this.resources = resources;
    this.round = round;
    this.#since = round;
    this.#validityMs = settings.validityMs;
    this.#extendAtMs = autoExtend
      ? round.monotonicMs + settings.ttlMs * EXTEND_AFTER_FACTOR
      : Infinity;
    this.#schedule();
  }

  /** Whether the lock is certain at this moment, by the clock. */
  get held(): boolean {
    return this.remainingMs() > 0;
  }

  /** Whether it was neither released nor given up as lost. */
  get standing(): boolean {
    return this.#state === "held";
  }

  /** What is left of the validity at this moment, in milliseconds; 0 once it is over. */
  remainingMs(): number {
    if (this.#state !== "held") return 0;
    return Math.max(this.#validityMs - elapsedMs(this.electorate.wheel.clock, this.#since), 0);
  }

  /** Aborts when the lock is lost; made only when somebody asks for it. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#reason !== undefined) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** Why the lock was lost, or `undefined` where it was not. */
  get lostError(): LockLostError | undefined {
    // A lock whose time is over is lost, even where a busy event loop has kept the timer from saying so.
    if (this.#state === "held" && !this.held) this.#runOut();
    return this.#state === "lost" ? this.#reason as LockLostError : undefined;
  }

  /** Aborts the signal for a reason of the caller's; the lock itself stands. */
  abort(reason: unknown): void {
    this.#reason ??= reason;
    this.#controller?.abort(reason);
  }

  /** An extension is on its way. */
  doubt(): void {
    this.#inDoubt = true;
  }

  /** A new validity, unless the old one reaches further. */
  prolong(since: Instant, validityMs: number): void {
    this.extensions++;
    this.#inDoubt = false;
    if (validityMs - elapsedMs(this.electorate.wheel.clock, since) <= this.remainingMs()) return;
    this.#since = since;
    this.#validityMs = validityMs;
    this.#schedule();
  }

  /**
   * Gives the lock up as lost: the signal aborts, and keys that would live on are taken back. A lock that merely
   * ran out leaves its keys to their TTL, which is about to end them: whoever still works unaware keeps the drift
   * allowance as a margin.
   */
  lose(cause: unknown, ranOut = false): void {
    if (this.#state !== "held") return;
    this.#end("lost");
    const message = `Cannot keep ${lockName(this.resources)}: ${
      cause instanceof Error ? cause.message : cause
    }`;
    const details = { resources: this.resources, votes: this.round.votes, cause };
    const error = this.#reason = new LockLostError(message, details);
    this.round.withdraw();
    if (!ranOut || this.#inDoubt) undo(this.electorate, this.round);
    this.#controller?.abort(error);
    this.#emitLost(cause);
  }

  /** Deletes the keys. A second call gives the first one's result. */
  release(): Promise<boolean> {
    return this.#released ??= this.#release();
  }

  override onDue(): void {
    const { clock } = this.electorate.wheel;
    if (this.remainingMs() <= expiryMarginMs(this.#validityMs)) {
      this.#runOut();
    } else {
      if (!this.#extending && clock.monotonicMs() >= this.#extendAtMs) this.#extend();
      this.#schedule();
    }
  }

  override onClosed(): void {
    this.lose(new Error("the lock client was closed"));
  }

  #runOut(): void {
    this.lose(this.extensionsEnded ?? new Error("its validity has ended"), true);
  }

  #schedule(): void {
    if (this.#state !== "held") return;
    const { wheel } = this.electorate;
    const endMs = wheel.clock.monotonicMs() + this.remainingMs() -
      expiryMarginMs(this.#validityMs);
    wheel.schedule(this, this.#extending ? endMs : Math.min(endMs, this.#extendAtMs));
  }

  async #extend(): Promise<void> {
    this.#extending = true;
    const nextMs = await renew(this);
    this.#extending = false;
    this.#extendAtMs = nextMs;
    this.#schedule();
  }

  async #release(): Promise<boolean> {
    const ranOut = !this.held;
    const { electorate, settings, resources } = this;
    this.#end("released");
    this.round.withdraw();
    const round = new Round(
      electorate,
      this.round.keys,
      this.round.value,
      settings.ttlMs,
      this.round,
    );
    await round.ask(askToRelease, settings.nodeTimeoutMs);
    const confirmed = round.decision === "granted" ||
      !round.unanswered && !round.deniedByMajority && !ranOut;
    const elapsed = elapsedMs(electorate.wheel.clock, round);
    if (round.unanswered && !ranOut) throw this.#releaseFailed(round, elapsed);
    if (settings.onEvent) {
      emit(settings.onEvent, {
        type: "released",
        resources,
        votes: round.votes,
        confirmed,
        elapsedMs: elapsed,
        heldMs: elapsedMs(electorate.wheel.clock, this.round),
      });
    }
    return confirmed;
  }

  #releaseFailed(round: Round, elapsedMs: number): QuorumError {
    const { resources, settings, electorate } = this;
    const { votes } = round;
    const error = new QuorumError(
      `Cannot release ${lockName(resources)}: ${voteCount(votes, electorate.quorum)}`,
      { resources, votes, cause: nodeErrors(votes) },
    );
    if (settings.onEvent) {
      emit(settings.onEvent, { type: "release-failed", resources, votes, error, elapsedMs });
    }
    return error;
  }

  #end(state: "lost" | "released"): void {
    if (this.#state === "held") this.#state = state;
    this.electorate.wheel.cancel(this);
  }

  #emitLost(cause: unknown): void {
    const { onEvent } = this.settings;
    if (!onEvent) return;
    const heldMs = elapsedMs(this.electorate.wheel.clock, this.round);
    emit(onEvent, { type: "lost", resources: this.resources, cause, heldMs });
  }
}
