/**
 * How a call waits: for its turn among the calls of this client, for a lock that others hold, and for the end of a
 * cooldown.
 *
 * @module
 */
import type { ClientState } from "../client_state.ts";
import { emit } from "../events.ts";
import { isHopeless } from "../messages.ts";
import type { Round } from "../quorum/round.ts";
import { pause } from "../time/pause.ts";
import { Contention } from "../waiting/contention.ts";
import type { Waiter } from "../waiting/waiter.ts";
import { refusal, type RefusedCall } from "./refusal.ts";

/** A call that may have to wait. */
export interface WaitingCall extends RefusedCall {
  /** How it waits between two attempts, if it did. */
  waiter: Waiter | undefined;
  /** What is left of the wait, in milliseconds. */
  leftMs(): number;
  /** Begins the time of the call, if it waits before its first attempt. */
  startClock(): void;
}

/**
 * Waits until the earlier calls of this client for the same keys are done with the lock.
 *
 * @throws The refusal, if the wait is over before.
 * @throws The reason of the signal, or a {@linkcode RedlockError} if the client is closed.
 */
export async function waitForTurn(call: WaitingCall): Promise<void> {
  const { client, settings: { waitMs, signal }, name } = call;
  call.throwIfEnded();
  call.startClock();
  if (await contentionOf(client).wait(name, call, waitMs, signal)) return;
  call.throwIfEnded();
  throw refusal(call, client.localQueues.get(name)?.latest);
}

/** Has the nodes put the first attempt in their queues if others wait for the lock; the result must be awaited. */
export function lineUp(call: WaitingCall, contention: Contention): Promise<void> | undefined {
  const { name, keys, settings } = call;
  call.waiter = contention.waiterIfContended(name, keys, settings);
  return call.waiter?.ready?.(call.leftMs(), settings.signal);
}

/**
 * Waits for a notification, polls, or waits for the end of a cooldown.
 *
 * @param denied The last attempt.
 * @throws The refusal, if the wait is over, or if too many nodes refuse for good.
 * @throws What {@linkcode coolDown} throws.
 */
export async function wait(call: WaitingCall, denied: Round): Promise<void> {
  const { client, name, keys, settings } = call;
  const { nodes, quorum } = client;
  call.throwIfEnded(denied);
  const hopeless = call.isUnanswered(denied) && isHopeless(denied.votes, nodes.length, quorum);
  if (hopeless || call.leftMs() <= 0) throw refusal(call, denied);
  const contention = contentionOf(client);
  const waiter = call.waiter ??= contention.waiter(name, keys, settings);
  contention.recordDenial(name, denied);
  await waiter.wait(call.attempts - 1, call.leftMs(), settings.signal, denied);
  const { onEvent } = settings;
  const { resources, elapsedMs } = call;
  if (onEvent && waiter.notified) emit(onEvent, { type: "woken", resources, elapsedMs });
  if (call.cooldownMs > 0) await coolDown(call, denied);
}

/**
 * Waits until the cooldown of the resources is over, and leaves the queues meanwhile.
 *
 * @param denied The last attempt, if there was one.
 * @throws {LockHeldError} If the wait is over before the cooldown.
 * @throws The reason of the signal, or a {@linkcode RedlockError} if the client is closed.
 */
export async function coolDown(call: WaitingCall, denied?: Round): Promise<void> {
  const { client, settings: { signal } } = call;
  call.throwIfEnded();
  call.startClock();
  client.contention?.yield(call.name);
  call.waiter = undefined;
  for (let cooldownMs; (cooldownMs = call.cooldownMs) > 0;) {
    const leftMs = call.leftMs();
    if (leftMs <= 0) throw refusal(call, denied);
    await pause(client.wheel, Math.min(cooldownMs, leftMs), signal);
    call.throwIfEnded();
  }
}

function contentionOf(client: ClientState): Contention {
  return client.contention ??= new Contention(client.localQueues, client, client.onEvent);
}
