/**
 * A clock that is wrong.
 *
 * @module
 */
import type { Clock } from "../time/clock.ts";

/** A clock whose wall clock is ahead of the right one. */
export class SkewedClock implements Clock {
  /** The lead in milliseconds; negative if it is behind. */
  aheadMs = 0;
  readonly #clock: Clock;

  /** @param clock The right clock. */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs();
  }

  wallMs(): number {
    return this.#clock.wallMs() + this.aheadMs;
  }

  setTimer(callback: () => void, delayMs: number): unknown {
    return this.#clock.setTimer(callback, delayMs);
  }

  clearTimer(timer: unknown): void {
    this.#clock.clearTimer(timer);
  }

  keepAlive(timer: unknown, alive: boolean): void {
    this.#clock.keepAlive(timer, alive);
  }
}
