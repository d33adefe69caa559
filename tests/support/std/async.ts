/**
 * Stands in for the parts of `@std/async` that the tests use where JSR can't be reached.
 *
 * @module
 */

import { setTimeout as sleep } from "node:timers/promises";

/** Options of {@linkcode delay}. */
export interface DelayOptions {
  /** Ends the delay: it rejects with the signal's reason. */
  signal?: AbortSignal;
  /** Whether the timer keeps the process alive. @default {true} */
  persistent?: boolean;
}

/** Options of {@linkcode deadline}. */
export interface DeadlineOptions {
  /** Ends the waiting: it rejects with the signal's reason. */
  signal?: AbortSignal;
}

/** Resolves after `ms` milliseconds. */
export async function delay(ms: number, options: DelayOptions = {}): Promise<void> {
  const { signal, persistent = true } = options;
  try {
    await sleep(ms, undefined, { ref: persistent, ...(signal && { signal }) });
  } catch (error) {
    throw signal?.aborted ? signal.reason : error;
  }
}

/** Settles as `promise` does, or rejects with a `TimeoutError` after `ms` milliseconds. */
export async function deadline<T>(
  promise: Promise<T>,
  ms: number,
  options: DeadlineOptions = {},
): Promise<T> {
  const { signal } = options;
  signal?.throwIfAborted();
  const late = Promise.withResolvers<never>();
  const abort = () => late.reject(signal?.reason);
  const timer = setTimeout(() => {
    late.reject(new DOMException("Signal timed out.", "TimeoutError"));
  }, ms);
  signal?.addEventListener("abort", abort);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
}
