/**
 * When a node's grants do not count, as it may have forgotten locks that still run.
 *
 * A node that comes back without its keys would hand a lock that is held to a second client. So what it grants counts
 * for nothing until every lock that it may have forgotten is over: for as long as the *guard*, which is to be at least
 * the longest TTL in use. That it forgot shows in two ways:
 *
 * - It was **restarted**. Its uptime tells, asked for on each connection ahead of the first command that could be
 *   counted; a restart always breaks the connection, so none goes unseen. This also catches a server that came back
 *   with its keys but for those of its last second.
 * - It was **emptied** while it ran, or is another server: its *birth key*, which was set once with its own time and
 *   does not expire, is missing, and then set anew, or is young. It is read *behind* the command that sets the lock's
 *   keys, in the same piece: were it read ahead of it, the node could lose both in between.
 *
 * **Extensions** count as little. A lock that a quorum granted under the guard is exclusive for as long as a quorum
 * of nodes that have not forgotten keep its key. A node that has forgotten may have granted another attempt just
 * before, which is still under way and may yet find its quorum. An extension has filled this lock's key in since, so
 * the node looks as good as any other, and it would make up a quorum next to the other attempt's. It must not be
 * counted until that attempt's time is over, which is what the guard waits for. This costs no lock of a healthy
 * cluster: one that is young as a whole has granted none, as long as the guard is on for all of its clients.
 *
 * **Fencing tokens.** A node that came back with its keys but for those of its last second may have counters that are
 * below what it gave. They are not looked at until something above has been counted: {@linkcode mayBeOld} tells.
 *
 * @module
 */

/** The key under which a node keeps since when it has not forgotten: milliseconds by its own clock. */
export const CREATED_KEY = "hasp:born";

/** Start and uptime are both whole seconds of the server's clock, so the uptime may be told a second too long. */
const UPTIME_ERROR_MS = 1_000;
/** By how much two readings of one cause may differ, in milliseconds. */
const SAME_CAUSE_MS = 2_000;

/** Why a node's grants do not count. */
export type QuarantineReason = "restarted" | "emptied";

/** A time in which a node's grants do not count. */
export interface Quarantine {
  /** What shows that it may have forgotten. */
  readonly reason: QuarantineReason;
  /** Since when it may have forgotten nothing more, by the client's monotonic clock. */
  readonly sinceMs: number;
  /** For how much longer its grants do not count, in milliseconds. */
  readonly remainingMs: number;
}

/**
 * When a server was started at the latest.
 *
 * @param info What it answered to `INFO server`.
 * @param receivedAtMs When the answer came, by the monotonic clock.
 * @returns By the monotonic clock; `-Infinity` where the answer does not tell.
 */
export function restartedAtMs(info: string, receivedAtMs: number): number {
  const uptime = /^uptime_in_seconds:(\d+)\r?$/mu.exec(info);
  return uptime ? receivedAtMs - Number(uptime[1]) * 1_000 + UPTIME_ERROR_MS : -Infinity;
}

/**
 * Whether a node is in quarantine.
 *
 * @param guardMs For how long a node's grants do not count after it may have forgotten, in milliseconds.
 * @param nowMs The monotonic clock when the node answered.
 * @param restartedMs When it was restarted, by the same clock; `-Infinity` where that is not known.
 * @param ageMs How old its birth key is, in milliseconds.
 */
export function quarantineOf(
  guardMs: number,
  nowMs: number,
  restartedMs: number,
  ageMs: number,
): Quarantine | undefined {
  const bornMs = nowMs - ageMs;
  const sinceMs = Math.max(restartedMs, bornMs);
  const remainingMs = sinceMs + guardMs - nowMs;
  if (remainingMs <= 0) return undefined;
  return { reason: restartedMs >= bornMs ? "restarted" : "emptied", sinceMs, remainingMs };
}

/**
 * Whether a counter of fencing tokens may be one that the node had before: it came back with what was on its disk, and
 * had given higher ones. Whatever was counted before the restart is below the clock of that time, as far as clocks are
 * no further apart than the guard is long.
 *
 * @param count What the node counted.
 * @param hintUs The {@linkcode counterHint} that it was asked with, in microseconds.
 * @param guardMs For how long the node was kept out, in milliseconds.
 * @param uptimeMs For how long it has been running, in milliseconds.
 */
export function mayBeOld(
  count: number,
  hintUs: number,
  guardMs: number,
  uptimeMs: number,
): boolean {
  return count < hintUs - (uptimeMs - guardMs) * 1_000;
}

/** Tells each cause of a quarantine once. */
export class Causes {
  #lastMs = -Infinity;

  /** Whether this one has not been seen yet. */
  isNew({ sinceMs }: Quarantine): boolean {
    if (sinceMs <= this.#lastMs + SAME_CAUSE_MS) return false;
    this.#lastMs = sinceMs;
    return true;
  }
}
