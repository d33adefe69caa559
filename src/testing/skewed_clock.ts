/**
 * A clock that tells a wrong time.
 *
 * @module
 */
import type { Clock } from "../time/clock.ts";

/** A clock whose wall time is ahead of another's. */
export class SkewedClock implements Clock {
  /** How far it is ahead, in milliseconds; below 0, behind. */
  aheadMs = 0;
  readonly #clock: Clock;

  /** @param clock The clock that is right. */
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
