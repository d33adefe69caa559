/**
 * Drawing a fencing token from elsewhere, once the lock is won.
 *
 * @module
 */
import type { TokenSource } from "../options.ts";
import { offAbort, onAbort } from "../time/abort_listeners.ts";

/**
 * Draws a token for a lock.
 *
 * @param source Where from; it is told by the lock's signal when nobody waits for it any more.
 * @param resources What is locked.
 * @param lockSignal Aborts when the lock is lost.
 * @param signal The call's own.
 * @throws Whatever the source throws, or the reason of the first signal that aborts.
 */
export async function callTokenSource(
  source: TokenSource,
  resources: readonly string[],
  lockSignal: AbortSignal,
  signal: AbortSignal | undefined,
): Promise<number> {
  const token = await unlessAborted(source(resources, lockSignal), [lockSignal, signal]);
  if (!Number.isSafeInteger(token)) {
    throw new TypeError(
      `Cannot acquire lock as 'tokenSource' must return a safe integer: current value is ${token}`,
    );
  }
  return token;
}

/** What is answered, unless a signal aborts before: then its reason, as a rejection. Leaves no listener behind. */
function unlessAborted<T>(
  answer: T | PromiseLike<T>,
  signals: readonly (AbortSignal | undefined)[],
): Promise<T> {
  const listening: [AbortSignal, () => void][] = [];
  return new Promise<T>((resolve, reject) => {
    for (const signal of signals) {
      if (!signal) continue;
      const abort = () => reject(signal.reason);
      if (signal.aborted) abort();
      else {
        onAbort(signal, abort);
        listening.push([signal, abort]);
      }
    }
    Promise.resolve(answer).then(resolve, reject);
  }).finally(() => {
    for (const [signal, abort] of listening) offAbort(signal, abort);
  });
}
