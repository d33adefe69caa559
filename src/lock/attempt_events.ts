/**
 * The events of a call for a lock.
 *
 * @module
 */
import { emit } from "../events.ts";
import type { Round } from "../quorum/round.ts";
import type { AcquireCall } from "./acquire.ts";
import { HeldLock } from "./held_lock.ts";

/** A call whose attempts are reported. */
interface ReportedCall extends Pick<AcquireCall, "client" | "settings" | "resources"> {
  /** How many attempts were made. */
  readonly attempts: number;
  /** For how long the call has lasted, in milliseconds. */
  readonly elapsedMs: number;
}

/** Emits that an attempt is over, and that it won the lock if it did. */
export function reportAttempt(call: ReportedCall, result: HeldLock | Round): void {
  const { settings: { onEvent }, resources, attempts } = call;
  const held = result instanceof HeldLock ? result : undefined;
  const round = held?.round ?? result as Round;
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
    votes,
    attempts,
    elapsedMs: call.elapsedMs,
    remainingMs: held.remainingMs(),
  });
}
