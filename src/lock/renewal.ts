/**
 * Extending a lock: by its own timer, or because its holder asks.
 *
 * @module
 */
import { elapsedMs } from "../time/clock.ts";
import { LockLostError, lockName } from "../errors.ts";
import { emit } from "../events.ts";
import type { Hold } from "./held_lock.ts";
import { askToExtend, type Round } from "../quorum/round.ts";
import { expiryMarginMs, validityMs } from "../time/validity.ts";
import { pause } from "../waiting/waiter.ts";

/** The share of the TTL after which a lock is extended. */
const EXTEND_AFTER_FACTOR = 1 / 3;
/** The share of the TTL between a failed extension and the next try. */
const RETRY_FACTOR = 1 / 15;
/** The shortest such delay, in milliseconds, so that short TTLs don't spin. */
const RETRY_MS_MIN = 2;

/**
 * One try at extending, bounded by `nodeTimeoutMs` and by what is left of the validity.
 *
 * Only nodes that still hold the lock's value count. A lock that is gone on a majority is lost, and never brought
 * back; a try that merely failed leaves the old validity as it was.
 *
 * @param hold The lock.
 * @param ttlMs Its new TTL, in milliseconds.
 * @param signal Gives the try up.
 * @returns Whether the lock has a new validity.
 */
async function tryExtend(hold: Hold, ttlMs: number, signal?: AbortSignal): Promise<boolean> {
  const { electorate, settings, round: won } = hold;
  const round = won.follow(ttlMs);
  if (won.counts) round.fence = hold.fencingToken;
  hold.doubt(round);
  const timeoutMs = Math.min(settings.nodeTimeoutMs, hold.remainingMs());
  const asked = round.ask(askToExtend, timeoutMs, signal);
  // From here on keys may stand where none did, and for longer.
  won.mayStand |= round.mayStand;
  won.ttlMs = Math.max(won.ttlMs, ttlMs);
  await asked;
  if (!hold.standing) return false;
  const newValidityMs = validityMs(ttlMs, settings.driftFactor);
  const extended = round.decision === "granted" && hold.held &&
    newValidityMs - expiryMarginMs(newValidityMs) > elapsedMs(electorate.wheel.clock, round);
  if (extended) hold.prolong(round, newValidityMs);
  report(hold, round, extended);
  if (round.deniedByMajority) hold.lose(new Error("a majority of the nodes no longer holds it"));
  return extended;
}

/** Extends a lock by its own timer, for as long as it is held. */
export class Renewal {
  readonly #hold: Hold;
  #extending = false;
  #nextMs: number;
  /** Why no further extension is tried, once none is. */
  ended: Error | undefined = undefined;

  constructor(hold: Hold) {
    this.#hold = hold;
    this.#nextMs = hold.round.monotonicMs + hold.settings.ttlMs * EXTEND_AFTER_FACTOR;
  }

  /** When the next try is due, by the monotonic clock; Infinity while one is under way, and once none is left. */
  get dueMs(): number {
    return this.#extending || this.ended ? Infinity : this.#nextMs;
  }

  /** Begins a try, if one is due. */
  extendIfDue(): void {
    if (this.dueMs > this.#hold.electorate.wheel.clock.monotonicMs()) return;
    this.ended = exhausted(this.#hold);
    if (!this.ended) this.#extend();
  }

  async #extend(): Promise<void> {
    const { settings: { ttlMs }, electorate: { wheel: { clock } } } = this.#hold;
    const startMs = clock.monotonicMs();
    this.#extending = true;
    const extended = await tryExtend(this.#hold, ttlMs);
    this.#extending = false;
    this.#nextMs = extended
      ? startMs + ttlMs * EXTEND_AFTER_FACTOR
      : clock.monotonicMs() + retryDelayMs(ttlMs);
    this.#hold.schedule();
  }
}

/**
 * Extends because the holder asks; a failed try is repeated for as long as the lock is still valid.
 *
 * @param hold The lock.
 * @param ttlMs Its new TTL, in milliseconds.
 * @param signal Gives up; the lock stays as it is.
 * @throws {LockLostError} If the lock is over before an extension succeeds, or may not be extended again.
 */
export async function extend(hold: Hold, ttlMs: number, signal?: AbortSignal): Promise<void> {
  const { electorate: { wheel }, resources } = hold;
  for (;;) {
    signal?.throwIfAborted();
    const cause = hold.lostError ?? (hold.held ? exhausted(hold) : new Error("it was released"));
    if (cause instanceof LockLostError) throw cause;
    if (cause) {
      const message = `Cannot extend ${lockName(resources)}: ${cause.message}`;
      throw new LockLostError(message, { resources, votes: hold.round.votes, cause });
    }
    if (await tryExtend(hold, ttlMs, signal)) return;
    if (hold.held) {
      await pause(wheel, Math.min(retryDelayMs(hold.settings.ttlMs), hold.remainingMs()), signal);
    }
  }
}

/** Why no further extension is allowed, if none is. */
function exhausted(hold: Hold): Error | undefined {
  const { extensions, settings: { extensionsMax } } = hold;
  if (extensions < extensionsMax) return undefined;
  return new Error(`it was extended ${extensions} times, the most that 'extensionsMax' allows`);
}

function retryDelayMs(ttlMs: number): number {
  return Math.max(ttlMs * RETRY_FACTOR, RETRY_MS_MIN);
}

function report(hold: Hold, round: Round, extended: boolean): void {
  const { settings: { onEvent }, resources, electorate, extensions } = hold;
  if (!onEvent) return;
  const { votes } = round;
  const elapsed = elapsedMs(electorate.wheel.clock, round);
  const times = { elapsedMs: elapsed, remainingMs: hold.remainingMs() };
  if (extended) emit(onEvent, { type: "extended", resources, votes, extensions, ...times });
  else emit(onEvent, { type: "extend-failed", resources, votes, ...times });
}
