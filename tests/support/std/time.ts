/**
 * Stands in for what the tests use of `@std/testing/time` where JSR can't be reached, on
 * `@sinonjs/fake-timers`.
 */

// @ts-types="npm:@types/sinonjs__fake-timers@15.0.1"
import { install, type InstalledClock } from "@sinonjs/fake-timers";

/**
 * Replaces `Date`, `setTimeout` and `setInterval` by ones whose time moves only when it is told to.
 */
export class FakeTime implements Disposable {
  readonly #clock: InstalledClock = install({
    now: Date.now(),
    toFake: ["Date", "setTimeout", "clearTimeout", "setInterval", "clearInterval"],
  });

  /** Moves the time by `ms`, firing the timers on the way. */
  tick(ms = 0): void {
    this.#clock.tick(ms);
  }

  /** Brings the real time back. */
  [Symbol.dispose](): void {
    this.#clock.uninstall();
  }
}
