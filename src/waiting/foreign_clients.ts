/**
 * Clients of other libraries that take part in a contended lock, and how it is shared with them.
 *
 * Such clients poll, so they hardly find the lock free while each release hands it to a client that
 * was notified. Their releases notify nobody, so once one of them has the lock, they keep it until
 * the first in the queue happens to poll while it is free. So each side has the lock for many locks
 * in a row. To let the other side in, a client now and then leaves the lock free, for about as long
 * as pollers pause.
 *
 * @module
 */
import type { Random } from "../time/random.ts";

/** How long it is remembered that a client of another library had the lock, in milliseconds. */
const SEEN_MS = 10_000;
/** The chance that a lock which becomes free is left to such clients. */
const CONCEDE_CHANCE = 0.125;
/** For how long it is left to them, in milliseconds. */
const CONCEDE_MS_MIN = 50;
const CONCEDE_MS_MAX = 150;
/** The least that {@linkcode ForeignClients.nextPollMsMax} returns, in milliseconds. */
const POLL_MS_MIN = 5;
/**
 * A key that expires by so much later than before has a new value, or was extended, in
 * milliseconds.
 */
const LATER_MS = 5;

/** Those of one lock. Times are by the monotonic clock, in milliseconds. */
export class ForeignClients {
  /** Until when this client leaves a free lock to clients of other libraries. */
  concededUntilMs = 0;
  /** When one of them was last seen to have the lock. */
  #seenMs = -Infinity;
  /** When its keys expire. */
  #expiryMs = -Infinity;
  /** Since when it has the lock. */
  #sinceMs = 0;

  /** One of them has the lock. */
  note(nowMs: number): void {
    this.#seenMs = nowMs;
  }

  /** The lock becomes free: draws whether it is left to them, and for how long. */
  concede(nowMs: number, random: Random): void {
    if (!this.isSeen(nowMs) || random.fraction() >= CONCEDE_CHANCE) return;
    this.concededUntilMs = nowMs + CONCEDE_MS_MIN +
      (CONCEDE_MS_MAX - CONCEDE_MS_MIN) * random.fraction();
  }

  /** Whether one of them had the lock lately. */
  isSeen(nowMs: number): boolean {
    return nowMs - this.#seenMs < SEEN_MS;
  }

  /** For how long at most clients of this library leave the lock to others, in milliseconds. */
  concedeMsMax(nowMs: number): number {
    return this.isSeen(nowMs) ? CONCEDE_MS_MAX : 0;
  }

  /**
   * The upper bound of the random delay until the first in the queue asks again while one of them
   * has the lock: as long as that has had it so far, and at most `retryDelayMs`. So a lock that
   * changes hands often is polled often. Notes when the keys expire, by which it knows since when
   * they are held.
   *
   * @param freeInMs When the keys expire, from now, in milliseconds.
   */
  nextPollMsMax(nowMs: number, freeInMs: number, retryDelayMs: number): number {
    const expiryMs = nowMs + freeInMs;
    if (expiryMs > this.#expiryMs + LATER_MS) this.#sinceMs = nowMs;
    this.#expiryMs = expiryMs;
    return Math.max(POLL_MS_MIN, Math.min(nowMs - this.#sinceMs, retryDelayMs));
  }
}
