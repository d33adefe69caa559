/**
 * Extending a lock: by its own timer, or because its holder asks.
 *
 * @module
 */
import { elapsedMs } from "../time/clock.ts";
import { LockLostError, lockName } from "../errors.ts";
import { emit } from "../events.ts";
import type { HeldLock } from "./held_lock.ts";
import { askToExtend, type Round } from "../quorum/round.ts";
import { fillIn } from "./fill_in.ts";
import { expiryMarginMs, validityMs } from "../time/validity.ts";
import { pause } from "../time/pause.ts";

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
 * back: an extension sets no missing key, whether or not its answers arrive. A try that merely failed leaves the old
 * validity as it was.
 *
 * @param held The lock.
 * @param ttlMs Its new TTL, in milliseconds.
 * @param signal Gives the try up.
 * @returns Whether the lock has a new validity.
 */
async function tryExtend(held: HeldLock, ttlMs: number, signal?: AbortSignal): Promise<boolean> {
  const { client, settings, round: won } = held;
  const round = won.follow(ttlMs);
  if (won.counts) round.counterFloor = held.fencingToken;
  held.extensionStarted(round);
  won.ttlMs = Math.max(won.ttlMs, ttlMs); // keys may live for longer from here on
  const timeoutMs = Math.min(settings.nodeTimeoutMs, held.remainingMs());
  await round.ask(askToExtend, timeoutMs, signal);
  if (!held.standing) return false;
  const newValidityMs = validityMs(ttlMs, settings.driftFactor);
  const extended = round.decision === "granted" && held.held &&
    newValidityMs - expiryMarginMs(newValidityMs) > elapsedMs(client.wheel.clock, round);
  if (extended) {
    held.extended(round, newValidityMs);
    const token = won.counts && held.fencingToken;
    round.forEachMissing((nodeIndex) => {
      if (held.held) fillIn(won, ttlMs, nodeIndex, token);
    });
  }
  report(held, round, extended);
  if (round.deniedByMajority) held.lose(new Error("a majority of the nodes no longer holds it"));
  return extended;
}

/** Extends a lock by its own timer, for as long as it is held. */
export class Renewal {
  readonly #lock: HeldLock;
  #extending = false;
  #nextMs: number;
  /** Why no further extension is tried, once none is. */
  ended: Error | undefined = undefined;

  constructor(held: HeldLock) {
    this.#lock = held;
    this.#nextMs = held.round.monotonicMs + held.settings.ttlMs * EXTEND_AFTER_FACTOR;
  }

  /** When the next try is due, by the monotonic clock; Infinity while one is under way, and once none is left. */
  get dueMs(): number {
    return this.#extending || this.ended ? Infinity : this.#nextMs;
  }

  /** Begins a try, if one is due. */
  extendIfDue(): void {
    if (this.dueMs > this.#lock.client.wheel.clock.monotonicMs()) return;
    this.ended = exhausted(this.#lock);
    if (!this.ended) this.#extend();
  }

  async #extend(): Promise<void> {
    const { settings: { ttlMs }, client: { wheel: { clock } } } = this.#lock;
    const startMs = clock.monotonicMs();
    this.#extending = true;
    const extended = await tryExtend(this.#lock, ttlMs);
    this.#extending = false;
    this.#nextMs = extended
      ? startMs + ttlMs * EXTEND_AFTER_FACTOR
      : clock.monotonicMs() + retryDelayMs(ttlMs);
    this.#lock.schedule();
  }
}

/**
 * Extends because the holder asks; a failed try is repeated for as long as the lock is still valid.
 *
 * @param held The lock.
 * @param ttlMs Its new TTL, in milliseconds.
 * @param signal Gives up; the lock stays as it is.
 * @throws {LockLostError} If the lock is over before an extension succeeds, or may not be extended again.
 */
export async function extend(held: HeldLock, ttlMs: number, signal?: AbortSignal): Promise<void> {
  const { client: { wheel }, resources } = held;
  for (;;) {
    signal?.throwIfAborted();
    const cause = held.lostError ?? (held.held ? exhausted(held) : new Error("it was released"));
    if (cause instanceof LockLostError) throw cause;
    if (cause) {
      const message = `Cannot extend ${lockName(resources)}: ${cause.message}`;
      throw new LockLostError(message, { resources, votes: held.round.votes, cause });
    }
    if (await tryExtend(held, ttlMs, signal)) return;
    if (held.held) {
      await pause(wheel, Math.min(retryDelayMs(held.settings.ttlMs), held.remainingMs()), signal);
    }
  }
}

/** Why no further extension is allowed, if none is. */
function exhausted(held: HeldLock): Error | undefined {
  const { extensions, settings: { extensionsMax } } = held;
  if (extensions < extensionsMax) return undefined;
  const times = extensions === 1 ? "once" : `${extensions} times`;
  return new Error(`it was extended ${times}, the most that 'extensionsMax' allows`);
}

function retryDelayMs(ttlMs: number): number {
  return Math.max(ttlMs * RETRY_FACTOR, RETRY_MS_MIN);
}

function report(held: HeldLock, round: Round, extended: boolean): void {
  const { settings: { onEvent }, resources, client, extensions } = held;
  if (!onEvent) return;
  const { votes } = round;
  const elapsed = elapsedMs(client.wheel.clock, round);
  const times = { elapsedMs: elapsed, remainingMs: held.remainingMs() };
  if (extended) emit(onEvent, { type: "extended", resources, votes, extensions, ...times });
  else emit(onEvent, { type: "extend-failed", resources, votes, ...times });
}
