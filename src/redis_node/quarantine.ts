/**
 * When a node's grants do not count, because it may have lost locks that are still held.
 *
 * A node that comes back without its keys would grant a held lock to a second client. So its grants
 * do not count until every lock that it may have lost has expired: for the *guard*, which must be
 * at least the longest TTL in use. Two things show that a node may have lost keys:
 *
 * - It was **restarted**. Its uptime shows that. It is asked for on each connection, ahead of the
 *   first command that could count, because a restart always breaks the connection. This also
 *   covers a server that came back with all keys but those of its last second. A server whose clock
 *   was set back below its start reports a negative uptime; it counts as just started. So does one
 *   whose run id has changed or cannot be read again, whatever its uptime, and one that does not
 *   reply to `INFO` for now. A server that has never let this client read it is judged by the other
 *   sign.
 * - It was **emptied** while it ran, or is another server. Its *creation marker* is missing then,
 *   or young: a key that was set once, with the node's own time, and does not expire. It is read
 *   *behind* the command that sets the lock's keys, in the same piece. Were it read ahead of that
 *   command, the node could lose both in between.
 *
 * **A marker that is no time in the past** is an error vote, and stays as it is. It may be an
 * application's key, and nothing of an application is overwritten. If it is a time in the future,
 * the node's clock was set back since, and no age can be had from it. An operator deletes it; then
 * it is set again, and the node counts after the guard.
 *
 * **What is not seen:** a restart behind a proxy that keeps the client's connection, unless the
 * keys are lost as well; and a clock that was set ahead after the server started, by a client that
 * was not connected before the restart: uptime and age are then too long by as much.
 *
 * **Extensions** do not count either. A lock that a quorum granted under the guard is exclusive as
 * long as a quorum of nodes that have lost nothing keep its key. A node that has lost its keys may
 * have granted another attempt just before, which is under way and may still find its quorum. Once
 * this lock's key is filled in there, the node looks like any other and would make up a quorum next
 * to the other attempt's. So it does not count until that attempt is over, which is what the guard
 * waits for. This costs no lock of a healthy cluster: a cluster that is young as a whole has
 * granted none, if the guard is on for all of its clients.
 *
 * **Fencing tokens.** A node that came back with all keys but those of its last second may have
 * counters that are below what it replied before. They are not counted until they have been raised:
 * see {@linkcode oldCountsBelow}.
 *
 * @module
 */

import { infoField } from "./info_field.ts";

/**
 * The key of a node's creation marker: since when it has lost nothing, in milliseconds by its own
 * clock.
 */
export const CREATED_KEY = "hasp:born";

/**
 * Start and uptime are whole seconds of the server's clock, so the uptime may be a second too long.
 */
const UPTIME_ERROR_MS = 1_000;
/**
 * How far a counter may be ahead of the node's clock, in milliseconds: by a client's hint, and one
 * microsecond a lock.
 */
const COUNTER_LEAD_MS_MAX = 61_000;

/** A time in which a node's grants do not count. */
export interface Quarantine {
  /** What shows that the node may have lost keys. */
  readonly reason: "restarted" | "emptied";
  /** Since when it cannot have lost anything more, by the client's monotonic clock. */
  readonly sinceMs: number;
  /** How much longer its grants do not count, in milliseconds. */
  readonly remainingMs: number;
}

/**
 * When a server was started at the latest.
 *
 * @param info What it replied to `INFO server`.
 * @param receivedAtMs When the reply came, by the monotonic clock.
 * @returns By the monotonic clock. `-Infinity` if the reply has no uptime; the moment of the reply
 * if its uptime is negative or not a number.
 */
export function restartedAtMs(info: string, receivedAtMs: number): number {
  const uptime = infoField(info, "uptime_in_seconds");
  if (uptime === undefined) return -Infinity;
  const uptimeMs = /^\d+$/u.test(uptime) ? Number(uptime) * 1_000 : 0;
  // mutation: restarted-node-counts
  return receivedAtMs - uptimeMs + UPTIME_ERROR_MS;
}

/**
 * Whether a node is in quarantine.
 *
 * @param guardMs How long a node's grants do not count after it may have lost keys, in
 * milliseconds.
 * @param nowMs The monotonic clock when the node answered.
 * @param restartedMs When it was restarted, by the same clock; `-Infinity` if that is not known.
 * @param ageMs The age of its creation marker, in milliseconds.
 */
export function quarantineOf(
  guardMs: number,
  nowMs: number,
  restartedMs: number,
  ageMs: number,
): Quarantine | undefined {
  const createdMs = nowMs - ageMs;
  // mutation: emptied-node-counts
  const sinceMs = Math.max(restartedMs, createdMs);
  // in this order: exact, if it was emptied just now
  const remainingMs = guardMs - (nowMs - sinceMs);
  if (remainingMs <= 0) return undefined;
  return { reason: restartedMs >= createdMs ? "restarted" : "emptied", sinceMs, remainingMs };
}

/**
 * What every counter of fencing tokens is below that a node had before its restart. The node came
 * back with what was on its disk, so its counters may be below what it replied; until they are at
 * least this they do not count. A counter is ahead of the node's clock by {@linkcode
 * COUNTER_LEAD_MS_MAX} at the most. No client's clock decides this, so one that is wrong cannot
 * raise counters.
 *
 * @param timeMs The node's clock.
 * @param uptimeMs How long it has been running, in milliseconds; `Infinity` if that is not known.
 * @returns Microseconds; `-Infinity` if the uptime is not known.
 */
export function oldCountsBelow(timeMs: number, uptimeMs: number): number {
  return Math.ceil((timeMs - uptimeMs + COUNTER_LEAD_MS_MAX) * 1_000);
}
