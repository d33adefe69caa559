/**
 * Stands in for `@std/testing/time` where JSR can't be reached, on `@sinonjs/fake-timers`.
 *
 * @module
 */

// @ts-types="npm:@types/sinonjs__fake-timers@15.0.1"
import { install, type InstalledClock } from "@sinonjs/fake-timers";

/** Replaces `Date`, `setTimeout` and `setInterval` by ones whose time moves only when it is told to. */
export class FakeTime implements Disposable {
  /** The time the instance was created at, in milliseconds since the epoch. */
  readonly start: number;
  readonly #clock: InstalledClock;

  /** Starts faking at `start`, by default the present. */
  constructor(start: number | string | Date | null = null) {
    this.#clock = install({
      now: start === null ? Date.now() : new Date(start),
      toFake: ["Date", "setTimeout", "clearTimeout", "setInterval", "clearInterval"],
    });
    this.start = this.#clock.now;
  }

  /** The faked time in milliseconds since the epoch. */
  get now(): number {
    return this.#clock.now;
  }

  /** Moves the time to `value`, firing the timers on the way. */
  set now(value: number) {
    if (value < this.now) throw new RangeError("Cannot set time in the past");
    this.tick(value - this.now);
  }

  /** Moves the time by `ms`, firing the timers on the way. */
  tick(ms = 0): void {
    this.#clock.tick(ms);
  }

  /** Like {@linkcode tick}, after running the microtasks before each timer. */
  async tickAsync(ms = 0): Promise<void> {
    await this.#clock.tickAsync(ms);
  }

  /** Moves the time to the next timer; false if there is none. */
  next(): boolean {
    const pending = this.#clock.countTimers() > 0;
    this.#clock.next();
    return pending;
  }

  /** Like {@linkcode next}, after running the microtasks. */
  async nextAsync(): Promise<boolean> {
    await this.runMicrotasks();
    return this.next();
  }

  /** Fires timers until none is left. */
  runAll(): void {
    this.#clock.runAll();
  }

  /** Like {@linkcode runAll}, running the microtasks before each timer. */
  async runAllAsync(): Promise<void> {
    await this.#clock.runAllAsync();
  }

  /** Runs all pending microtasks. */
  async runMicrotasks(): Promise<void> {
    await this.#clock.tickAsync(0);
  }

  /** Brings the real time back. */
  restore(): void {
    this.#clock.uninstall();
  }

  /** Brings the real time back. */
  [Symbol.dispose](): void {
    this.restore();
  }
}
