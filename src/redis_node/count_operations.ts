/**
 * The operations that count fencing tokens.
 *
 * @module
 */
import type { RawReply } from "../redis/reply.ts";
import { type Call, callArgs, type Operation, type Outcome } from "./operation.ts";
import { isQueuePosition, ticketArgs } from "./queue_operations.ts";
import type { QuorumRequest } from "../quorum/quorum_node.ts";
import { ACQUIRE_COUNTED, ACQUIRE_FENCED, RAISE } from "./scripts/fencing.ts";

/** In place of a ticket and its score if the caller does not queue. */
const NONE = "";

/** Sets a single key if it is missing, and counts. */
export const COUNT_KEY: Operation = {
  kind: "acquire",
  script: ACQUIRE_COUNTED,
  args: ({ keys, value, ttlMs, counterFloor }, call) =>
    callArgs(call, ACQUIRE_COUNTED, keys, value, String(ttlMs), String(counterFloor)),
  read: countOrDenial,
};

/** Sets several keys if all are missing, and counts. */
export const COUNT_KEYS: Operation = {
  kind: "acquire",
  script: ACQUIRE_FENCED,
  args: (request, call) => fencedArgs(request, call, NONE, NONE, NONE, NONE),
  read: countOrDenial,
};

/** Sets the keys and counts, or puts the request's ticket in their queues. */
export const COUNT_OR_QUEUE: Operation = {
  kind: "acquire",
  script: ACQUIRE_FENCED,
  queues: true,
  args: (request, call) => fencedArgs(request, call, ...ticketArgs(request.ticket!)),
  read: (reply) => isQueuePosition(reply) ? "queued" : counted(reply),
};

/** Raises the counters of the keys to the request's token. */
export const RAISE_COUNTERS: Operation = {
  kind: "raise",
  script: RAISE,
  args: ({ keys, value, counterFloor }, call) =>
    callArgs(call, RAISE, keys, value, String(counterFloor)),
  read: countOrDenial,
};

function fencedArgs(
  { keys, value, ttlMs, counterFloor }: QuorumRequest,
  call: Call,
  ...ticket: readonly string[]
): string[] {
  const args = [value, String(ttlMs), ...ticket, String(counterFloor)];
  return callArgs(call, ACQUIRE_FENCED, keys, ...args);
}

/** What a counter means, or 0, as the reply to an acquisition. */
export function countOrDenial(reply: RawReply): Outcome | undefined {
  return reply === 0 ? "denied" : counted(reply);
}

function counted(reply: RawReply): Outcome | undefined {
  return Number.isSafeInteger(reply) && reply as number > 0 ? "counted" : undefined;
}
