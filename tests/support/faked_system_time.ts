/**
 * The runtime's own clocks and timers in a test's hands, for code that takes no clock.
 *
 * @module
 */
import { FakeTime } from "@std/testing/time";
import { runMicrotasks } from "./fake_clock.ts";

/** Fakes both clocks and all timers until the end of the block. */
export class FakedSystemTime implements Disposable {
  readonly #time = new FakeTime();
  readonly #now = performance.now;

  constructor() {
    performance.now = () => this.#time.now - this.#time.start;
  }

  /** Moves both clocks by `ms`, letting promises run after each millisecond, or each `stepMs`. */
  async advance(ms: number, stepMs = 1): Promise<void> {
    await runMicrotasks();
    for (let passedMs = 0; passedMs < ms; passedMs += stepMs) {
      this.#time.tick(stepMs);
      await runMicrotasks();
    }
  }

  [Symbol.dispose](): void {
    performance.now = this.#now;
    this.#time[Symbol.dispose]();
  }
}
