/**
 * Drawing a fencing token from elsewhere, once the lock is won.
 *
 * @module
 */
import type { Hold } from "../lock/held_lock.ts";
import type { TokenSource } from "../options.ts";

/**
 * Draws a token for a lock.
 *
 * @param source Where from; it is told by the lock's signal when nobody waits for it any more.
 * @param resources What is locked.
 * @param hold The lock.
 * @param signal The call's own.
 * @throws Whatever the source throws, the call's signal's reason, or a `LockLostError` where the lock has
 *   ended meanwhile.
 */
export async function draw(
  source: TokenSource,
  resources: readonly string[],
  hold: Hold,
  signal: AbortSignal | undefined,
): Promise<number> {
  const token = await unlessAborted(source(resources, hold.signal), [hold.signal, signal]);
  if (!Number.isSafeInteger(token)) {
    throw new TypeError(
      `Cannot acquire lock as 'tokenSource' must answer with a safe integer: it was ${token}`,
    );
  }
  if (hold.lostError) throw hold.lostError;
  return token;
}

/** What is answered, unless a signal aborts before: then its reason, as a rejection. Leaves no listener behind. */
function unlessAborted<T>(
  answer: T | PromiseLike<T>,
  signals: readonly (AbortSignal | undefined)[],
): Promise<T> {
  const over = new AbortController();
  return new Promise<T>((resolve, reject) => {
    for (const signal of signals) {
      if (!signal) continue;
      const abort = () => reject(signal.reason);
      if (signal.aborted) abort();
      else signal.addEventListener("abort", abort, { once: true, signal: over.signal });
    }
    Promise.resolve(answer).then(resolve, reject);
  }).finally(() => over.abort());
}
