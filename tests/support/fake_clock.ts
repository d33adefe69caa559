/** A clock whose time moves only when a test says so. */
import type { TimerHandle } from "../../src/time/clock.ts";
import { nextTick } from "../../src/time/tick.ts";
import { ManualClock } from "../../src/testing/time/manual_clock.ts";

export { nextTick as runMicrotasks };

/** Both clocks and all timers, in a test's hands. */
export class FakeClock extends ManualClock {
  /** Every delay that a timer was set with, in order. */
  readonly delaysMs: number[] = [];

  constructor(nowMs = 1_000_000, wallMs = 1_700_000_000_000) {
    super(nowMs, wallMs);
  }

  override setTimer(callback: () => void, delayMs: number): TimerHandle {
    this.delaysMs.push(delayMs);
    return super.setTimer(callback, delayMs);
  }

  /** How many timers are set. */
  get timers(): number {
    return this.pending.size;
  }

  /** How many of them keep the process alive. */
  get timersAlive(): number {
    return [...this.pending].filter((timer) => timer.alive).length;
  }

  /**
   * Moves both clocks by `ms`, firing every timer at its time and letting promises run in between.
   */
  async advance(ms: number): Promise<void> {
    await nextTick();
    const endMs = this.monotonicMs() + ms;
    while (this.fireNext(endMs)) await nextTick();
    this.moveTo(endMs);
  }

  /** Like {@linkcode advance}, but for code without promises. */
  advanceSync(ms: number): void {
    const endMs = this.monotonicMs() + ms;
    while (this.fireNext(endMs));
    this.moveTo(endMs);
  }

  /** Moves both clocks by `ms` while timers stand still, as a busy event loop does. */
  block(ms: number): void {
    this.nowMs += ms;
  }

  /**
   * Steps the wall clock alone; so it also looks when the machine slept and the monotonic one stood
   * still.
   */
  stepWall(ms: number): void {
    this.leadMs += ms;
  }
}

/**
 * Moves `clock` in steps until `promise` has settled, and settles as it does; gives up after
 * `limitMs`.
 */
export async function advanceUntil<T>(
  clock: FakeClock,
  promise: Promise<T>,
  limitMs = 60_000,
  stepMs = 5,
): Promise<T> {
  let settled = false;
  const settle = () => settled = true;
  promise.then(settle, settle);
  await nextTick();
  for (let passedMs = 0; !settled; passedMs += stepMs) {
    if (passedMs >= limitMs) throw new Error(`Cannot settle within ${limitMs} ms of faked time`);
    await clock.advance(stepMs);
  }
  return await promise;
}
