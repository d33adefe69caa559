/**
 * Waits that keep the process alive, for programs and tests: for a promise in bounded time, or for
 * some time.
 *
 * @module
 */
import { systemClock } from "./clock.ts";

/** Resolves after so many milliseconds. */
export function pauseMs(delayMs: number): Promise<void> {
  return within(delayMs, new Promise<undefined>(() => {}));
}

/** Settles as a promise does, or resolves to `undefined` after `limitMs` milliseconds. */
export async function within<T>(limitMs: number, promise: Promise<T>): Promise<T | undefined> {
  let timer: unknown;
  const late = new Promise<undefined>((resolve) => {
    timer = systemClock.setTimer(() => resolve(undefined), limitMs);
    systemClock.keepAlive(timer, true);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    systemClock.clearTimer(timer);
  }
}
