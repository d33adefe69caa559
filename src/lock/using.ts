/**
 * Running a function while a lock is held.
 *
 * @module
 */
import { thrownHere } from "../errors.ts";
import { offAbort, onAbort } from "../time/abort_listeners.ts";
import { heldLock, type Lock } from "./lock.ts";

/** A function that runs while a lock is held, for {@linkcode Redlock.using}. */
export type Routine<T, L extends Lock = Lock> = (lock: L) => Promise<T> | T;

/**
 * The options and the routine of a call, which may leave out the options.
 *
 * @throws {TypeError} If the routine is not a function.
 */
export function withRoutine<Options, T>(
  optionsOrRoutine: Options | undefined | Routine<T, never>,
  maybeRoutine: Routine<T, never> | undefined,
): [Options | undefined, Routine<T>] {
  const [options, routine] = typeof optionsOrRoutine === "function"
    ? [undefined, optionsOrRoutine as Routine<T>]
    : [optionsOrRoutine, maybeRoutine as Routine<T>];
  if (typeof routine === "function") return [options, routine];
  throw new TypeError("Cannot acquire lock as 'routine' must be a function");
}

/** Runs `routine` with the lock, then releases the lock, even if the routine throws. */
export async function runUsing<T>(lock: Lock, routine: Routine<T>): Promise<T> {
  const held = heldLock(lock);
  const { settings: { signal }, client: { wheel } } = held;
  const abort = () => held.abort(signal!.reason);
  held.deliver(); // again, because the call may have ended since it got the lock
  wheel.ref(); // a routine may wait for nothing but the end of the lock
  if (signal) onAbort(signal, abort);
  try {
    const result = await routine(lock);
    const lost = held.loseIfOver();
    if (lost) throw lost;
    return result;
  } catch (error) {
    throw thrownHere(error);
  } finally {
    if (signal) offAbort(signal, abort);
    // an event reports the failure; the keys expire with their TTL
    await held.release().catch(() => {});
    wheel.unref();
  }
}
