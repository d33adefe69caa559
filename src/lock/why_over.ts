/**
 * Why the validity of a lock has ended, if neither its nodes nor its holder ended it.
 *
 * @module
 */
import type { LockLostReason } from "../errors.ts";
import { nodeErrors, whyNoQuorum } from "../messages.ts";
import type { Round } from "../quorum/round.ts";
import type { TimerWheel } from "../time/timer_wheel.ts";

/**
 * The share of the validity from which on a delay counts as its end: holder and extensions have the
 * rest.
 */
const DELAY_FACTOR = 1 / 4;

/**
 * The reason for programs, and the same in detail.
 *
 * @param wheel Knows whether the process was delayed.
 * @param startMs When the validity began, by the continuous clock.
 * @param validityMs How long it was, in milliseconds.
 * @param extension The last extension, unless it has succeeded.
 */
export function whyOver(
  wheel: TimerWheel,
  startMs: number,
  validityMs: number,
  extension: Round | undefined,
): [reason: LockLostReason, cause: Error] {
  const { stoodMs, steppedMs } = wheel.delayedSince(startMs);
  const ended = "its validity has ended";
  if (Math.max(stoodMs, steppedMs) >= validityMs * DELAY_FACTOR) {
    const stepped = steppedMs > stoodMs;
    const why = stepped
      ? `the wall clock was stepped ahead by ${Math.round(steppedMs)} ms, or the machine slept`
      : `the process stood still for about ${Math.round(stoodMs)} ms`;
    return [stepped ? "clock-stepped" : "stalled", new Error(`${ended}, because ${why}`)];
  }
  if (!extension) return ["expired", new Error(ended)];
  const { votes, decision, nodeSet: { nodes } } = extension;
  const before = `${ended} before an extension succeeded`;
  if (decision === "granted") {
    const late = votes.filter(({ outcome }) => outcome === "granted");
    const names = late.map(({ node, elapsedMs }) => `${node} (${Math.round(elapsedMs)} ms)`);
    const cause = new Error(`${before}: too late were the answers of ${names.join(", ")}`);
    return ["answers-late", cause];
  }
  const why = whyNoQuorum("extend", votes, nodes.length);
  return ["extend-failed", new Error(`${before}: ${why}`, { cause: nodeErrors(votes) })];
}
