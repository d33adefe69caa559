/**
 * The events of a call for a lock.
 *
 * @module
 */
import { emit, type RedlockEvent } from "../events.ts";
import type { Round } from "../quorum/round.ts";
import type { Vote } from "../vote.ts";
import type { HeldLock } from "./held_lock.ts";
import { holderOf } from "./holder.ts";
import type { LockCall } from "./lock_call.ts";

/** Emits that an attempt is over, and that it won the lock if it did. */
export function reportAttempt(call: LockCall, round: Round, held: HeldLock | undefined): void {
  const { settings: { onEvent }, resources, attempts, replaces } = call;
  const { votes } = round;
  emit(onEvent!, {
    type: "attempt",
    resources,
    attempt: attempts,
    granted: held !== undefined,
    votes,
    elapsedMs: round.elapsedMs,
  });
  if (!held) return;
  emit(onEvent!, {
    type: "acquired",
    resources,
    holder: holderOf(round.value),
    ...(replaces === undefined ? {} : { adoptedFrom: holderOf(replaces) }),
    ...modeOf(call),
    votes,
    attempts,
    elapsedMs: call.elapsedMs,
    remainingMs: held.remainingMs(),
  });
}

/** Emits that a call ends without a lock. */
export function reportRefusal(
  call: LockCall,
  reason: Extract<RedlockEvent, { type: "denied" }>["reason"],
  votes: readonly Vote[],
): void {
  const { resources, attempts, elapsedMs, settings: { onEvent } } = call;
  if (!onEvent) return;
  const mode = modeOf(call);
  emit(onEvent, { type: "denied", resources, reason, ...mode, votes, attempts, elapsedMs });
}

function modeOf({ mode }: LockCall): { readonly mode?: "shared" } {
  return mode ? { mode } : {};
}

/** Emits that the signal has ended a call without a lock, if that is what it failed with. */
export function reportAbort(call: LockCall, error: unknown): void {
  const { signal } = call.settings;
  if (signal?.aborted && error === signal.reason) reportRefusal(call, "aborted", []);
}
