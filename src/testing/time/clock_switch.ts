/**
 * Puts a clock that a test moves in the place of the runtime's, for every client and every node of
 * this process.
 *
 * The methods of `systemClock` are replaced when this module is loaded, so that the timers which
 * are set before a fake clock is started are known: it takes them over, and gives back those which
 * are left at its end. The global functions of the runtime stay as they are, and whatever a test
 * puts in their place.
 *
 * @module
 */
import { systemClock, type TimerHandle } from "../../time/clock.ts";
import type { ManualClock, ManualTimer } from "./manual_clock.ts";

/** The clock of the runtime. */
const real = { ...systemClock };
/** The timers of the runtime that have not fired. */
const realTimers = new Map<ManualTimer, unknown>();
/**
 * What fake clocks were moved further than the runtime's: the monotonic clock never runs backwards.
 */
let leadMs = 0;
let current: ManualClock | undefined;

Object.assign(
  systemClock,
  {
    monotonicMs: () => current ? current.monotonicMs() : real.monotonicMs() + leadMs,
    wallMs: () => current ? current.wallMs() : real.wallMs(),
    setTimer(callback, delayMs) {
      if (current) return current.setTimer(callback, delayMs);
      const timer = { callback, dueMs: systemClock.monotonicMs() + delayMs, alive: false };
      setReal(timer, delayMs);
      return timer;
    },
    clearTimer(timer) {
      if (!isSwitched(timer)) return real.clearTimer(timer);
      current?.clearTimer(timer);
      real.clearTimer(realTimers.get(timer));
      realTimers.delete(timer);
    },
    keepAlive(timer, alive) {
      if (!isSwitched(timer)) return real.keepAlive(timer, alive);
      timer.alive = alive;
      if (realTimers.has(timer)) real.keepAlive(realTimers.get(timer), alive);
    },
  } satisfies typeof systemClock,
);

/** Whether a timer was set since this module was loaded; older ones are the runtime's own. */
function isSwitched(timer: TimerHandle): timer is ManualTimer {
  return typeof timer === "object" && timer !== null && "dueMs" in timer;
}

/**
 * Stops the time of all clients and nodes, present and future ones.
 *
 * @param clock Creates the clock from what both clocks show now.
 * @returns The clock, which has the timers that are set.
 * @throws {Error} If another one is in use.
 */
export function switchTo<Manual extends ManualClock>(
  clock: new (monotonicMs: number, wallMs: number) => Manual,
): Manual {
  if (current) throw new Error("Cannot start fake clock as another one is in use");
  // Whole milliseconds, so that a delay passes with a tick of the same length: sums of fractions
  // are rounded.
  const manual = new clock(Math.ceil(systemClock.monotonicMs()), systemClock.wallMs());
  for (const [timer, native] of realTimers) {
    real.clearTimer(native);
    timer.dueMs = Math.ceil(timer.dueMs);
    manual.pending.add(timer);
  }
  realTimers.clear();
  current = manual;
  return manual;
}

/** Gives all clients and nodes the runtime's time back; does nothing if `clock` is not in use. */
export function switchBack(clock: ManualClock): void {
  if (clock !== current) return;
  leadMs = clock.monotonicMs() - real.monotonicMs();
  current = undefined;
  for (const timer of clock.pending) setReal(timer, timer.dueMs - clock.monotonicMs());
  clock.pending.clear();
}

function setReal(timer: ManualTimer, delayMs: number): void {
  const native = real.setTimer(() => {
    realTimers.delete(timer);
    timer.callback();
  }, delayMs);
  realTimers.set(timer, native);
  if (timer.alive) real.keepAlive(native, true);
}
