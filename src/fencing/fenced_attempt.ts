/**
 * Agreeing on the fencing token of an attempt that a quorum granted. `token.ts` defines which
 * number that is, and when it is certain.
 *
 * @module
 */
import { agreeOnToken } from "./token.ts";
import type { Settings } from "../options.ts";
import type { Round } from "../quorum/round.ts";

/**
 * The most rounds that raise counters to the token. Each further one is due to another lock in the
 * meantime.
 */
const RAISES_MAX = 8;

/**
 * Has nodes raise their counters until those of a quorum are equal. All raising together may take
 * as long as one reply, so that the caller does not wait for counters that cannot agree.
 *
 * @param round The attempt, for which the nodes have counted; its counts are the result, with the
 * token once a quorum has counted alike.
 * @param settings The settings of the call.
 */
export async function agreeByRaising(round: Round, settings: Settings): Promise<void> {
  const { signal, nodeTimeoutMs, validityMs } = settings;
  const { nodeSet, nodeSet: { wheel: { clock } } } = round;
  const counts = round.counts!;
  const untilMs = clock.monotonicMs() + nodeTimeoutMs;
  for (let raises = 0; round.decision === "granted"; raises++) {
    const { token, agreed } = agreeOnToken(counts.last, nodeSet.quorum);
    if (agreed) {
      counts.token = token;
      return;
    }
    if (raises === RAISES_MAX || signal?.aborted || nodeSet.closed) return;
    // mutation: raising-without-a-limit
    const leftMs = Math.min(untilMs - clock.monotonicMs(), validityMs - round.elapsedMs);
    if (leftMs <= 0) return;
    const raising = round.follow({ counterFloor: Math.max(token, counts.floor) });
    raising.counts = counts;
    await raising.ask("raiseCounters", leftMs, signal);
    if (raising.deniedByMajority) return;
  }
}
