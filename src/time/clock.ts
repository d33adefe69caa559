/**
 * Clocks and timers behind an interface: the only module that uses those of the runtime.
 *
 * Two clocks are read, because each can be wrong: the monotonic clock stops while a machine is suspended, and people and
 * NTP step the wall clock. The time that may have passed is the greater of the two ({@linkcode elapsedMs}).
 *
 * @module
 */

/** A timer of a {@linkcode Clock}; only that clock knows its type. */
export type TimerHandle = unknown;

/** The source of time for the library; tests and simulations can replace it. */
export interface Clock {
  /** Returns the milliseconds since an arbitrary moment, with a fraction; never runs backwards. */
  monotonicMs(): number;
  /** Returns the milliseconds since the Unix epoch, by the machine's wall clock. */
  wallMs(): number;
  /** Calls `callback` once after `delayMs` milliseconds. The timer does not keep the process alive. */
  setTimer(callback: () => void, delayMs: number): TimerHandle;
  /** Cancels a timer; does nothing if it has fired already. */
  clearTimer(timer: TimerHandle): void;
  /** Sets whether `timer` keeps the process alive, if the runtime supports that. */
  keepAlive(timer: TimerHandle, alive: boolean): void;
}

/** A reading of both clocks at one moment. */
export interface Instant {
  /** The monotonic clock's milliseconds. */
  readonly monotonicMs: number;
  /** The wall clock's milliseconds. */
  readonly wallMs: number;
}

/** Reads both clocks. */
export function instantOf(clock: Clock): Instant {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
}

/** The part of a timer object that Deno, Node and Bun share; timers of workers are numbers. */
interface Referable {
  ref?(): void;
  unref?(): void;
}

/** The clocks and timers of the runtime. */
export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  setTimer(callback, delayMs) {
    const timer = setTimeout(callback, delayMs) as Referable;
    timer.unref?.();
    return timer;
  },
  clearTimer: (timer) => clearTimeout(timer as number),
  keepAlive(timer, alive) {
    if (alive) (timer as Referable).ref?.();
    else (timer as Referable).unref?.();
  },
};

/**
 * How much time may have passed since `start`, in milliseconds: the greater of the two clocks' differences, and never
 * negative.
 *
 * A machine that slept and a wall clock that was stepped ahead look alike, and both count as time that has passed. A wall
 * clock that was stepped back changes nothing.
 *
 * @param clock The clocks to read now.
 * @param start Their reading at the start.
 * @returns Milliseconds, at least 0.
 */
export function elapsedMs(clock: Clock, start: Instant): number {
  return elapsedBetweenMs(start, clock.monotonicMs(), clock.wallMs());
}

/** The same for a later reading that was taken already. */
export function elapsedBetweenMs(start: Instant, monotonicMs: number, wallMs: number): number {
  // mutation: elapsed-by-wall-clock-alone
  // mutation: elapsed-by-monotonic-clock-alone
  return Math.max(monotonicMs - start.monotonicMs, wallMs - start.wallMs, 0);
}
