/**
 * Adopting a lock that another client has handed over: an acquisition with another condition.
 *
 * **Why it excludes.** The steps are those of the argument in `acquire.ts`.
 *
 * 1. A node grants it only if all keys hold the value of the hand-over token, the *old* one, and
 *    gives them the attempt's own, new one. A key has one value at a time: so steps 1 to 4 hold.
 * 2. No handle has the old value: the former holder's has ended before the token exists (step 6).
 * 3. So an undo may give the old value back, where a key holds the attempt's own (step 5). The end
 *    of an adopted lock, and an adoption that can never succeed, may delete it.
 * 4. While the lock is held, a node that still has the old value adopts the lock after an
 *    extension. That is a fill-in (step 6), and counts for nothing in that round.
 *
 * Several clients that adopt one lock at once may split the vote. So each gives back what it took
 * and tries again after a random pause. One that has a quorum has taken the old value from so many
 * nodes that no other one finds a quorum.
 *
 * @module
 */
import type { LockLostError } from "../errors.ts";
import { keysGone, lostError } from "../messages.ts";
import { backoffMs } from "../time/backoff.ts";
import { pause, settledWithin } from "../time/pause.ts";
import { holderOf } from "../holder.ts";
import { reportKey } from "./inspection.ts";
import type { LockCall } from "./lock_call.ts";
import { refusal } from "./refusal.ts";
import { deleteFormer } from "./release.ts";
import { tryAgainMs } from "./renewal.ts";
import { pauseAfterSplit } from "./waits.ts";

/**
 * How many attempts are made at least, if no node takes too long and neither this client nor
 * another has a quorum.
 */
const ATTEMPTS_MIN = 8;

/**
 * Waits for the next attempt.
 *
 * @param call A call that adopts a lock; its last attempt is undone.
 * @throws {LockLostError} If the lock is gone, or somebody else holds it.
 * @throws {QuorumError} If too few nodes answered.
 * @throws The reason of the signal, or a {@linkcode RedlockError} if the client is closed.
 */
export async function waitToAdopt(call: LockCall): Promise<void> {
  const { client: { nodes, quorum, wheel }, settings, attempts, adopts } = call;
  const last = call.last!;
  const taken = !last.failedByMajority && await isTaken(call);
  call.throwIfEnded();
  // Read now, because nodes that fail at once may decide a round before the others answer.
  if (last.missing > nodes.length - quorum) {
    throw lost(call, keysGone(last.keys));
  }
  if (taken) throw lost(call, new Error("somebody else holds it"), adopts!.keptMs > 0);
  const answered = last.pending === 0 && !last.failedByMajority &&
    last.votes.every(({ outcome }) => outcome !== "timed-out");
  const split = answered && attempts < ATTEMPTS_MIN;
  if (split) return await pauseAfterSplit(call);
  if (call.leftMs() <= 0) throw refusal(call);
  const { signal, retryDelayMs } = settings;
  // nobody extends the lock meanwhile, so while it may live, a node that is back is asked soon
  const soonMs = call.elapsedMs < adopts!.ttlMs ? tryAgainMs(adopts!.ttlMs) : Infinity;
  const retryDelayMaxMs = Math.min(settings.retryDelayMaxMs, soonMs);
  const pauseMs = backoffMs(wheel.random, { retryDelayMs, retryDelayMaxMs }, attempts - 1);
  await pause(wheel, Math.min(pauseMs, call.leftMs()), signal);
}

/**
 * Whether a quorum of nodes has one value other than the one to replace under any of the keys:
 * somebody has adopted the lock, or acquired some of its resources.
 */
async function isTaken(call: LockCall): Promise<boolean> {
  const { client, keys, settings: { nodeTimeoutMs, signal }, adopts } = call;
  const asked = Promise.all(keys.map((key) => reportKey(client, key, nodeTimeoutMs)));
  await settledWithin(client.wheel, asked, Infinity, signal); // or until the call ends
  const reports = call.ended ? [] : await asked;
  const own = holderOf(adopts!.value);
  return reports.some(({ held, holders }) => held && !holders.some(({ holder }) => holder === own));
}

/**
 * Nobody can adopt the lock any more. So what is left of it, and what others give back of it, only
 * blocks nodes.
 *
 * @param isKept Whether it stays until its TTL is over: `atLeastMs` keeps it, and somebody may give
 * it back after an adoption that came too late.
 */
function lost({ resources, last }: LockCall, cause: Error, isKept = false): LockLostError {
  // mutation: dead-value-stays
  if (!isKept) deleteFormer(last!);
  return lostError("adopt", resources, last!.votes, "gone", cause);
}
