/**
 * The operations of a call for any one of several keys.
 *
 * @module
 */
import type { QuorumRequest } from "../quorum/quorum_node.ts";
import type { QueuePosition } from "../quorum/queue_ticket.ts";
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
import { ticketArgs } from "./queue_operations.ts";
import { ACQUIRE_ANY, RELEASE_ANY } from "./scripts/pool.ts";

/** How many parts a denial has: without a ticket, and with one, whose last part is a ticket. */
const MASK_LENGTH = 1, POSITION_LENGTH = 10;
/** In place of a value, for a ticket that leaves and releases nothing. */
const NONE = "";

/** Sets one key of the pool; else learns which are free. */
export const SET_ANY: Operation = {
  kind: "acquire",
  script: ACQUIRE_ANY,
  args: (request, call) => acquireArgs(request, call),
  read: (reply) => isNumbers(reply, MASK_LENGTH) ? "denied" : grantOf(reply),
};

/** The same; puts the request's ticket in the queues of all keys. */
export const SET_ANY_OR_QUEUE: Operation = {
  kind: "acquire",
  script: ACQUIRE_ANY,
  queues: true,
  args: (request, call) => acquireArgs(request, call, ...ticketArgs(request.ticket!)),
  read: (reply) => isNumbers(reply, POSITION_LENGTH) ? "queued" : grantOf(reply),
};

/** Deletes the key of an attempt, and takes its ticket out of the queues of the pool, or puts it back. */
export const RELEASE_ANY_KEY: Operation<Release> = {
  kind: "release",
  script: RELEASE_ANY,
  args({ pool, value, ticket, keepsTicket }, call) {
    const args = [String(pool!.place + 1), value, ticket!.ticketId];
    if (keepsTicket) args.push(String(ticket!.score));
    return callArgs(call, RELEASE_ANY, pool!.keys, ...args);
  },
  read: (reply) => reply === 1 ? "granted" : reply === 0 ? "denied" : undefined,
};

/** Takes a ticket, which is the value of the request, out of the queues of the pool. */
export const LEAVE_POOL: Operation<Release> = {
  kind: "release",
  script: RELEASE_ANY,
  args: ({ keys, value }, call) => callArgs(call, RELEASE_ANY, keys, "1", NONE, value),
  read: (reply) => outcomeOf(reply, RELEASE_OUTCOMES),
};

function acquireArgs(
  { pool, value, ttlMs, counterFloor }: QuorumRequest,
  call: Call,
  ...ticket: readonly string[]
): string[] {
  const hint = counterFloor === undefined ? "" : String(counterFloor);
  const args = [String(pool!.place + 1), value, String(ttlMs), hint, ...ticket];
  return callArgs(call, ACQUIRE_ANY, pool!.keys, ...args);
}

function isNumbers(reply: RawReply, length: number): boolean {
  return Array.isArray(reply) && reply.length === length &&
    reply.slice(0, POSITION_LENGTH - 1).every((part) => typeof part === "number");
}

/** A grant replies 1, and with fencing tokens the counter, which is a time in microseconds. */
function grantOf(reply: RawReply): Outcome | undefined {
  if (reply === 1) return "granted";
  return Number.isSafeInteger(reply) && reply as number > 1 ? "counted" : undefined;
}

/** Which keys of the pool are free, if a denial says so: see {@linkcode QuorumRequest.deny}. */
export function freeKeys(reply: RawReply): number | undefined {
  const [free] = Array.isArray(reply) ? reply : [];
  return typeof free === "number" ? free : undefined;
}

/** The place in the queues of a pool that a node replied. */
export function poolPosition(reply: RawReply): QueuePosition {
  const [free, pttl, ahead, length, score, timeUs, foreign, kept, patienceMs] = reply as number[];
  const ticketId = String(textReply((reply as RawReply[])[POSITION_LENGTH - 1]));
  return {
    remainingMs: pttl === -1 ? Infinity : Math.max(pttl + 1, 0),
    ahead,
    length,
    score,
    timeMs: timeUs / 1_000,
    foreign: foreign === 1,
    free,
    kept: kept - 1,
    first: kept > 0 ? { ticketId, patienceMs } : undefined,
  };
}
