/**
 * Running a function while a lock is held.
 *
 * @module
 */
import { offAbort, onAbort } from "../time/abort_listeners.ts";
import { heldLock, type Lock } from "./lock.ts";

/** A function that runs while a lock is held, for {@linkcode Redlock.using}. */
export type Routine<T, L extends Lock = Lock> = (lock: L) => Promise<T> | T;

/** @throws {TypeError} If a routine is not a function. */
export function checkRoutine(routine: unknown): void {
  if (typeof routine === "function") return;
  throw new TypeError("Cannot acquire lock as 'routine' must be a function");
}

/** Runs `routine` with the lock, then releases the lock, even if the routine throws. */
export async function runUsing<T>(lock: Lock, routine: Routine<T>): Promise<T> {
  const held = heldLock(lock);
  const { settings: { signal }, client: { wheel } } = held;
  const abort = () => held.abort(signal!.reason);
  held.handOut();
  wheel.ref(); // a routine may wait for nothing but the end of the lock
  if (signal) onAbort(signal, abort);
  try {
    const result = await routine(lock);
    const lost = held.lostError;
    if (lost) throw lost;
    return result;
  } finally {
    if (signal) offAbort(signal, abort);
    await held.release().catch(() => {}); // an event reports the failure; the keys expire with their TTL
    wheel.unref();
  }
}
