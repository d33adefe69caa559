/**
 * Giving a lock that was won its fencing token from elsewhere.
 *
 * @module
 */
import { callTokenSource } from "../fencing/token_source.ts";
import type { LockCall } from "./lock_call.ts";
import type { HeldLock } from "./held_lock.ts";

/**
 * Draws the token from the call's source. The lock is not extended meanwhile, so a source that hangs keeps nobody out for
 * longer than the validity.
 *
 * @param leftMs What is left of the wait, in milliseconds: the source may take so long at most. 0 if nothing is left:
 *   then only the validity counts.
 * @throws Whatever the source throws, the reason of the call's signal, or a {@linkcode LockLostError} if the time is
 *   over. The lock is released then, and nobody waits for the source, whose signal is aborted.
 */
export async function drawToken(held: HeldLock, call: LockCall, leftMs: number): Promise<void> {
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
