/**
 * What a node's reply means. The command that it answers decides that; any other reply is `undefined`.
 *
 * @module
 */
import type { QueuePosition } from "../quorum/queue_ticket.ts";
import type { RawReply } from "../redis/reply.ts";
import { OPERATION } from "./commands.ts";

/**
 * What a node did: `counted` grants with the counter that it replied, `missing` found no other's key but not all of
 * ours, `contended` released while others wait.
 */
export type Outcome = "granted" | "counted" | "denied" | "missing" | "queued" | "contended";

/**
 * The outcome of a command about a lock.
 *
 * @param operation What the command does, one of {@linkcode OPERATION}.
 * @param reply Its reply, which is no error.
 * @returns The outcome, or `undefined` if no such command is answered like this.
 */
export function outcomeOf(operation: number, reply: RawReply): Outcome | undefined {
  switch (operation) {
    case OPERATION.set:
      return reply === "OK" ? "granted" : reply === null ? "denied" : undefined;
    case OPERATION.acquire:
      return ofInteger(reply, "denied", "granted");
    case OPERATION.count:
    case OPERATION.raise:
      return reply === 0 ? "denied" : counted(reply);
    case OPERATION.queue:
      return isQueuePosition(reply) ? "queued" : reply === 1 ? "granted" : undefined;
    case OPERATION.queueCount:
      return isQueuePosition(reply) ? "queued" : counted(reply);
    case OPERATION.extend:
      // mutation: missing-key-counts-as-extended
      return ofInteger(reply, "denied", "granted", "missing");
    case OPERATION.release:
      return ofInteger(reply, "denied", "granted", undefined, "contended");
    default:
      return undefined;
  }
}

/**
 * The place in the queue that a node replied.
 *
 * @param reply The reply of {@linkcode ACQUIRE_OR_WAIT}.
 */
export function queuePosition(
  [pttl, ahead, length, score, timeUs]: readonly number[],
): QueuePosition {
  // PTTL replies 0 in the last millisecond of a key, and -2 for a key that is missing.
  const remainingMs = pttl === -1 ? Infinity : Math.max(pttl + 1, 0);
  return { remainingMs, ahead, length, score, timeMs: timeUs / 1_000 };
}

function isQueuePosition(reply: RawReply): reply is number[] {
  return Array.isArray(reply) && reply.length === 5 &&
    reply.every((part) => typeof part === "number");
}

function ofInteger(reply: RawReply, ...outcomes: (Outcome | undefined)[]): Outcome | undefined {
  return typeof reply === "number" ? outcomes[reply] : undefined;
}

function counted(reply: RawReply): Outcome | undefined {
  return Number.isSafeInteger(reply) && reply as number > 0 ? "counted" : undefined;
}
