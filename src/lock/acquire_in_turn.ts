/**
 * Acquiring a lock beside other calls of the same client: only the first of them asks the nodes, and while the client
 * holds the lock none does.
 *
 * @module
 */
import { acquire, attempt } from "./acquire.ts";
import type { LockCall } from "./lock_call.ts";
import { drawToken } from "./draw_token.ts";
import { HeldLock } from "./held_lock.ts";
import type { Round } from "../quorum/round.ts";

/**
 * Acquires the lock as soon as the earlier calls of this client for the same keys are done with it.
 *
 * @param use Makes the result of the call of the lock.
 * @throws What {@linkcode acquire} throws.
 */
export async function acquireInTurn<T>(
  call: LockCall,
  use: (held: HeldLock) => T | Promise<T>,
): Promise<T> {
  const { client: { localQueues }, settings: { tokenSource }, name } = call;
  if (!localQueues.enter(name, call)) await waitForTurn(call);
  let held: HeldLock;
  try {
    if (call.cooldownMs > 0) await call.coolDown();
    const linedUp = call.lineUp();
    if (linedUp) await linedUp;
    held = await acquire(call);
    if (tokenSource) await drawToken(held, call, call.leftMs());
  } catch (error) {
    // mutation: failed-call-blocks-its-client
    localQueues.leave(name, call);
    throw error;
  }
  localQueues.promote(name, call, held);
  if (!held.active) localQueues.leave(name, held); // lost while it was reported
  if (call.autoExtend) held.renew();
  return use(held);
}

async function waitForTurn(call: LockCall): Promise<void> {
  const { client: { localQueues }, settings: { waitMs, signal }, name } = call;
  call.throwIfEnded();
  call.startClock();
  if (await localQueues.wait(name, call, waitMs, signal)) return;
  call.throwIfEnded();
  throw await call.refusal(localQueues.latest(name));
}

/**
 * Makes one attempt, whichever other calls of this client wait for the lock.
 *
 * @param use Makes the result of the call of the lock.
 * @param refuse Makes it of the last attempt, or of `undefined` if the resources are in their cooldown.
 * @throws What {@linkcode attempt} and `refuse` throw.
 */
export async function acquireAtOnce<T>(
  call: LockCall,
  use: (held: HeldLock) => T | Promise<T>,
  refuse: (call: LockCall, denied: Round | undefined) => T | Promise<T>,
): Promise<T> {
  const { client: { localQueues }, settings: { tokenSource }, name } = call;
  call.throwIfEnded();
  const result = call.cooldownMs > 0 ? undefined : await attempt(call);
  if (!(result instanceof HeldLock)) return await refuse(call, result);
  if (result.active) localQueues.enter(name, result);
  if (tokenSource) await drawToken(result, call, 0);
  if (call.autoExtend) result.renew();
  return use(result);
}
