/**
 * Findings about clocks: differences between the nodes, and from this process.
 *
 * @module
 */
import { namesOf, type Nodes } from "./finding.ts";
import type { Finding, NodeHealth } from "./report.ts";
import type { Settings } from "../options.ts";
import { driftMs } from "../time/validity.ts";

const ADVICE = "Run NTP on all machines, and let it slew clocks instead of stepping them";

/** A node whose clock is known. */
type WithClock = NodeHealth & { readonly clockOffsetMs: number };

/**
 * Compares the clocks of the nodes with that of the node in the middle, and this one with the process's. A difference
 * that the round trips may explain is no finding.
 */
export function clockFindings(nodes: Nodes, { ttlMs, driftFactor }: Settings): Finding[] {
  const timed = nodes.filter((node): node is WithClock => node.clockOffsetMs !== undefined);
  if (timed.length === 0) return [];
  const allowanceMs = driftMs(ttlMs, driftFactor);
  const allowance = `the drift allowance is ${allowanceMs} ms`;
  const middle = middleOf(timed);
  const aheadOf = (ms: number) => {
    const direction = ms > 0 ? "ahead of" : "behind";
    return `${Math.abs(Math.round(ms))} ms ${direction} ${middle.name}`;
  };
  const strays = timed.filter((node) => {
    const uncertaintyMs = ((node.roundTripMs ?? 0) + (middle.roundTripMs ?? 0)) / 2;
    return Math.abs(node.clockOffsetMs - middle.clockOffsetMs) - uncertaintyMs > allowanceMs;
  });
  const apart = strays.map(({ name, clockOffsetMs }) =>
    `${name} is ${aheadOf(clockOffsetMs - middle.clockOffsetMs)}`
  );
  const nodeClocks: Finding = {
    code: "NODE_CLOCKS_APART",
    severity: "warning",
    nodes: namesOf(strays),
    message: `Clocks differ: ${apart.join(", ")}; ${allowance}`,
    advice: ADVICE,
  };
  const clientClock: Finding = {
    code: "CLIENT_CLOCK_APART",
    severity: "warning",
    nodes: [],
    message: `This process's clock is ${aheadOf(-middle.clockOffsetMs)}; ${allowance}`,
    advice: ADVICE,
  };
  const uncertaintyMs = (middle.roundTripMs ?? 0) / 2;
  return [
    ...(strays.length > 0 ? [nodeClocks] : []),
    ...(Math.abs(middle.clockOffsetMs) - uncertaintyMs > allowanceMs ? [clientClock] : []),
  ];
}

/** The node with the median clock; with an even number, that of the two which is closer to this process's clock. */
function middleOf(timed: readonly WithClock[]): WithClock {
  const sorted = [...timed].sort((a, b) => a.clockOffsetMs - b.clockOffsetMs);
  const lower = sorted[(sorted.length - 1) >> 1];
  const upper = sorted[sorted.length >> 1];
  return Math.abs(lower.clockOffsetMs) <= Math.abs(upper.clockOffsetMs) ? lower : upper;
}
