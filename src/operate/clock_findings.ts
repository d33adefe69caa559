/**
 * Findings about clocks: differences between the nodes, and from this process.
 *
 * @module
 */
import type { Finding, NodeHealth } from "./report.ts";
import type { Settings } from "../options.ts";
import { driftMs } from "../time/validity.ts";

const ADVICE = "Run NTP on all machines, and let it slew clocks";

/** A node whose clock is known. */
type WithClock = NodeHealth & { readonly clockOffsetMs: number };

/**
 * Compares the clocks of the nodes with that of the node in the middle, and this one with the
 * process's. A difference that the round trips may explain is no finding.
 */
export function clockFindings(
  nodes: readonly NodeHealth[],
  { ttlMs, driftFactor }: Settings,
): Finding[] {
  const timed = nodes.filter((node): node is WithClock => node.clockOffsetMs !== undefined);
  if (timed.length === 0) return [];
  const middle = middleOf(timed);
  const allowanceMs = driftMs(ttlMs, driftFactor);
  const compare = (
    code: Finding["code"],
    name: string | undefined,
    aheadMs: number,
    roundTripsMs: number,
  ): Finding[] => {
    if (Math.abs(aheadMs) - roundTripsMs / 2 <= allowanceMs) return [];
    const difference = `${Math.abs(Math.round(aheadMs))} ms ${aheadMs > 0 ? "ahead of" : "behind"}`;
    return [{
      code,
      severity: "warning",
      nodes: name === undefined ? [] : [name],
      message: `The clock of ${name ?? "this process"} is ${difference} that of ${middle.name}; ` +
        `the drift allowance is ${allowanceMs} ms`,
      advice: ADVICE,
    }];
  };
  const { clockOffsetMs: middleMs, roundTripMs: ownMs = 0 } = middle;
  return [
    ...timed.flatMap(({ name, clockOffsetMs, roundTripMs = 0 }) =>
      compare("NODE_CLOCK_APART", name, clockOffsetMs - middleMs, roundTripMs + ownMs)
    ),
    ...compare("CLIENT_CLOCK_APART", undefined, -middleMs, ownMs),
  ];
}

/**
 * The node with the median clock; with an even number, that of the two which is closer to this
 * process's clock.
 */
function middleOf(timed: readonly WithClock[]): WithClock {
  const sorted = [...timed].sort((a, b) => a.clockOffsetMs - b.clockOffsetMs);
  const lower = sorted[(sorted.length - 1) >> 1];
  const upper = sorted[sorted.length >> 1];
  return Math.abs(lower.clockOffsetMs) <= Math.abs(upper.clockOffsetMs) ? lower : upper;
}
