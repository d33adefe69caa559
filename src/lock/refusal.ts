/**
 * How a call ends without a lock: its error, and its event.
 *
 * @module
 */
import { emit, type RedlockEvent } from "../events.ts";
import { describeHolder } from "../holder.ts";
import type { LockHeldError, QuorumError } from "../errors.ts";
import { agreeOnToken } from "../fencing/token.ts";
import { lockHeldError, quorumError } from "../messages.ts";
import { type Round, ROUNDS_MAX } from "../quorum/round.ts";
import { HeldLock } from "./held_lock.ts";
import type { LockCall } from "./lock_call.ts";
import type { Vote } from "../vote.ts";
import { keysName } from "../waiting/local_names.ts";

/** The error of a call that ends without a lock; emits the event of the refusal. */
export function refusal(
  call: LockCall,
  denied: Round | undefined,
): LockHeldError | QuorumError {
  const { client, resources, waitMs } = call;
  const { nodes: { length: nodeCount }, quorum, localQueues } = client;
  const { elapsedMs: waitedMs, cooldownMs: cooldownLeftMs } = call;
  const { votes = [] } = denied ?? {};
  const any = call.pool !== undefined;
  const undecided = call.adopts !== undefined || call.isUnanswered(denied);
  reportRefusal(call, undecided ? "no-quorum" : "held", votes);
  if (undecided) {
    return quorumError(call.verb, resources, votes, nodeCount, note(denied!, quorum), any);
  }
  const ticket = localQueues.get(call.localName)?.waiter?.ticket;
  const own = ownHold(call);
  const value = own ? own.value : ticket?.holderValue;
  return lockHeldError({
    resources,
    votes,
    nodeCount,
    any,
    waitedMs: waitMs === 0 ? undefined : waitedMs,
    remainingMs: denied && !own ? ticket?.remainingMs : undefined,
    holders: value === undefined ? [] : [describeHolder(value)],
    ownHeldMs: own?.tookMs,
    ownReads: own?.mode && call.mode === undefined,
    cooldownLeftMs,
    waiters: ticket?.queueLength,
  });
}

/**
 * The error of a call whose wait ended before the client could ask the nodes for it; throws if the
 * call was ended.
 */
export function crowded(call: LockCall): QuorumError {
  call.throwIfEnded();
  const { client: { nodes }, resources, pool, verb } = call;
  reportRefusal(call, "no-quorum", []);
  const why = `because ${ROUNDS_MAX} other attempts of this client were under way`;
  return quorumError(verb, resources, [], nodes.length, why, pool !== undefined);
}

/** The round that won this client itself the lock, if it holds it. */
function ownHold({ client: { localQueues }, keys, mode, localName }: LockCall): Round | undefined {
  const name = keysName(keys);
  const owners = [localQueues.owner(localName), localQueues.owner(name)];
  if (!mode) owners.push(localQueues.reader(name)); // readers do not keep readers out
  return owners.find((owner) => owner instanceof HeldLock)?.round;
}

/** Why there is no lock although a quorum granted it, if so. */
function note({ decision, counts }: Round, quorum: number): string | undefined {
  if (decision !== "granted") return undefined;
  const unsettled = counts !== undefined && !agreeOnToken(counts.last, quorum).agreed;
  return unsettled ? "but they did not agree on a fencing token" : "but too late for its validity";
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

/** The field of an event that says that a call is for shared mode, if it is. */
export function modeOf({ mode }: LockCall): { readonly mode?: "shared" } {
  return mode ? { mode } : {};
}

/** Emits that the signal has ended a call without a lock, if that is what it failed with. */
export function reportAbort(call: LockCall, error: unknown): void {
  const { signal } = call.settings;
  if (signal?.aborted && error === signal.reason) reportRefusal(call, "aborted", []);
}
