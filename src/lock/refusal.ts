/**
 * How a call ends without a lock: with which error, and what that says was in its way.
 *
 * @module
 */
import { LockHeldError, type QuorumError, type RedlockError } from "../errors.ts";
import { emit } from "../events.ts";
import { describeHolder } from "../holder.ts";
import { foreignKey, lockName, nodeErrors, quorumError, voteCount } from "../messages.ts";
import type { Vote } from "../vote.ts";
import type { HeldLock } from "./held_lock.ts";
import type { LockCall } from "./lock_call.ts";

/** By the code of its error, the `reason` in the event of a call that ends without a lock. */
const REASONS = {
  LOCK_HELD: "held",
  NO_QUORUM: "no-quorum",
  LOCK_LOST: "gone",
  CLOSED: undefined,
} as const;

/** A call ends without a lock: with an error, unless it was only to try and others hold it. */
export function endWithout(call: LockCall, error: unknown): undefined {
  const { client: { localQueues }, purpose, settings: { signal, onEvent } } = call;
  const isAbort = Object.is(error, signal?.reason); // which may be anything
  const { code, votes }: Partial<RedlockError> = isAbort ? {} : error as RedlockError;
  const reason = isAbort ? "aborted" : REASONS[code!];
  if (onEvent && reason) {
    const { resources, mode, attempts, elapsedMs } = call;
    const fields = { resources, ...(mode && { mode }), votes: votes ?? [], attempts, elapsedMs };
    emit(onEvent, { type: "denied", reason, ...fields });
  }
  // mutation: failed-call-blocks-its-client
  localQueues.leave(call);
  if (purpose === "try" && reason === "held") return undefined;
  throw error;
}

/**
 * The error of a call whose wait is over.
 *
 * @throws The reason of the signal, or a {@linkcode RedlockError} if the client is closed.
 */
export function refusal(call: LockCall): LockHeldError | QuorumError {
  call.throwIfEnded();
  const { last } = call;
  const failed = last && (last.failedByMajority || last.decision === "granted");
  if (!call.adopts && (!failed || call.cooldownLeftMs > 0)) return heldByOthers(call);
  const { decision, counts, votes } = last!;
  if (decision !== "granted") return noQuorum(call, votes, "");
  // a quorum granted it, and it was not accepted
  const unsettled = counts !== undefined && counts.token === undefined;
  const why = unsettled ? "no fencing token was agreed on" : "too late for its validity";
  return noQuorum(call, votes, `, but ${why}`);
}

/** The error of a call that too few nodes answered, and why there are no more votes, if so. */
export function noQuorum(call: LockCall, votes: readonly Vote[], why: string): QuorumError {
  const { client: { nodes }, resources, pool, verb } = call;
  const note = why + waitedText(call);
  return quorumError(verb, resources, votes, nodes.length, note, pool !== undefined);
}

/** `; waited 3 ms`; nothing if the call may not wait. */
function waitedText({ waitMs, elapsedMs }: LockCall): string {
  return waitMs === 0 ? "" : `; waited ${Math.round(elapsedMs)} ms`;
}

/** The error of a call whose lock others hold, or that is in its cooldown. */
function heldByOthers(call: LockCall): LockHeldError {
  const { client: { nodes, localQueues }, resources, last, pool } = call;
  const ticket = localQueues.get(call.localName)?.ticket;
  const own = ownHold(call);
  const value = own ? own.round.value : ticket?.holderValue;
  const holders = value === undefined ? [] : [describeHolder(value)];
  const remainingMs = own ? undefined : ticket?.remainingMs;
  const votes = last?.votes ?? [];
  const parts = [obstacle(call, own, holders[0]?.label) + waitedText(call)];
  if (call.cooldownLeftMs === 0) {
    if (remainingMs !== undefined) parts.push(keyText(resources, remainingMs));
    if (votes.length > 1) parts.push(voteCount(votes, nodes.length));
  }
  const message = `Cannot acquire ${lockName(resources, pool !== undefined)}: ${parts.join("; ")}`;
  const cause = nodeErrors(votes);
  const waiters = ticket?.queueLength;
  return new LockHeldError(message, { resources, votes, cause, waiters, holders, remainingMs });
}

/** What is in the way of a call. */
function obstacle(
  { pool, mode, last, resources, settings, cooldownLeftMs }: LockCall,
  own: HeldLock | undefined,
  label: string | undefined,
): string {
  const [it, one] = resources.length === 1 ? ["it", "it"] : ["them", "one of them"];
  if (cooldownLeftMs > 0) {
    const what = pool ? "each is held or" : `${one} is`;
    return `${what} in its cooldown ('cooldownMs') for another ${Math.ceil(cooldownLeftMs)} ms`;
  }
  if (own) {
    const reader = mode ? "a writer waits for that" : "a reader cannot become the writer";
    const [how, rule] = own.round.mode
      ? [" in shared mode", reader]
      : ["", "locks are not reentrant"];
    const what = own.resources.length === resources.length ? it : lockName(own.resources);
    const heldMs = Math.round(own.round.ageMs);
    return `another call of this client has held ${what}${how} for ${heldMs} ms, and ${rule}`;
  }
  if (!last?.votes.length) return `earlier calls of this client are still waiting for ${it}`;
  if (pool) return "each of them is held, or others compete for it";
  if (!last.deniedByMajority) return `others hold ${one} or compete for ${it}`;
  if (label === undefined) return `someone else holds ${one}`;
  return label === settings.label
    ? `this process, or one with its label (${label}), holds ${one}`
    : `someone else (${label}) holds ${one}`;
}

/** How long the key in the way lives. */
function keyText(resources: readonly string[], remainingMs: number): string {
  const name = resources.length === 1 ? "its key" : "one of their keys";
  const state = foreignKey(remainingMs) ??
    `expires in ${Math.ceil(remainingMs)} ms unless it is extended`;
  return `${name} ${state}`;
}

/**
 * The lock of this client on all resources of the call, or on one of them; in a pool, one says
 * nothing.
 */
function ownHold(call: LockCall): HeldLock | undefined {
  const { client: { localQueues }, pool, keys, name } = call;
  if (pool && keys.length > 1) return undefined;
  const ownerOf = (name: string) => localQueues.get(name)?.owner;
  // a reader keeps another out, if a writer waits for it
  const owners = [ownerOf(name), localQueues.reader(name), ...keys.map(ownerOf)] as HeldLock[];
  return owners.find((owner) => owner?.round); // which calls have not
}
