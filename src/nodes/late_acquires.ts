/**
 * Acquisitions whose answers never came.
 *
 * A client that gave up on a command does not know whether the server will still execute it, and no order helps: the
 * command may be in a proxy, or on its way through another connection. So the release that undoes it is repeated, with
 * growing delays, until the client learns what became of the command, or until the TTL is over. A key that is set late
 * exists at most about as long again as it was late.
 *
 * Nothing is deleted before the lock is released: an extension may have set the key again, and the node counts.
 *
 * @module
 */
import type { TimerEntry, TimerWheel } from "../time/timer_wheel.ts";

/** The first delay between two releases, in milliseconds; doubled each time. */
const DELAY_MS = 100;
/** Most values that are kept for one node; one more drops the oldest, whose TTL takes over. */
const VALUES_MAX = 4_096;

/** A value that may be set late. */
interface LateValue {
  readonly keys: readonly string[];
  /** Until when it is undone again, by the monotonic clock. */
  untilMs: number;
  /** How many of its commands may still be executed. */
  unknown: number;
  /** The delay before the next release; `undefined` until the first is sent. */
  delayMs: number | undefined;
  timer: TimerEntry | undefined;
}

/** Sends a release of keys with a value, and calls back if it is answered. */
export type SendRelease = (keys: readonly string[], value: string, onAnswered: () => void) => void;

/** The acquisitions of one node without an answer. */
export class LateAcquires {
  readonly #wheel: TimerWheel;
  readonly #release: SendRelease;
  readonly #values: Map<string, LateValue> = new Map();

  /**
   * @param wheel Where delays wait.
   * @param release Sends a release.
   */
  constructor(wheel: TimerWheel, release: SendRelease) {
    this.#wheel = wheel;
    this.#release = release;
  }

  /**
   * An acquisition was sent, and is no longer waited for.
   *
   * @param value The value that it sets.
   * @param keys The keys.
   * @param ttlMs Their TTL, in milliseconds.
   * @param answered Resolves when the client's call is over, to whether the server has answered; missing if it is.
   */
  add(
    value: string,
    keys: readonly string[],
    ttlMs: number,
    answered: Promise<boolean> | undefined,
  ): void {
    const untilMs = this.#wheel.clock.monotonicMs() + ttlMs;
    const late = this.#values.get(value) ??
      { keys, untilMs, unknown: 0, delayMs: undefined, timer: undefined };
    if (!this.#values.has(value) && this.#values.size >= VALUES_MAX) this.#forgetOldest();
    this.#values.set(value, late);
    late.untilMs = Math.max(late.untilMs, untilMs);
    late.unknown++;
    if (late.delayMs === undefined) this.#wait(value, late, ttlMs);
    answered?.then((executed) => {
      if (executed) this.#onAnswered(value, late);
    });
  }

  /** A release of a value is being sent: if the value may be set later, it is released again. */
  onRelease(value: string): void {
    const late = this.#values.get(value);
    if (!late || late.delayMs !== undefined) return;
    late.delayMs = DELAY_MS;
    this.#wait(value, late, DELAY_MS);
  }

  /** Forgets everything. */
  close(): void {
    for (const [value, late] of [...this.#values]) this.#forget(value, late);
  }

  /** The command was executed before now, so a release that is sent from now on is the last one if it arrives. */
  #onAnswered(value: string, late: LateValue): void {
    if (--late.unknown > 0 || this.#values.get(value) !== late) return;
    if (late.delayMs === undefined) this.#forget(value, late);
    else this.#releaseAgain(value, late);
  }

  #releaseAgain(value: string, late: LateValue): void {
    const isLast = late.unknown === 0;
    this.#release(late.keys, value, () => {
      if (isLast && this.#values.get(value) === late) this.#forget(value, late);
    });
  }

  #wait(value: string, late: LateValue, delayMs: number): void {
    if (late.timer) this.#wheel.cancel(late.timer);
    late.timer = this.#wheel.after(delayMs, () => this.#onDue(value, late));
  }

  #onDue(value: string, late: LateValue): void {
    if (late.delayMs !== undefined) this.#releaseAgain(value, late);
    const leftMs = late.untilMs - this.#wheel.clock.monotonicMs();
    if (leftMs <= 0) return this.#forget(value, late);
    if (late.delayMs === undefined) return this.#wait(value, late, leftMs);
    late.delayMs *= 2;
    this.#wait(value, late, Math.min(late.delayMs, leftMs));
  }

  #forgetOldest(): void {
    const [[value, late]] = this.#values;
    this.#forget(value, late);
  }

  #forget(value: string, late: LateValue): void {
    if (late.timer) this.#wheel.cancel(late.timer);
    this.#values.delete(value);
  }
}
