/**
 * Clocks and timers behind an interface: the only module that uses those of the runtime.
 *
 * @module
 */

import type { OwnContext } from "./own_context.ts";

/** A timer of a {@linkcode Clock}; only that clock knows its type. */
export type TimerHandle = unknown;

/** The source of time for the library; tests and simulations can replace it. */
export interface Clock {
  /** Returns the milliseconds since an arbitrary moment, with a fraction; never runs backwards. */
  monotonicMs(): number;
  /** Returns the milliseconds since the Unix epoch, by the machine's wall clock. */
  wallMs(): number;
  /**
   * Calls `callback` once after `delayMs` milliseconds, soon if that is negative. The timer does
   * not keep the process alive.
   */
  setTimer(callback: () => void, delayMs: number): TimerHandle;
  /** Cancels a timer; does nothing if it has fired already. */
  clearTimer(timer: TimerHandle): void;
  /** Sets whether `timer` keeps the process alive, if the runtime supports that. */
  keepAlive(timer: TimerHandle, alive: boolean): void;
  /**
   * Returns the function that sets the runtime's timers now: another one after a test has replaced
   * or restored it. Missing: it is always the same.
   */
  timerSetter?(): unknown;
}

/** The part of a timer object that Deno, Node and Bun share. */
interface Referable {
  ref?: (() => void) | undefined;
  unref?: (() => void) | undefined;
}

/** What older versions of Deno have in its place: there timers are numbers, as in workers. */
type TimerFunctions = Partial<Record<"refTimer" | "unrefTimer", (timer: number) => void>>;

function setAlive(timer: TimerHandle, alive: boolean): void {
  if (typeof timer === "number") {
    const { Deno } = globalThis as { Deno?: TimerFunctions };
    Deno?.[alive ? "refTimer" : "unrefTimer"]?.(timer);
  } else {
    (timer as Referable)[alive ? "ref" : "unref"]?.();
  }
}

/**
 * Whether the runtime's timers are objects, as far as one was set: those of some workers are
 * numbers.
 */
let timersAreObjects = false;

/**
 * Whether the runtime keeps a signal that has listeners and to which nothing else refers. Deno does
 * from 2.8 on. Its version decides, because npm packages may see the timers of Node there. Workers
 * whose timers are objects do; of others it is not known.
 */
export function keepsSignals(): boolean {
  const { navigator } = globalThis as { navigator?: { readonly userAgent?: string } };
  const version = /^Deno\/(\d+)\.(\d+)/u.exec(navigator?.userAgent ?? "");
  if (!version) return timersAreObjects;
  const [major, minor] = [Number(version[1]), Number(version[2])];
  return major > 2 || major === 2 && minor >= 8;
}

/** The clocks and timers of the runtime. */
export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  setTimer(callback, delayMs) {
    const timer = setTimeout(callback, Math.max(delayMs, 0));
    setAlive(timer, false);
    timersAreObjects = typeof timer === "object";
    return timer;
  },
  clearTimer: (timer) => clearTimeout(timer as number),
  keepAlive: setAlive,
  timerSetter: () => setTimeout,
};

/**
 * The clocks of the runtime, whose timers call in an async context of their own, a microtask later:
 * also if a timer is cleared in between.
 */
export function clockIn(context: OwnContext): Clock {
  const { setTimer } = systemClock;
  return {
    ...systemClock,
    setTimer: (callback, delayMs) => setTimer(() => context.run(callback), delayMs),
  };
}
