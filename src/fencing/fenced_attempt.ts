/**
 * An attempt at a lock with a fencing token: which number, and whether it is certain, is in `fencing.ts`.
 *
 * @module
 */
import { elapsedMs, type Instant } from "../time/clock.ts";
import { counterHint, judge } from "./token.ts";
import type { Settings } from "../options.ts";
import { askToAcquire, askToRaise, type Round } from "../quorum/round.ts";

/** Rounds that raise counters to the token, at the most: each is there because somebody else locked meanwhile. */
const RAISES_MAX = 8;

/**
 * Asks all nodes for the lock and has them count; then raises counters, until those of a quorum are the same. All of
 * the raising together may take as long as one answer: where counters cannot agree, the caller is not kept.
 *
 * @param round The attempt; its counts say what came of it.
 * @param settings The settings of the call.
 */
export async function askFenced(round: Round, settings: Settings): Promise<void> {
  const { signal, nodeTimeoutMs, validityMs } = settings;
  const { electorate } = round;
  const { nodes, quorum, wheel: { clock } } = electorate;
  round.fence = counterHint(round.wallMs, electorate.highestToken);
  const counts = round.counts = new Array<number | undefined>(nodes.length).fill(undefined);
  await round.ask(askToAcquire, Math.min(nodeTimeoutMs, validityMs), signal);
  let decided: Instant | undefined;
  for (let raises = 0; raises < RAISES_MAX && round.decision === "granted"; raises++) {
    const { token, settled } = judge(counts, quorum);
    if (settled || signal?.aborted || electorate.closed) return;
    const raising = round.follow();
    decided ??= raising;
    const leftMs = Math.min(
      nodeTimeoutMs - elapsedMs(clock, decided),
      validityMs - elapsedMs(clock, round),
    );
    if (leftMs <= 0) return;
    raising.fence = Math.max(token, round.fenceMin ?? 0);
    raising.counts = counts;
    await raising.ask(askToRaise, leftMs, signal);
    if (raising.deniedByMajority) return;
  }
}
