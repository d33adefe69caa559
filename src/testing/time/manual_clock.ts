/**
 * A clock that stands until somebody moves it.
 *
 * @module
 */
import type { Clock, TimerHandle } from "../../time/clock.ts";

/** A timer that has not fired. */
export interface ManualTimer {
  readonly callback: () => void;
  /** When it is due, in milliseconds of the monotonic clock. */
  dueMs: number;
  /** Whether it keeps the process alive, were it a real one. */
  alive: boolean;
}

/** Both clocks, which stand until {@linkcode fireNext} or {@linkcode moveTo} moves them. */
export class ManualClock implements Clock {
  /** The timers that are set, in the order in which they were. */
  readonly pending: Set<ManualTimer> = new Set();
  /** The monotonic clock's milliseconds. */
  nowMs: number;
  /** The milliseconds by which the wall clock is ahead of the monotonic one. */
  leadMs: number;

  /**
   * @param monotonicMs What the monotonic clock shows at first.
   * @param wallMs What the wall clock shows at first.
   */
  constructor(monotonicMs: number, wallMs: number) {
    this.nowMs = monotonicMs;
    this.leadMs = wallMs - monotonicMs;
  }

  monotonicMs(): number {
    return this.nowMs;
  }

  wallMs(): number {
    return this.nowMs + this.leadMs;
  }

  setTimer(callback: () => void, delayMs: number): TimerHandle {
    const timer = { callback, dueMs: this.nowMs + Math.max(delayMs, 0), alive: false };
    this.pending.add(timer);
    return timer;
  }

  clearTimer(timer: TimerHandle): void {
    this.pending.delete(timer as ManualTimer);
  }

  keepAlive(timer: TimerHandle, alive: boolean): void {
    (timer as ManualTimer).alive = alive;
  }

  /**
   * Moves time to the earliest timer and calls it, unless it is due after `endMs`; returns whether
   * it did.
   */
  fireNext(endMs: number): boolean {
    let next: ManualTimer | undefined;
    for (const timer of this.pending) if (!next || timer.dueMs < next.dueMs) next = timer;
    if (!next || next.dueMs > endMs) return false;
    this.moveTo(next.dueMs);
    this.fire(next);
    return true;
  }

  /** Calls a timer, unless it was called or cleared already. */
  fire(timer: ManualTimer): void {
    if (this.pending.delete(timer)) timer.callback();
  }

  /** Moves time to `nowMs` of the monotonic clock without calling timers; never back. */
  moveTo(nowMs: number): void {
    this.nowMs = Math.max(this.nowMs, nowMs);
  }
}
