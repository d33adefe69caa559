/**
 * Waiting for a promise that may not settle.
 *
 * @module
 */
import type { TimerWheel } from "./timer_wheel.ts";

/**
 * Resolves when `promise` settles, after `limitMs`, or when the wheel is closed; keeps the process
 * alive until then.
 */
export function settledWithin(
  wheel: TimerWheel,
  promise: Promise<unknown>,
  limitMs: number,
): Promise<void> {
  return new Promise((resolve) => {
    let settled = false;
    const settle = () => {
      if (settled) return;
      settled = true;
      wheel.cancel(limit);
      wheel.unref();
      resolve();
    };
    wheel.ref();
    const limit = wheel.deadline(limitMs, settle, () => wheel.closed && settle());
    promise.then(settle, settle);
  });
}
