/**
 * The operations on several keys, and on the queues of clients that wait.
 *
 * @module
 */
import type { QueuePosition, QueueTicket } from "../quorum/queue_ticket.ts";
import { type RawReply, textReply } from "../redis/reply.ts";
import {
  type Call,
  callArgs,
  type Operation,
  type Outcome,
  outcomeOf,
  type Release,
  RELEASE_OUTCOMES,
} from "./operation.ts";
import { ACQUIRE_ALL, ACQUIRE_OR_WAIT } from "./scripts/acquire.ts";
import { LEAVE, RELEASE_QUEUED } from "./scripts/queue.ts";
import type { Script } from "./scripts/script.ts";

/** What the replies 0 and 1 to an acquisition mean. */
export const ACQUIRE_OUTCOMES = ["denied", "granted"] as const;

/** Sets several keys if all are missing. */
export const SET_KEYS: Operation = {
  kind: "acquire",
  script: ACQUIRE_ALL,
  args: ({ keys, value, ttlMs }, call) => callArgs(call, ACQUIRE_ALL, keys, value, String(ttlMs)),
  read: (reply) => outcomeOf(reply, ACQUIRE_OUTCOMES),
};

/** Sets the keys, or puts the request's ticket in their queues. */
export const SET_OR_QUEUE: Operation = {
  kind: "acquire",
  script: ACQUIRE_OR_WAIT,
  queues: true,
  args: ({ keys, value, ttlMs, ticket }, call) => {
    const args = [value, String(ttlMs), ...ticketArgs(ticket!)];
    return callArgs(call, ACQUIRE_OR_WAIT, keys, ...args);
  },
  read: grantOrPosition,
};

/**
 * Deletes the keys, takes the request's ticket out of their queues or puts it back, and notifies the next waiter of
 * each.
 */
export const RELEASE_KEYS: Operation<Release> = {
  kind: "release",
  script: RELEASE_QUEUED,
  args: (release, call) => releaseArgs(RELEASE_QUEUED, release, call),
  read: (reply) => outcomeOf(reply, RELEASE_OUTCOMES),
};

/** Takes a ticket, which is the value of the request, out of the queues for the keys. */
export const LEAVE_QUEUE: Operation<Release> = {
  kind: "release",
  script: LEAVE,
  args: ({ keys, value }, call) => callArgs(call, LEAVE, keys, value),
  read: (reply) => outcomeOf(reply, RELEASE_OUTCOMES),
};

/** The command of a script that releases a value, and takes a ticket out of the queues or puts it back. */
export function releaseArgs(
  script: Script,
  { keys, value, ticket, keepsTicket }: Release,
  call: Call,
): string[] {
  const args = [value];
  if (ticket) args.push(ticket.ticketId);
  if (ticket && keepsTicket) args.push(String(ticket.score));
  return callArgs(call, script, keys, ...args);
}

/** What the scripts get of a ticket. */
export function ticketArgs({ ticketId, priority, stuck, score, agreed }: QueueTicket): string[] {
  const overtaken = priority === "overdue" ? ` ${stuck.join(" ")} ` : "";
  return [ticketId, overtaken, String(score), agreed ? "1" : ""];
}

/** What the reply to an acquisition with a ticket means. */
export function grantOrPosition(reply: RawReply): Outcome | undefined {
  return isQueuePosition(reply) ? "queued" : reply === 1 ? "granted" : undefined;
}

/**
 * Whether a reply is a place in the queue: six numbers, a value, a number and a ticket. A client that turns texts into
 * numbers may do so with the value and the ticket.
 */
export function isQueuePosition(reply: RawReply): boolean {
  return Array.isArray(reply) && reply.length === 9 && !Array.isArray(reply[6]) &&
    [...reply.slice(0, 6), reply[7]].every((part) => typeof part === "number");
}

/**
 * The place in the queue that a node replied.
 *
 * @param reply The reply of {@linkcode ACQUIRE_OR_WAIT}.
 */
export function queuePosition(
  reply: RawReply,
): QueuePosition {
  const [numbers, value, first] = [
    reply as number[],
    ...[6, 8].map((at) => (reply as RawReply[])[at]),
  ];
  const [pttl, ahead, length, score, timeUs, foreign, , patienceMs] = numbers;
  // PTTL replies 0 in the last millisecond of a key, and -2 for a key that is missing.
  const remainingMs = pttl === -1 ? Infinity : Math.max(pttl + 1, 0);
  return {
    remainingMs,
    ahead,
    length,
    score,
    timeMs: timeUs / 1_000,
    foreign: foreign === 1,
    value: String(textReply(value)),
    first: patienceMs > 0 ? { ticketId: String(textReply(first)), patienceMs } : undefined,
  };
}
