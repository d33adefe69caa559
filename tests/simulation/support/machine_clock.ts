/** The two clocks of one simulated machine, each of which lies in its own way. */

/** What may become of a machine's clocks. */
export interface ClockChange {
  /** How many milliseconds the monotonic clock makes of one. */
  monotonicRate?: number;
  /** How many milliseconds the wall clock makes of one. */
  wallRate?: number;
  /** How far the wall clock is stepped, in milliseconds. */
  wallStepMs?: number;
  /** Whether the machine sleeps: the monotonic clock stands still, the wall clock goes on. */
  suspended?: boolean;
}

/** Clocks that run at given rates from given readings. */
export class MachineClock {
  #sinceMs = 0;
  #monotonicMs: number;
  #wallMs: number;
  #monotonicRate = 1;
  #wallRate = 1;
  #suspended = false;

  /**
   * @param monotonicMs What the monotonic clock shows at the beginning.
   * @param wallMs What the wall clock shows at the beginning.
   */
  constructor(monotonicMs: number, wallMs: number) {
    this.#monotonicMs = monotonicMs;
    this.#wallMs = wallMs;
  }

  /** The monotonic clock at a true time. */
  monotonicAt(trueMs: number): number {
    const rate = this.#suspended ? 0 : this.#monotonicRate;
    return this.#monotonicMs + (trueMs - this.#sinceMs) * rate;
  }

  /** The wall clock at a true time, with a fraction. */
  wallAt(trueMs: number): number {
    return this.#wallMs + (trueMs - this.#sinceMs) * this.#wallRate;
  }

  /** When, in true time, the monotonic clock will show `monotonicMs`, if nothing changes. */
  trueAt(monotonicMs: number): number {
    if (this.#suspended) return Infinity;
    return this.#sinceMs + (monotonicMs - this.#monotonicMs) / this.#monotonicRate;
  }

  /** Changes what the clocks do from the true time `trueMs` on. */
  change(change: ClockChange, trueMs: number): void {
    this.#monotonicMs = this.monotonicAt(trueMs);
    this.#wallMs = this.wallAt(trueMs) + (change.wallStepMs ?? 0);
    this.#sinceMs = trueMs;
    this.#monotonicRate = change.monotonicRate ?? this.#monotonicRate;
    this.#wallRate = change.wallRate ?? this.#wallRate;
    this.#suspended = change.suspended ?? this.#suspended;
  }
}
