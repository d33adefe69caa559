/**
 * The operations that count fencing tokens.
 *
 * @module
 */
import type { RawReply } from "../redis/reply.ts";
import {
  type Call,
  encodeCall,
  encodeScriptHead,
  type Operation,
  type Outcome,
  singleKey,
} from "./operation.ts";
import { isQueuePosition, PRIORITIES } from "./queue_operations.ts";
import type { LockRequest } from "../quorum/lock_node.ts";
import { scriptError } from "./script_error.ts";
import { ACQUIRE_COUNTED, ACQUIRE_FENCED, RAISE } from "./scripts/fencing.ts";

/** In place of a ticket and its score if the caller does not queue. */
const NONE = "";
const COUNTED_HEAD = /* @__PURE__ */ encodeScriptHead(ACQUIRE_COUNTED, 4);

/** Sets a single key if it is missing, and counts. */
export const COUNT_KEY: Operation = {
  code: 6,
  kind: "acquire",
  script: ACQUIRE_COUNTED,
  explain: scriptError,
  encode({ keys, value, ttlMs, counterFloor }, call) {
    const args = [value, String(ttlMs), String(counterFloor)] as const;
    if (call === "EVAL") return encodeCall(call, ACQUIRE_COUNTED, keys, args);
    return singleKey(keys[0], COUNTED_HEAD).text(args[0]).text(args[1]).text(args[2]).end();
  },
  read: countOrDenial,
};

/** Sets several keys if all are missing, and counts. */
export const COUNT_KEYS: Operation = {
  code: 7,
  kind: "acquire",
  script: ACQUIRE_FENCED,
  explain: scriptError,
  encode: (request, call) => encodeFenced(request, call, NONE, PRIORITIES.overdue, NONE),
  read: countOrDenial,
};

/** Sets the keys and counts, or puts the request's ticket in their queues. */
export const COUNT_OR_QUEUE: Operation = {
  code: 8,
  kind: "acquire",
  script: ACQUIRE_FENCED,
  explain: scriptError,
  queues: true,
  encode(request, call) {
    const { ticketId, priority, score } = request.ticket!;
    return encodeFenced(request, call, ticketId, PRIORITIES[priority], String(score));
  },
  read: (reply) => isQueuePosition(reply) ? "queued" : counted(reply),
};

/** Raises the counters of the keys to the request's token. */
export const RAISE_COUNTERS: Operation = {
  code: 9,
  kind: "raise",
  script: RAISE,
  explain: scriptError,
  encode: ({ keys, value, counterFloor }, call) =>
    encodeCall(call, RAISE, keys, [value, String(counterFloor)]),
  read: countOrDenial,
};

function encodeFenced(
  { keys, value, ttlMs, counterFloor }: LockRequest,
  call: Call,
  ...ticket: readonly string[]
): Uint8Array {
  const args = [value, String(ttlMs), ...ticket, String(counterFloor)];
  return encodeCall(call, ACQUIRE_FENCED, keys, args);
}

function countOrDenial(reply: RawReply): Outcome | undefined {
  return reply === 0 ? "denied" : counted(reply);
}

function counted(reply: RawReply): Outcome | undefined {
  return Number.isSafeInteger(reply) && reply as number > 0 ? "counted" : undefined;
}
