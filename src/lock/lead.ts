/**
 * Leading: holding a lock again and again, until the caller ends it.
 *
 * @module
 */
import { warnOfFailedTerm } from "../console_warnings.ts";
import { emit } from "../events.ts";
import { pause } from "../time/pause.ts";
import type { LockCall } from "./lock_call.ts";

/** The shortest and the longest pause between two terms, in milliseconds. */
const PAUSE_MS_MIN = 1_000, PAUSE_MS_MAX = 30_000;

/**
 * Begins term after term, each with a call for its lock, until the signal of the calls aborts.
 *
 * @param newCall Makes the call of a term; throws if its arguments are wrong.
 * @param runTerm Waits for the lock, and uses it.
 * @throws What `newCall` throws, or a {@linkcode RedlockError} if the client is closed.
 */
export async function lead(
  newCall: () => LockCall,
  runTerm: (call: LockCall) => Promise<unknown>,
): Promise<void> {
  for (let failures = 0;;) {
    const call = newCall();
    call.waitMs = Infinity;
    const { client: { wheel }, settings: { signal, onEvent }, resources } = call;
    let failed: { error: unknown } | undefined;
    const startMs = wheel.continuous.nowMs();
    try {
      await runTerm(call);
    } catch (error) {
      failed = { error };
    }
    if (signal?.aborted) return;
    if (call.ended) call.throwIfEnded();
    const lasted = wheel.continuous.nowMs() - startMs >= PAUSE_MS_MAX;
    failures = !failed ? 0 : lasted ? 1 : failures + 1;
    const longestMs = Math.min(PAUSE_MS_MIN * 2 ** failures, PAUSE_MS_MAX);
    const delayMs = PAUSE_MS_MIN + (longestMs - PAUSE_MS_MIN) * wheel.random.fraction();
    if (failed) {
      const event = { type: "lead-failed", resources, ...failed, delayMs } as const;
      if (onEvent) emit(onEvent, event);
      else warnOfFailedTerm(event);
    }
    await pause(wheel, delayMs, signal);
    if (signal?.aborted) return;
  }
}
