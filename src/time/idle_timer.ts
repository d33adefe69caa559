/**
 * One timer for everything that waits for half a minute of silence.
 *
 * The timer wheel wakes up several times a second while it has any entry, because the ends of locks must not come late.
 * A client without locks should not wake up at all; so what may come late waits here.
 *
 * @module
 */
import type { Clock, TimerHandle } from "./clock.ts";

/**
 * Looks whether something is due.
 *
 * @param nowMs The present, by the monotonic clock.
 * @returns When to look again, by the monotonic clock.
 */
export type IdleLook = (nowMs: number) => number;

/** A timer that keeps no process alive, and is set only while there is something to look at. */
export class IdleTimer {
  readonly #clock: Clock;
  readonly #looks = new Set<IdleLook>();
  #timer: TimerHandle = undefined;
  #armed = false;

  /** @param clock Sets the timer. */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Looks now, and again and again until {@linkcode delete}. */
  add(look: IdleLook): void {
    this.#looks.add(look);
    const nowMs = this.#clock.monotonicMs();
    const dueMs = look(nowMs);
    if (!this.#armed) this.#arm(dueMs - nowMs);
  }

  /** Looks no more; the last one clears the timer. */
  delete(look: IdleLook): void {
    if (!this.#looks.delete(look) || this.#looks.size > 0 || !this.#armed) return;
    this.#clock.clearTimer(this.#timer);
    this.#armed = false;
  }

  #arm(delayMs: number): void {
    if (this.#armed) this.#clock.clearTimer(this.#timer); // a look that removed the last one may have added another
    this.#armed = true;
    this.#timer = this.#clock.setTimer(this.#onDue, Math.max(Math.ceil(delayMs), 1));
  }

  readonly #onDue = (): void => {
    const nowMs = this.#clock.monotonicMs();
    let dueMs = Infinity;
    for (const look of this.#looks) dueMs = Math.min(dueMs, look(nowMs));
    if (this.#looks.size > 0) this.#arm(dueMs - nowMs);
    else this.#armed = false;
  };
}
