/**
 * Why a call got no lock.
 *
 * @module
 */
import type { LockHeldError, QuorumError } from "../errors.ts";
import { agreeOnToken } from "../fencing/token.ts";
import { lockHeldError, quorumError } from "../messages.ts";
import type { Round } from "../quorum/round.ts";
import { reportRefusal } from "./attempt_events.ts";
import { HeldLock } from "./held_lock.ts";
import { holderOf } from "./holder.ts";
import type { LockCall } from "./lock_call.ts";

/** The error of a call that ends without a lock; emits the event of the refusal. */
export function refusal(
  call: LockCall,
  denied: Round | undefined,
): LockHeldError | QuorumError {
  const { client, resources, waitMs } = call;
  const { nodes: { length: nodeCount }, quorum, localQueues } = client;
  const { elapsedMs: waitedMs, cooldownMs: cooldownLeftMs } = call;
  const { votes = [] } = denied ?? {};
  const undecided = call.replaces !== undefined || call.isUnanswered(denied);
  reportRefusal(call, undecided ? "no-quorum" : "held", votes);
  if (undecided) {
    return quorumError(call.verb, resources, votes, nodeCount, note(denied!, quorum));
  }
  const ticket = localQueues.get(call.name)?.waiter?.ticket;
  const own = ownHold(call);
  const value = own ? own.value : ticket?.holderValue;
  return lockHeldError({
    resources,
    votes,
    nodeCount,
    any: call.pool !== undefined,
    waitedMs: waitMs === 0 ? undefined : waitedMs,
    remainingMs: denied && !own ? ticket?.remainingMs : undefined,
    holder: value === undefined ? undefined : holderOf(value),
    ownHeldMs: own?.elapsedMs,
    cooldownLeftMs,
    waiters: ticket?.queueLength,
  });
}

/** The round that won this client itself the lock, if it holds it. */
function ownHold({ client: { localQueues }, name }: LockCall): Round | undefined {
  const owner = localQueues.owner(name);
  return owner instanceof HeldLock ? owner.round : undefined;
}

/** Why there is no lock although a quorum granted it, if so. */
function note({ decision, tally: { counts } }: Round, quorum: number): string | undefined {
  if (decision !== "granted") return undefined;
  const unsettled = counts !== undefined && !agreeOnToken(counts.last, quorum).agreed;
  return unsettled ? "but they did not agree on a fencing token" : "but too late for its validity";
}
