/**
 * The commands about locks: what a request asks, as the bytes of one command.
 *
 * A single key, which is what most locks have, is written straight into the slab of the encoder.
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
import { ACQUIRE_COUNTED, ACQUIRE_FENCED, RAISE } from "./scripts/fencing.ts";
import { EXTEND } from "./scripts/extend.ts";
import { LEAVE } from "./scripts/queue.ts";
import { RELEASE, RELEASE_QUEUED } from "./scripts/release.ts";
import type { Script } from "./scripts/script.ts";

/** What a command does. It decides which script it calls, and what its reply may mean. */
export const OPERATION = {
  /** Sets a single key, by a plain `SET NX PX`. */
  set: 0,
  /** Sets several keys. */
  acquire: 1,
  /** Sets one key or several, and counts. */
  count: 2,
  /** Sets the keys, or puts the ticket in the queue. */
  queue: 3,
  /** The same, and counts. */
  queueCount: 4,
  /** Gives the keys a new TTL. */
  extend: 5,
  /** Raises counters. */
  raise: 6,
  /** Deletes the keys. */
  release: 7,
  /** The same for a release that did not reach the node before; nobody reads the reply. */
  pendingRelease: 8,
  /** Takes a ticket out of the queue; nobody reads the reply. */
  leave: 9,
} as const;

/** One of {@linkcode OPERATION}. */
export type Operation = typeof OPERATION[keyof typeof OPERATION];

/** A ticket that leaves the queue. */
export interface QueueLeave {
  /** The keys that it waited for. */
  readonly keys: readonly string[];
  /** The ticket. */
  readonly ticketId: string;
}

/** What a release needs of a request. */
export type Release = Pick<LockRequest, "keys" | "value" | "ticket" | "keepsTicket">;

/** A priority as an argument of the script. */
const PRIORITIES: Readonly<Record<QueuePriority, string>> = { "in-order": "0", overdue: "1" };

const SET_HEAD = /* @__PURE__ */ encodeHead(6, "SET");
const SET_TAIL = /* @__PURE__ */ encodeConstant("$2\r\nNX\r\n$2\r\nPX\r\n");
const COUNTED_HEAD = /* @__PURE__ */ encodeScriptHead(ACQUIRE_COUNTED, 4);
const EXTEND_HEAD = /* @__PURE__ */ encodeScriptHead(EXTEND, 3);
const RELEASE_HEAD = /* @__PURE__ */ encodeScriptHead(RELEASE, 2);
/** In place of a ticket and its score if the caller does not queue. */
const NONE = "";
/** Room for the constant parts, the value and the TTL of any command about a single key. */
const SINGLE_KEY_BYTES = 256;

/** The constant head of a script's call with one key, up to that key. */
function encodeScriptHead({ sha1 }: Script, argumentCount: number): Uint8Array {
  return encodeHead(3 + argumentCount, "EVALSHA", sha1, "1");
}

/** How a script is called: by its digest, or with its source if the server may not know it. */
export type Call = "EVALSHA" | "EVAL";

/** Whether an operation sets keys if it is granted. */
export function isAcquire(operation: number): boolean {
  return operation <= OPERATION.queueCount;
}

/** Whether the encoded command serves all nodes: not if some put the ticket in a queue and others cannot. */
export function isShared(operation: number, { ticket }: LockRequest): boolean {
  if (operation >= OPERATION.pendingRelease) return false;
  return operation >= OPERATION.queue || ticket === undefined;
}

/**
 * How a request for a lock is put to a node.
 *
 * @param request The request.
 * @param queues Whether the node is to put the request's ticket in the queue if it denies.
 */
export function acquireOperation({ keys, counterFloor }: LockRequest, queues: boolean): Operation {
  if (queues) return counterFloor === undefined ? OPERATION.queue : OPERATION.queueCount;
  if (counterFloor !== undefined) return OPERATION.count;
  return keys.length > 1 ? OPERATION.acquire : OPERATION.set;
}

/**
 * The script of an operation.
 *
 * @param operation One of {@linkcode OPERATION}.
 * @param content What it is about.
 * @returns The script; `undefined` for a plain command.
 */
