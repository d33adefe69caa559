/** Waiting for a condition in place of sleeping for a time. */

import { once } from "node:events";

/** Pause between two looks at a condition. */
const POLL_EVERY_MS = 5;

/**
 * Repeats `check` until it neither throws nor returns `false`.
 *
 * @param check A condition, or assertions.
 * @param withinMs How long it may take, in milliseconds.
 * @throws What `check` threw last, or an `Error`, once the time is over.
 */
export async function eventually(
  check: () => unknown | Promise<unknown>,
  withinMs = 20_000,
): Promise<void> {
  const giveUpAtMs = performance.now() + withinMs;
  for (;;) {
    let failure: unknown = new Error(`Condition not met within ${withinMs} ms: ${check}`);
    try {
      if (await check() !== false) return;
    } catch (error) {
      failure = error;
    }
    if (performance.now() >= giveUpAtMs) throw failure;
    await new Promise((resolve) => setTimeout(resolve, POLL_EVERY_MS));
  }
}

/**
 * Resolves once `signal` has aborted, to the moment of it by `performance.now()`.
 *
 * @throws {Error} If it has not within `withinMs` milliseconds.
 */
export async function abortedAt(signal: AbortSignal, withinMs = 20_000): Promise<number> {
  const late = () => Promise.reject(new Error(`Signal not aborted within ${withinMs} ms`));
  const options = { signal: AbortSignal.timeout(withinMs) };
  if (!signal.aborted) await once(signal, "abort", options).catch(late);
  return performance.now();
}
