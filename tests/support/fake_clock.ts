/**
 * A clock whose time moves only when a test says so.
 *
 * @module
 */
import { setImmediate } from "node:timers";
import type { Clock, TimerHandle } from "../../src/time/clock.ts";
import "./loaded_parts.ts";

interface FakeTimer {
  readonly callback: () => void;
  readonly dueMs: number;
  readonly order: number;
  alive: boolean;
}

/** Both clocks and all timers, in a test's hands. */
export class FakeClock implements Clock {
  /** Every delay that a timer was set with, in order. */
  readonly delaysMs: number[] = [];
  readonly #timers = new Set<FakeTimer>();
  #nowMs: number;
  #wallLeadMs: number;
  #order = 0;

  constructor(nowMs = 1_000_000, wallMs = 1_700_000_000_000) {
    this.#nowMs = nowMs;
    this.#wallLeadMs = wallMs - nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#nowMs + this.#wallLeadMs;
  }

  setTimer(callback: () => void, delayMs: number): TimerHandle {
    this.delaysMs.push(delayMs);
    const timer: FakeTimer = {
      callback,
      dueMs: this.#nowMs + Math.max(delayMs, 0),
      order: this.#order++,
      alive: false,
    };
    this.#timers.add(timer);
    return timer;
  }

  clearTimer(timer: TimerHandle): void {
    this.#timers.delete(timer as FakeTimer);
  }

  keepAlive(timer: TimerHandle, alive: boolean): void {
    (timer as FakeTimer).alive = alive;
  }

  /** How many timers are set. */
  get timers(): number {
    return this.#timers.size;
  }

  /** How many of them keep the process alive. */
  get timersAlive(): number {
    return [...this.#timers].filter((timer) => timer.alive).length;
  }

  /** Moves both clocks by `ms`, firing every timer at its time and letting promises run in between. */
  async advance(ms: number): Promise<void> {
    await runMicrotasks();
    const endMs = this.#nowMs + ms;
    for (;;) {
      const timer = this.#earliest();
      if (!timer || timer.dueMs > endMs) break;
      this.#fire(timer);
      await runMicrotasks();
    }
    this.#nowMs = endMs;
  }

  /** Like {@linkcode advance}, but for code without promises. */
  advanceSync(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (let timer = this.#earliest(); timer && timer.dueMs <= endMs; timer = this.#earliest()) {
      this.#fire(timer);
    }
    this.#nowMs = endMs;
  }

  /** Moves both clocks by `ms` while timers stand still, as a busy event loop does. */
  block(ms: number): void {
    this.#nowMs += ms;
  }

  /** Steps the wall clock alone; so it also looks when the machine slept and the monotonic one stood still. */
  stepWall(ms: number): void {
    this.#wallLeadMs += ms;
  }

  #earliest(): FakeTimer | undefined {
    let earliest: FakeTimer | undefined;
    for (const timer of this.#timers) {
      const before = earliest &&
        (earliest.dueMs - timer.dueMs || earliest.order - timer.order) <= 0;
      if (!before) earliest = timer;
    }
    return earliest;
  }

  #fire(timer: FakeTimer): void {
    this.#timers.delete(timer);
    this.#nowMs = Math.max(this.#nowMs, timer.dueMs);
    timer.callback();
  }
}

/** Lets everything run that waits for no timer and no bytes. */
export function runMicrotasks(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Moves `clock` in steps until `promise` has settled, and settles as it does; gives up after `limitMs`. */
export async function advanceUntil<T>(
  clock: FakeClock,
  promise: Promise<T>,
  limitMs = 60_000,
  stepMs = 5,
): Promise<T> {
  let settled = false;
  const settle = () => settled = true;
  promise.then(settle, settle);
  await runMicrotasks();
  for (let passedMs = 0; !settled; passedMs += stepMs) {
    if (passedMs >= limitMs) throw new Error(`Cannot settle within ${limitMs} ms of faked time`);
    await clock.advance(stepMs);
  }
  return await promise;
}
