/**
 * How a call waits: for its turn among the calls of this client, for a lock that others hold, and
 * for the end of a cooldown.
 *
 * @module
 */
import { emit } from "../events.ts";
import { isHopeless } from "../messages.ts";
import type { Round } from "../quorum/round.ts";
import { pause } from "../time/pause.ts";
import { backoffMs } from "../waiting/polling.ts";
import type { LockCall } from "./lock_call.ts";
import { refusal } from "./refusal.ts";

/**
 * How often a call that may not wait tries again at most because several calls have split the
 * votes.
 */
const SPLIT_RETRIES_MAX = 4;
/**
 * The longest pause before that, as a multiple of the slowest round trip of the attempt. It is
 * chosen at random, so one of the calls most likely asks a round trip earlier than the others.
 */
const SPLIT_PAUSE_FACTOR = 4;
/** The least of these longest pauses, in milliseconds: timers count whole ones. */
const SPLIT_PAUSE_MS_MIN = 8;

/**
 * Waits until the earlier calls of this client for the same keys are done with the lock, and until
 * no cooldown is left. If others wait for the lock, has the nodes put the first attempt in their
 * queues. A call that may not wait has no turn.
 *
 * @returns What must be awaited, if anything.
 * @throws The refusal, if the wait is over before.
 * @throws The reason of the signal, or a {@linkcode RedlockError} if the client is closed.
 */
export function takeTurn(call: LockCall): Promise<void> | undefined {
  const { client: { localQueues }, localName } = call;
  const first = !call.takesTurns ||
    (call.mode ? !localQueues.owner(localName) : localQueues.enter(localName, call));
  return first && call.cooldownMs === 0 ? joinQueues(call) : waitForTurn(call, first);
}

async function waitForTurn(call: LockCall, first: boolean, denied?: Round): Promise<void> {
  const { client: { localQueues }, settings: { signal }, localName } = call;
  if (!first) {
    call.throwIfEnded();
    call.startClock();
    if (!await localQueues.wait(localName, call, call.leftMs(), signal)) {
      call.throwIfEnded();
      throw refusal(call, denied ?? localQueues.get(localName)?.latest);
    }
    call.admitted = !localQueues.isFirst(localName, call);
    if (call.admitted) return;
  }
  await coolDown(call);
  await joinQueues(call);
}

function joinQueues(call: LockCall): Promise<void> | undefined {
  const { client: { localQueues }, settings } = call;
  call.pool?.start();
  if (!call.takesTurns || !localQueues.isContended(call) || !leads(call)) return undefined;
  call.waiter = localQueues.waiterFor(call, settings);
  if (!call.waiter) return undefined;
  call.startClock();
  return call.waiter.ready(call.leftMs(), settings.signal);
}

/**
 * Waits for a notification, polls, or waits for the end of a cooldown.
 *
 * @param denied The last attempt.
 * @throws The refusal, if the wait is over, or if too many nodes refuse for good.
 * @throws What {@linkcode takeTurn} throws.
 */
export async function wait(call: LockCall, denied: Round): Promise<void> {
  const { client: { localQueues, nodes, quorum, wheel }, localName, settings } = call;
  const { onEvent, signal } = settings;
  call.throwIfEnded(denied.votes);
  const hopeless = call.isUnanswered(denied) && isHopeless(denied.votes, nodes.length, quorum);
  if (hopeless) throw refusal(call, denied);
  if (call.waitMs === 0 && call.split && call.retries < SPLIT_RETRIES_MAX) {
    return await pauseAfterSplit(call, denied);
  }
  if (call.leftMs() <= 0) throw refusal(call, denied);
  if (!leads(call)) return await waitForTurn(call, false, denied);
  const waiter = call.waiter ??= localQueues.waiterFor(call, settings);
  const queue = localQueues.get(localName);
  if (queue) queue.latest = denied;
  const [attempt, leftMs] = [call.attempts - 1, call.leftMs()];
  if (waiter) await waiter.wait(attempt, leftMs, signal, denied);
  else await pause(wheel, Math.min(backoffMs(wheel, settings, attempt), leftMs), signal);
  const { resources, elapsedMs } = call;
  if (onEvent && waiter?.notified) emit(onEvent, { type: "woken", resources, elapsedMs });
  await coolDown(call, denied);
  call.pool?.startOver(waiter?.place);
}

/**
 * Others have the other nodes, and may have too few as well: then nobody holds the lock, and one of
 * those that ask again gets it.
 */
async function pauseAfterSplit(call: LockCall, denied: Round): Promise<void> {
  const { client: { wheel }, settings: { signal, nodeTimeoutMs } } = call;
  // A process that stood still has measured that, not the way to a node.
  const roundTripMs = Math.min(denied.slowestMs, nodeTimeoutMs);
  const longestMs = Math.max(roundTripMs * SPLIT_PAUSE_FACTOR, SPLIT_PAUSE_MS_MIN);
  call.split = false;
  call.retries++;
  await pause(wheel, longestMs * wheel.random.fraction(), signal);
  call.pool?.startOver(undefined);
}

/**
 * Waits until the cooldown of the resources is over, if they are in one, and leaves the queues
 * meanwhile.
 */
async function coolDown(call: LockCall, denied?: Round): Promise<void> {
  const { client, settings: { signal } } = call;
  for (let cooldownMs; (cooldownMs = call.cooldownMs) > 0;) {
    call.throwIfEnded();
    call.startClock();
    const leftMs = call.leftMs();
    if (leftMs <= 0) throw refusal(call, denied);
    client.localQueues.dropWaiter(call.localName);
    call.waiter = undefined;
    await pause(client.wheel, Math.min(cooldownMs, leftMs), signal);
  }
}

/**
 * Whether the call is to wait among other clients itself. Of the calls in shared mode only one does
 * at a time: the others wait behind it, and may enter beside it.
 */
function leads(call: LockCall): boolean {
  const { client: { localQueues }, mode, localName } = call;
  return !mode || localQueues.enter(localName, call) || localQueues.isFirst(localName, call);
}
