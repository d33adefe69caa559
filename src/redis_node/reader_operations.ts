/**
 * The operations of locks in shared mode.
 *
 * @module
 */
import type { QuorumRequest } from "../quorum/quorum_node.ts";
import {
  type Call,
  callArgs,
  type Operation,
  outcomeOf,
  type Release,
  RELEASE_OUTCOMES,
} from "./operation.ts";
import { ACQUIRE_OUTCOMES, grantOrPosition, releaseArgs, ticketArgs } from "./queue_operations.ts";
import { ACQUIRE_SHARED, EXTEND_SHARED, RELEASE_SHARED } from "./scripts/readers.ts";

/** In place of a ticket if the caller does not queue. */
const NONE = "";

/** Makes the value a reader of the keys. */
export const SHARE_KEYS: Operation = {
  kind: "acquire",
  script: ACQUIRE_SHARED,
  args: (request, call) => acquireArgs(request, call, ...(request.entersAtOnce ? [] : [NONE])),
  read: (reply) => outcomeOf(reply, ACQUIRE_OUTCOMES),
};

/** The same, or puts the request's ticket in the queues of the keys. */
export const SHARE_OR_QUEUE: Operation = {
  kind: "acquire",
  script: ACQUIRE_SHARED,
  queues: true,
  args: (request, call) => acquireArgs(request, call, ...ticketArgs(request.ticket!)),
  read: grantOrPosition,
};

/** Gives the reader a new deadline. */
export const EXTEND_READER: Operation = {
  kind: "extend",
  script: EXTEND_SHARED,
  args: ({ keys, value, ttlMs, shortens }, call) =>
    callArgs(call, EXTEND_SHARED, keys, value, String(ttlMs), ...shortens ? ["1"] : []),
  read: (reply) => outcomeOf(reply, ["denied", "granted", "missing"]),
};

/** Ends the reader, and takes the request's ticket out of the queues or puts it back. */
export const RELEASE_READER: Operation<Release> = {
  kind: "release",
  script: RELEASE_SHARED,
  args: (release, call) => releaseArgs(RELEASE_SHARED, release, call),
  read: (reply) => outcomeOf(reply, RELEASE_OUTCOMES),
};

function acquireArgs(
  { keys, value, ttlMs }: QuorumRequest,
  call: Call,
  ...ticket: readonly string[]
): string[] {
  return callArgs(call, ACQUIRE_SHARED, keys, value, String(ttlMs), ...ticket);
}
