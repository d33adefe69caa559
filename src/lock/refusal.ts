/**
 * Why a call got no lock.
 *
 * @module
 */
import type { ClientState } from "../client_state.ts";
import type { LockHeldError, QuorumError } from "../errors.ts";
import { emit } from "../events.ts";
import { agreeOnToken } from "../fencing/token.ts";
import { lockHeldError, quorumError } from "../messages.ts";
import type { Settings } from "../options.ts";
import type { Round } from "../quorum/round.ts";

/** A call that may end without a lock. */
export interface RefusedCall {
  readonly client: ClientState;
  readonly settings: Settings;
  readonly resources: readonly string[];
  readonly keys: readonly string[];
  /** The name of its keys in this client's queues. */
  readonly name: string;
  /** How many attempts were made. */
  readonly attempts: number;
  /** For how long the call has lasted, in milliseconds. */
  readonly elapsedMs: number;
  /** How long the resources stay in their cooldown, in milliseconds; 0 if they are in none. */
  readonly cooldownMs: number;
  /** Whether an attempt failed because nodes did not answer, or not in time, and not because others hold the lock. */
  isUnanswered(denied: Round | undefined): boolean;
  /** Throws if the call's signal was aborted or the client was closed. */
  throwIfEnded(denied?: Round): void;
}

/** The error of a call that ends without a lock; emits the event of the refusal. */
export function refusal(
  call: RefusedCall,
  denied: Round | undefined,
): LockHeldError | QuorumError {
  const { client, resources, settings: { waitMs } } = call;
  const { nodes: { length: nodeCount }, quorum, localQueues } = client;
  const { elapsedMs: waitedMs, cooldownMs: cooldownLeftMs } = call;
  const refused = { resources, votes: denied?.votes ?? [], nodeCount, quorum };
  reportRefusal(call, denied);
  if (call.isUnanswered(denied)) {
    return quorumError("acquire", { ...refused, note: note(denied!, quorum) });
  }
  const waiter = localQueues.get(call.name)?.waiter;
  const ownHeldMs = ownHoldMs(call);
  return lockHeldError({
    ...refused,
    waitedMs: waitMs === 0 ? undefined : waitedMs,
    remainingMs: denied && ownHeldMs === undefined ? waiter?.remainingMs : undefined,
    ownHeldMs,
    cooldownLeftMs,
    waiters: waiter?.queueLength,
  });
}

/** Emits the event of a refusal. */
export function reportRefusal(call: RefusedCall, denied: Round | undefined): void {
  const { resources, attempts, elapsedMs, settings: { onEvent } } = call;
  if (!onEvent) return;
  const reason = call.isUnanswered(denied) ? "no-quorum" : "held";
  emit(onEvent, {
    type: "denied",
    resources,
    reason,
    votes: denied?.votes ?? [],
    attempts,
    elapsedMs,
  });
}

/** For how long this client itself has held one of the resources, in milliseconds, if it does. */
function ownHoldMs({ client: { localQueues }, keys }: RefusedCall): number | undefined {
  const wanted = new Set(keys);
  for (const owner of localQueues.owners) {
    const { round } = owner as { readonly round?: Round }; // which a lock has, and a call has not
    if (round?.keys.some((key) => wanted.has(key))) return round.elapsedMs;
  }
  return undefined;
}

/** Why there is no lock although a quorum granted it, if so. */
function note({ decision, counts }: Round, quorum: number): string | undefined {
  if (decision !== "granted") return undefined;
  const unsettled = counts !== undefined && !agreeOnToken(counts, quorum).agreed;
  return unsettled ? "but they did not agree on a fencing token" : "but too late for its validity";
}
