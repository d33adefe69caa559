/**
 * Asking a token source for the fencing token of a lock that was won.
 *
 * @module
 */
import type { TokenSource } from "../options.ts";
import { offAbort, onAbort } from "../time/abort_listeners.ts";

/**
 * Asks the source for a token.
 *
 * @param source The source; the lock's signal is passed to it, and aborts when nobody waits for the token any more.
 * @param resources The resources of the lock.
 * @param lockSignal Aborts when the lock is lost.
 * @param signal The signal of the call.
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

/** Resolves with the answer, or rejects with the reason of a signal that aborts before. Leaves no listener behind. */
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
