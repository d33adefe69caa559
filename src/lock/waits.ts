/**
 * What a call waits for. Before an attempt, until nothing is in its way ({@linkcode beginWait}):
 * behind the earlier calls of this client (`waiting/local_queues.ts`), and for the end of a
 * cooldown. After an attempt that failed, first for those who hold the lock ({@linkcode
 * waitForOthers}, `waiting/queued_waiter.ts`).
 *
 * A call that may wait no longer gets its refusal from each of these, and one that has ended the
 * reason (`LockCall.throwIfEnded`).
 *
 * @module
 */
import { emit } from "../events.ts";
import { isHopeless } from "../messages.ts";
import type { Round } from "../quorum/round.ts";
import { backoffMs } from "../time/backoff.ts";
import { pause } from "../time/pause.ts";
import type { LockCall } from "./lock_call.ts";
import { refusal } from "./refusal.ts";

/**
 * How often a call that may not wait tries again at most because several calls have split the
 * votes.
 */
const SPLIT_RETRIES_MAX = 4;
/**
 * The longest pause before an attempt after a split vote, as a multiple of the slowest round trip.
 * It is random, so one of the calls most likely asks a round trip earlier than the others.
 */
const SPLIT_PAUSE_FACTOR = 4;
/** The least of these longest pauses, in milliseconds: timers count whole ones. */
const SPLIT_PAUSE_MS_MIN = 8;

/**
 * Begins to wait for one thing that is in the way of the next attempt. To be called again after
 * each wait.
 *
 * @returns The wait; `undefined` if nothing is in the way, and the call may ask.
 */
export function beginWait(call: LockCall): Promise<void> | undefined {
  call.throwIfEnded();
  if (call.entersAtOnce) return undefined; // in a cooldown, too: then the lock is not accepted
  // One that adopts a lock waits for no earlier call, because that may wait for that very lock.
  const queues = call.waitMs > 0 && !call.adopts;
  if (queues && !isNext(call)) return waitBehind(call);
  if (call.cooldownLeftMs > 0) return pauseInCooldown(call);
  return queues ? waitToJoin(call) : undefined;
}

/** Whether no earlier call of this client is in its way; if so, it becomes the first. */
function isNext(call: LockCall): boolean {
  const { client: { localQueues }, localName, mode } = call;
  // A reader that joins nobody becomes no first: others of its client ask beside it.
  if (mode && !localQueues.get(localName) && !localQueues.isContended(call)) return true;
  return localQueues.claim(localName, call);
}

/**
 * Waits behind the earlier calls of this client: until it is the first, or until a reader before it
 * has the lock, so that it may enter beside that.
 */
async function waitBehind(call: LockCall): Promise<void> {
  const { localQueues } = call.client;
  const queue = localQueues.get(call.localName)!;
  if (!await localQueues.wait(queue, call, call.leftMs())) {
    call.last ??= (queue.owner as Partial<LockCall>).last; // why a call that is first waits
    throw refusal(call);
  }
  call.pool?.choose();
}

/** Pauses until the cooldown of the resources is over, outside the nodes' queues. */
async function pauseInCooldown(call: LockCall): Promise<void> {
  const { client: { localQueues, wheel }, settings: { signal } } = call;
  if (call.leftMs() <= 0) throw refusal(call);
  localQueues.removeTicket(call);
  await pause(wheel, Math.min(call.cooldownLeftMs, call.leftMs()), signal);
  call.pool?.choose();
}

/** If it expects other clients to wait, waits until nodes can notify it, to join their queues. */
function waitToJoin(call: LockCall): Promise<void> | undefined {
  const { client: { localQueues }, localName } = call;
  const joins = localQueues.get(localName)?.ticket || localQueues.isContended(call);
  if (!joins || call.waiter) return undefined;
  return localQueues.takeWaiter(call)?.ready(call.leftMs());
}

/** Notes that an attempt failed; throws the refusal, too, if too many nodes refuse for good. */
export function noteFailed(call: LockCall, last: Round): void {
  const { client: { nodes } } = call;
  const { decision, granted, failedByMajority } = last;
  call.last = last;
  if (decision === "refused" && granted > 0 && !failedByMajority) call.split = true;
  call.throwIfEnded();
  // a cooldown that has begun meanwhile is waited out
  if (isHopeless(last.votes, nodes.length) && call.cooldownLeftMs === 0) throw refusal(call);
}

/**
 * Waits after an attempt that failed, for those who hold the lock. Then {@linkcode beginWait}
 * follows. Throws in the tick of the last answer.
 */
export function waitForOthers(call: LockCall): Promise<void> | undefined {
  const { client: { localQueues }, localName, waitMs, split, retries } = call;
  if (waitMs === 0 && split && retries < SPLIT_RETRIES_MAX) return pauseAfterSplit(call);
  if (call.leftMs() <= 0) throw refusal(call);
  // a reader may find that another call has become the first meanwhile, and waits behind that
  return localQueues.claim(localName, call) ? waitAsFirst(call) : undefined;
}

/** Waits as the first of its client: for news of the nodes, or it polls. */
async function waitAsFirst(call: LockCall): Promise<void> {
  const { client: { localQueues, wheel }, resources, settings, last } = call;
  const { onEvent, signal } = settings;
  const waiter = localQueues.takeWaiter(call);
  if (!waiter) {
    const delayMs = backoffMs(wheel.random, settings, call.polls++);
    await pause(wheel, Math.min(delayMs, call.leftMs()), signal);
    return call.pool?.choose();
  }
  const { notifiedBy, place } = await waiter.wait(call.leftMs(), last!);
  if (onEvent && notifiedBy) emit(onEvent, { type: "woken", resources, elapsedMs: call.elapsedMs });
  call.pool?.choose(place);
}

/**
 * Pauses after a split vote, before the call asks again, also if it may not wait: the other nodes
 * may have granted several others, each too few. Then nobody holds the lock, and one of those that
 * ask again gets it.
 */
export async function pauseAfterSplit(call: LockCall): Promise<void> {
  const { client: { wheel }, settings: { signal, nodeTimeoutMs }, last } = call;
  // A process that stood still has measured that, not the way to a node.
  const roundTripMs = Math.min(last!.slowestMs, nodeTimeoutMs);
  const longestMs = Math.max(roundTripMs * SPLIT_PAUSE_FACTOR, SPLIT_PAUSE_MS_MIN);
  call.split = false;
  call.retries++;
  await pause(wheel, longestMs * wheel.random.fraction(), signal);
  call.pool?.choose();
}
