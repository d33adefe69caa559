/**
 * The commands about locks: what a ballot asks, as the bytes of one command.
 *
 * A single key, which is what most locks have, is laid straight into the slab of the encoder.
 *
 * @module
 */
import type { LockRequest } from "../quorum/lock_node.ts";
import type { QueuePriority, QueueTicket } from "../quorum/queue_ticket.ts";
import {
  bytesMax,
  CommandWriter,
  encodeCommand,
  encodeConstant,
  encodeHead,
} from "../redis/encoder.ts";
import { ACQUIRE_ALL, ACQUIRE_OR_WAIT } from "./scripts/acquire.ts";
import {
  ACQUIRE_COUNTED,
  ACQUIRE_FENCED,
  counterKey,
  EXTEND_FENCED,
  RAISE,
} from "./scripts/fencing.ts";
import { EXTEND } from "./scripts/extend.ts";
import { LEAVE } from "./scripts/queue.ts";
import { RELEASE, RELEASE_QUEUED } from "./scripts/release.ts";
import type { Script } from "./scripts/script.ts";

/** A priority as an argument of the script. */
const PRIORITIES: Readonly<Record<QueuePriority, string>> = { "in-order": "0", overdue: "1" };

const SET_HEAD = /* @__PURE__ */ encodeHead(6, "SET");
const SET_TAIL = /* @__PURE__ */ encodeConstant("$2\r\nNX\r\n$2\r\nPX\r\n");
const COUNTED_HEAD = /* @__PURE__ */ encodeScriptHead(ACQUIRE_COUNTED, 5, "2");
const EXTEND_HEAD = /* @__PURE__ */ encodeScriptHead(EXTEND, 3, "1");
const RELEASE_HEAD = /* @__PURE__ */ encodeScriptHead(RELEASE, 2, "1");
/** Stands for a ticket and its score if there is none. */
const NONE = "";
/** Room for the constant parts, the value and the TTL of any command about a single key. */
const SINGLE_KEY_BYTES = 256;

/**
 * The constant head of a script's call, up to its number of keys or beyond.
 *
 * @param script Which.
 * @param argumentCount How many keys and arguments it is given in all.
 * @param words The number of keys, and those of them that never change.
 */
export function encodeScriptHead(
  { sha1 }: Script,
  argumentCount: number,
  ...words: [keyCount: string, ...keys: string[]]
): Uint8Array {
  return encodeHead(3 + argumentCount, "EVALSHA", sha1, ...words);
}

/** How a script is called: by its name, or with its source where the server does not know it. */
export type Call = "EVALSHA" | "EVAL";

/** Sets the keys if none is there. A single key takes no script. */
export function encodeAcquire(request: LockRequest, call: Call = "EVALSHA"): Uint8Array {
  const { keys, value, ttlMs, counterFloor } = request;
  if (counterFloor !== undefined) return encodeCounted(request, counterFloor, call);
  if (keys.length > 1) return encodeCall(call, ACQUIRE_ALL, keys, [value, String(ttlMs)]);
  return singleKey(keys[0], SET_HEAD).text(value).constant(SET_TAIL).text(String(ttlMs)).end();
}

/** Sets the keys if none is there, and counts. */
function encodeCounted({ keys, value, ttlMs }: LockRequest, fence: number, call: Call): Uint8Array {
  if (keys.length > 1) {
    const args = [value, String(ttlMs), NONE, PRIORITIES.overdue, NONE, String(fence)];
    return encodeCall(call, ACQUIRE_FENCED, keys, args);
  }
  const [key] = keys;
  const counter = counterKey(key);
  if (call === "EVAL") {
    return encodeCall(call, ACQUIRE_COUNTED, [key, counter], [value, String(ttlMs), String(fence)]);
  }
  return new CommandWriter(bytesMax(key) + bytesMax(counter) + SINGLE_KEY_BYTES)
    .constant(COUNTED_HEAD).text(key).text(counter)
    .text(value).text(String(ttlMs)).text(String(fence)).end();
}

/** Sets the keys, or puts the request's ticket in their queues. */
export function encodeAcquireOrWait(
  { keys, value, ttlMs, counterFloor }: LockRequest,
  { ticketId, priority, score }: QueueTicket,
  call: Call = "EVALSHA",
): Uint8Array {
  const args = [value, String(ttlMs), ticketId, PRIORITIES[priority], String(score)];
  if (counterFloor !== undefined) {
    return encodeCall(call, ACQUIRE_FENCED, keys, [...args, String(counterFloor)]);
  }
  return encodeCall(call, ACQUIRE_OR_WAIT, keys, args);
}

/** Gives the keys a new life. */
export function encodeExtend(request: LockRequest, call: Call = "EVALSHA"): Uint8Array {
  const { keys, value, ttlMs, counterFloor } = request;
  if (counterFloor !== undefined) {
    return encodeCall(call, EXTEND_FENCED, keys, [value, String(ttlMs), String(counterFloor)]);
  }
  if (keys.length > 1 || call === "EVAL") {
    return encodeCall(call, EXTEND, keys, [value, String(ttlMs)]);
  }
  return singleKey(keys[0], EXTEND_HEAD).text(value).text(String(ttlMs)).end();
}

/** Raises the counters of the keys to the ballot's token. */
export function encodeRaise(
  { keys, value, counterFloor }: LockRequest,
  call: Call = "EVALSHA",
): Uint8Array {
  return encodeCall(call, RAISE, keys, [value, String(counterFloor)]);
}

/** Deletes the keys, takes the request's ticket out of their queues or puts it back, and notifies the next waiter. */
export function encodeRelease(
  { keys, value, ticket, keepsTicket }: Pick<
    LockRequest,
    "keys" | "value" | "ticket" | "keepsTicket"
  >,
  call: Call = "EVALSHA",
): Uint8Array {
  if (keys.length > 1 || ticket) {
    const args = [value];
    if (ticket) args.push(ticket.ticketId);
    if (ticket && keepsTicket) args.push(String(ticket.score));
    return encodeCall(call, RELEASE_QUEUED, keys, args);
  }
  if (call === "EVAL") return encodeCall(call, RELEASE, keys, [value]);
  return singleKey(keys[0], RELEASE_HEAD).text(value).end();
}

/** Takes a ticket out of the queues for the keys. */
export function encodeLeave(
  keys: readonly string[],
  ticketId: string,
  call: Call = "EVALSHA",
): Uint8Array {
  return encodeCall(call, LEAVE, keys, [ticketId]);
}

function singleKey(key: string, head: Uint8Array): CommandWriter {
  return new CommandWriter(bytesMax(key) + SINGLE_KEY_BYTES).constant(head).text(key);
}

function encodeCall(
  call: Call,
  { sha1, source }: Script,
  keys: readonly string[],
  args: readonly string[],
): Uint8Array {
  const script = call === "EVAL" ? source : sha1;
  return encodeCommand([call, script, keys.length, ...keys, ...args]);
}
