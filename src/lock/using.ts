/**
 * Running a function while a lock is held: once, or in terms, again and again.
 *
 * @module
 */
import { warnOfFailedTerm } from "../console_warnings.ts";
import { thrownHere } from "../messages.ts";
import { emit } from "../events.ts";
import { offAbort, onAbort } from "../time/abort_listeners.ts";
import { pause } from "../time/pause.ts";
import { acquire } from "./acquire.ts";
import { heldLock, type Lock } from "./lock.ts";
import { LockCall } from "./lock_call.ts";
import { check, FUNCTION } from "../validate.ts";

/** The shortest and the longest pause between two terms, in milliseconds. */
const PAUSE_MS_MIN = 1_000, PAUSE_MS_MAX = 30_000;

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
  const first = typeof optionsOrRoutine === "function" && maybeRoutine === undefined;
  const [options, routine] = first
    ? [undefined, optionsOrRoutine as Routine<T>]
    : [optionsOrRoutine as Options | undefined, maybeRoutine as Routine<T>];
  check("acquire lock", "routine", routine, FUNCTION);
  return [options, routine];
}

/** Acquires a lock, runs `routine` with it, then releases it, even if the routine throws. */
export async function runUsing<T>(call: LockCall, routine: Routine<T>): Promise<T> {
  const lock = await acquire(call) as Lock; // `undefined` is for calls that only try
  const held = heldLock(lock);
  const { settings: { signal }, client: { wheel } } = call;
  if (call.ended) held.withdraw(); // since it was won
  call.throwIfEnded(held.round);
  held.deliver();
  const abort = () => held.abort(signal!.reason);
  wheel.ref(); // a routine may wait for nothing but the end of the lock
  let result: T;
  try {
    if (signal) onAbort(signal, abort);
    result = await routine(lock);
    const lost = held.loseIfOver();
    if (lost) throw lost;
  } catch (error) {
    throw thrownHere(error);
  } finally {
    if (signal) offAbort(signal, abort);
    // an event reports the failure; the keys expire with their TTL
    await held.release().catch(() => {});
    wheel.unref();
  }
  if (held.lostUnnoticed) throw thrownHere(held.lostUnnoticed);
  return result;
}

/**
 * Begins term after term, each with a call for its lock, until the signal of the calls aborts.
 *
 * @param first What each term calls for; it is not made itself.
 * @param routine Runs in each term.
 * @throws {RedlockError} If the client is closed.
 */
export async function lead(first: LockCall, routine: Routine<unknown>): Promise<void> {
  const { client, client: { wheel }, resources, settings: { signal, onEvent } } = first;
  const settings = { ...first.settings, waitMs: Infinity };
  for (let failures = 0; !signal?.aborted;) {
    const call = new LockCall(client, settings, resources, "use");
    const failed = await runUsing(call, routine).then(() => undefined, (error) => ({ error }));
    if (signal?.aborted) return;
    call.throwIfEnded();
    if (call.elapsedMs >= PAUSE_MS_MAX) failures = 0; // an earlier failure is too long ago
    failures = failed ? failures + 1 : 0;
    const longestMs = Math.min(PAUSE_MS_MIN * 2 ** failures, PAUSE_MS_MAX);
    const delayMs = PAUSE_MS_MIN + (longestMs - PAUSE_MS_MIN) * wheel.random.fraction();
    if (failed) {
      const event = { type: "lead-failed", resources, ...failed, delayMs } as const;
      if (onEvent) emit(onEvent, event);
      else warnOfFailedTerm(event);
    }
    await pause(wheel, delayMs, signal);
  }
}
