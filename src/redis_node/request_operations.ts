/**
 * Which operation a request is for a node on Redis.
 *
 * @module
 */
import type { QuorumRequest } from "../quorum/quorum_node.ts";
import { POOL_SUFFIX } from "../quorum/queue_ticket.ts";
import { GIVE_BACK_KEYS } from "./adopt_operations.ts";
import { COUNT_KEY, COUNT_KEYS, COUNT_OR_QUEUE } from "./count_operations.ts";
import { EXTEND_KEYS } from "./extend_operation.ts";
import { type Operation, type Release, RELEASE_KEY, SET_KEY } from "./operation.ts";
import { LEAVE_POOL, RELEASE_ANY_KEY, SET_ANY, SET_ANY_OR_QUEUE } from "./pool_operations.ts";
import { LEAVE_QUEUE, RELEASE_KEYS, SET_KEYS, SET_OR_QUEUE } from "./queue_operations.ts";
import { EXTEND_READER, RELEASE_READER, SHARE_KEYS, SHARE_OR_QUEUE } from "./reader_operations.ts";

/** How a request for a lock is put to a node; `queues` if that is to put the request's ticket in the queue. */
export function acquireOperation(
  { keys, counterFloor, pool, mode }: QuorumRequest,
  queues: boolean,
): Operation {
  if (mode) return queues ? SHARE_OR_QUEUE : SHARE_KEYS;
  if (pool) return queues ? SET_ANY_OR_QUEUE : SET_ANY;
  if (counterFloor !== undefined) {
    return queues ? COUNT_OR_QUEUE : keys.length > 1 ? COUNT_KEYS : COUNT_KEY;
  }
  if (queues) return SET_OR_QUEUE;
  return keys.length > 1 ? SET_KEYS : SET_KEY;
}

/** How an extension is put to a node. */
export function extendOperation({ mode }: QuorumRequest): Operation {
  return mode ? EXTEND_READER : EXTEND_KEYS;
}

/** How a ticket that leaves its queues is put to a node. */
export function leaveOperation(ticketId: string): Operation<Release> {
  return ticketId.endsWith(POOL_SUFFIX) ? LEAVE_POOL : LEAVE_QUEUE;
}

/** How a release is put to a node. */
export function releaseOperation(
  { keys, replaces, ticket, pool, mode }: Release,
): Operation<Release> {
  if (mode) return RELEASE_READER;
  if (replaces !== undefined) return GIVE_BACK_KEYS;
  if (pool && ticket) return RELEASE_ANY_KEY;
  return keys.length > 1 || ticket !== undefined ? RELEASE_KEYS : RELEASE_KEY;
}