export function scriptOf(
  operation: number,
  { keys, ticket }: { keys: readonly string[]; ticket?: QueueTicket | undefined },
): Script | undefined {
  switch (operation) {
    case OPERATION.set:
      return undefined;
    case OPERATION.acquire:
      return ACQUIRE_ALL;
    case OPERATION.count:
      return keys.length > 1 ? ACQUIRE_FENCED : ACQUIRE_COUNTED;
    case OPERATION.queue:
      return ACQUIRE_OR_WAIT;
    case OPERATION.queueCount:
      return ACQUIRE_FENCED;
    case OPERATION.extend:
      return EXTEND;
    case OPERATION.raise:
      return RAISE;
    case OPERATION.leave:
      return LEAVE;
    default:
      return keys.length > 1 || ticket ? RELEASE_QUEUED : RELEASE;
  }
}

/**
 * The command of an operation.
 *
 * @param operation One of {@linkcode OPERATION}.
 * @param content A {@linkcode LockRequest}, or the {@linkcode Release} or {@linkcode QueueLeave} of these operations.
 * @param call How the script is called.
 */
export function encodeOperation(operation: number, content: unknown, call: Call): Uint8Array {
  const request = content as LockRequest;
  switch (operation) {
    case OPERATION.queue:
    case OPERATION.queueCount:
      return encodeAcquireOrWait(request, request.ticket!, call);
    case OPERATION.extend:
      return encodeExtend(request, call);
    case OPERATION.raise:
      return encodeRaise(request, call);
    case OPERATION.release:
    case OPERATION.pendingRelease:
      return encodeRelease(request, call);
    case OPERATION.leave:
      return encodeLeave(content as QueueLeave, call);
    default:
      return encodeAcquire(request, call);
  }
}

/** Sets the keys if all are missing. A single key takes no script. */
export function encodeAcquire(request: LockRequest, call: Call = "EVALSHA"): Uint8Array {
  const { keys, value, ttlMs, counterFloor } = request;
  if (counterFloor !== undefined) return encodeCounted(request, counterFloor, call);
  if (keys.length > 1) return encodeCall(call, ACQUIRE_ALL, keys, [value, String(ttlMs)]);
  return singleKey(keys[0], SET_HEAD).text(value).constant(SET_TAIL).text(String(ttlMs)).end();
}

/** Sets the keys if all are missing, and counts. */
function encodeCounted({ keys, value, ttlMs }: LockRequest, hint: number, call: Call): Uint8Array {
  if (keys.length > 1) {
    const args = [value, String(ttlMs), NONE, PRIORITIES.overdue, NONE, String(hint)];
    return encodeCall(call, ACQUIRE_FENCED, keys, args);
  }
  if (call === "EVAL") {
    return encodeCall(call, ACQUIRE_COUNTED, keys, [value, String(ttlMs), String(hint)]);
  }
  return singleKey(keys[0], COUNTED_HEAD)
    .text(value).text(String(ttlMs)).text(String(hint)).end();
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

/** Gives the keys a new TTL. */
export function encodeExtend(request: LockRequest, call: Call = "EVALSHA"): Uint8Array {
  const { keys, value, ttlMs } = request;
  if (keys.length > 1 || call === "EVAL") {
    return encodeCall(call, EXTEND, keys, [value, String(ttlMs)]);
  }
  return singleKey(keys[0], EXTEND_HEAD).text(value).text(String(ttlMs)).end();
}

/** Raises the counters of the keys to the request's token. */
export function encodeRaise(
  { keys, value, counterFloor }: LockRequest,
  call: Call = "EVALSHA",
): Uint8Array {
  return encodeCall(call, RAISE, keys, [value, String(counterFloor)]);
}

/** Deletes the keys, takes the request's ticket out of their queues or puts it back, and notifies the next waiter. */
export function encodeRelease(
  { keys, value, ticket, keepsTicket }: Release,
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
export function encodeLeave({ keys, ticketId }: QueueLeave, call: Call = "EVALSHA"): Uint8Array {
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
