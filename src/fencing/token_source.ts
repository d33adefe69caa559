/**
 * Giving a lock that was won its fencing token from elsewhere.
 *
 * @module
 */
import type { Settings, TokenSource } from "../options.ts";
import { offAbort, onAbort } from "../time/abort_listeners.ts";
import type { TimerWheel } from "../time/timer_wheel.ts";

/** A lock that is to get a token. */
interface TokenHolder {
  fencingToken: number | undefined;
  /** Aborts when the lock is lost. */
  readonly signal: AbortSignal;
  /** Why the lock was lost, if it was. */
  readonly lostError: Error | undefined;
  lose(cause: Error): void;
  release(): Promise<unknown>;
}

/** A call that has won a lock. */
interface TokenCall<Holder> {
  readonly settings: Settings;
  readonly resources: readonly string[];
  readonly client: { readonly wheel: TimerWheel };
  /** Throws if the call was ended; the lock is given back then. */
  throwIfEnded(held: Holder): void;
}

/**
 * Draws the token from the call's source. The lock is not extended meanwhile, so a source that hangs keeps nobody out for
 * longer than the validity.
 *
 * @param leftMs What is left of the wait, in milliseconds: the source may take so long at most. 0 if nothing is left:
 *   then only the validity counts.
 * @throws Whatever the source throws, the reason of the call's signal, or a {@linkcode LockLostError} if the time is
 *   over. The lock is released then, and nobody waits for the source, whose signal is aborted.
 */
export async function drawToken<Holder extends TokenHolder>(
  held: Holder,
  call: TokenCall<Holder>,
  leftMs: number,
): Promise<void> {
  const { settings: { tokenSource, signal }, client: { wheel }, resources } = call;
  const tooLate = () => held.lose(new Error("'tokenSource' did not answer within 'waitMs'"));
  const limit = leftMs > 0 ? wheel.after(leftMs, tooLate) : undefined;
  wheel.ref();
  try {
    const token = await callTokenSource(tokenSource!, resources, held.signal, signal);
    if (held.lostError) throw held.lostError;
    call.throwIfEnded(held);
    held.fencingToken = token;
  } catch (error) {
    call.throwIfEnded(held);
    await held.release().catch(() => {});
    throw error;
  } finally {
    if (limit) wheel.cancel(limit);
    wheel.unref();
  }
}

/**
 * Asks the source for a token.
 *
 * @param source The source; the lock's signal is passed to it, and aborts when nobody waits for the token any more.
 * @param resources The resources of the lock.
 * @param lockSignal Aborts when the lock is lost.
 * @param signal The signal of the call.
 * @throws Whatever the source throws, or the reason of the first signal that aborts.
 */
async function callTokenSource(
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
