/**
 * A clock that neither stands still while the machine sleeps nor ever falls.
 *
 * The monotonic clock stands still while a machine is suspended. The wall clock does not, but
 * people and NTP step it in both directions. So this clock is the monotonic clock plus every step
 * by which the wall clock gains on it: from one look at the two clocks to the next, as much time
 * passes as the faster of them counts. A wall clock that steps ahead looks like a machine that
 * slept, and counts too. What the wall clock loses gives nothing back, whether before a sleep or
 * after it. Only a loss and a sleep between the same two looks hide each other, so the timer wheel
 * looks regularly.
 *
 * **Noise.** `Date.now()` counts whole milliseconds, so one look may be ahead of another by almost
 * 1 ms, and by 2 ms in runtimes that round both clocks. A gain counts if it is greater than
 * {@linkcode NOISE_MS}. A smaller one is kept, not forgotten: the lead to compare with stays as it
 * is, so small gains add up until they count, however often somebody looks. A wall clock that runs
 * fast by a tenth is therefore followed, {@linkcode NOISE_MS} at a time. A small gain that is lost
 * again was noise and never counts. So at most {@linkcode NOISE_MS} and the rounding are missing,
 * however long it takes, and the drift allowance covers them.
 *
 * @module
 */
import type { Clock } from "./clock.ts";

/** By how much the wall clock may gain on the monotonic clock before it counts, in milliseconds. */
const NOISE_MS = 2;

/** The two clocks of a machine as one. */
export class ContinuousClock {
  /**
   * How far it is ahead of the monotonic clock, in milliseconds: everything that the wall clock
   * gained. Never falls.
   */
  steppedMs = 0;
  readonly #clock: Clock;
  /** The lead of the wall clock over the monotonic clock with which the next look compares. */
  #leadMs: number;

  /** @param clock The two clocks. */
  constructor(clock: Clock) {
    this.#clock = clock;
    const monotonicMs = clock.monotonicMs();
    this.#leadMs = clock.wallMs() - monotonicMs;
  }

  /** Returns the milliseconds since an arbitrary moment, with a fraction. */
  nowMs(): number {
    return this.look() + this.steppedMs;
  }

  /** Looks whether the wall clock has gained; returns the milliseconds of the monotonic clock. */
  look(): number {
    const clock = this.#clock;
    let monotonicMs = 0;
    let gainMs = -Infinity;
    // A process that stands still between the two readings sees a loss that there was not, and
    // hardly does so twice. So of two looks the one that shows less loss is right, also if the
    // first was repeated because of noise.
    for (let readings = 0; gainMs < 0 && readings < 2; readings++) {
      const wallMs = clock.wallMs();
      monotonicMs = clock.monotonicMs();
      gainMs = Math.max(gainMs, wallMs - monotonicMs - this.#leadMs);
    }
    // mutation: elapsed-by-wall-clock-alone
    // mutation: elapsed-by-monotonic-clock-alone
    // mutation: loss-gives-time-back
    const stepped = gainMs > NOISE_MS;
    if (stepped) this.steppedMs += gainMs;
    // mutation: small-gains-forgotten
    // mutation: loss-hides-a-sleep
    if (stepped || gainMs < 0) this.#leadMs += gainMs;
    return monotonicMs;
  }
}
