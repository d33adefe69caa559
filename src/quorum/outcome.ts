/**
 * How a node answers a request, and which vote that is.
 *
 * @module
 */
import type { Vote } from "../vote.ts";
import type { QueuePosition } from "./queue_ticket.ts";

/** It has not answered, and still has time to. */
export const PENDING = 0;
/**
 * It did what was asked. The detail, with fencing tokens: its counter for the keys, after the
 * request.
 */
export const GRANTED = 1;
/** It released the keys, and others wait for them. */
export const CONTENDED = 2;
/**
 * It granted, but its counter may be an old one. The detail: the value to which counters must be
 * raised at least.
 */
export const OUTDATED = 3;
/**
 * A key has another value, or what was to be released is gone. An acquisition has set nothing. The
 * detail, for any one of several keys: which of them are free, as the sum of 2 to the power of
 * their indexes.
 */
export const DENIED = 4;
/**
 * Some keys are missing, and none has another value. Counts as a denial; the client may ask to set
 * the keys again.
 */
export const MISSING = 5;
/**
 * It set nothing, and has put the ticket in the queue. The detail: the {@linkcode QueuePosition}.
 */
export const QUEUED = 6;
/**
 * It failed. The detail: the error. If that has `permanent: true`, as a {@linkcode RedisError}
 * about wrong credentials has, no later attempt can succeed: a call ends at once if more than N −
 * quorum nodes fail so.
 */
export const FAILED = 7;
/** The same, and it is certain that the store got nothing of the request. */
export const UNSENT = 8;
/** It did not answer in time. */
export const TIMED_OUT = 9;
/** Its vote does not count, because it may have lost keys less than the restart guard ago. */
export const QUARANTINED = 10;

/** One of these. */
export type Outcome = number;
/** What comes with an outcome. */
export type Detail = number | QueuePosition | Error;

/** The vote that each of these is; the first is no vote yet. */
export const VOTE_BY_OUTCOME: readonly (Vote["outcome"] | undefined)[] = [
  undefined,
  "granted",
  "granted",
  "granted",
  "denied",
  "denied",
  "denied",
  "failed",
  "failed",
  "timed-out",
  "quarantined",
];

/** Whether something is a counter of fencing tokens. */
export function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) > 0;
}
