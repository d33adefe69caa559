/**
 * Scenarios about what nodes have once they are well again, and about nodes that refuse for a
 * while.
 */
import type { Fault, Op } from "./plan.ts";
import { all, expectHeldMs, expectLocks, scenario } from "./scenario.ts";
import type { Scenario } from "./scenario.ts";

const ALL = [0, 1, 2];

/** A client that cannot reach the last node from a time on, until all is mended. */
function away(client: number, atMs: number, forMs: number): Fault {
  const directions = ["requests", "replies"] as const;
  return { kind: "partition", clients: [client], nodes: [2], directions, atMs, forMs };
}

/** Works for so long, and extends each second. */
function works(holdMs: number, more: Partial<Op> = {}): Partial<Op> {
  return { ttlMs: 60_000, holdMs, extendEveryMs: 1_000, ...more };
}

function onAll(kind: "full" | "demote", atMs: number, forMs: number): Fault[] {
  return ALL.map((node) => ({ kind, node, atMs, forMs }));
}

/** See the module. */
export const HEALING_SCENARIOS: readonly Scenario[] = [
  scenario("H10", "an adopted lock that lives on stands on all nodes again", {
    clients: [[works(6_000, { handsTo: [{ client: 1, afterMs: 0 }] })], []],
    faults: [away(1, 5_500, 2_500)],
    healAtMs: 8_000,
    missing: all(expectLocks(1, 1), expectHeldMs(1, 5_990, 6_100)),
    catches: ["adopted-lock-never-heals"],
  }),
  scenario("H11", "what the giver had is gone after the release of an adopted lock", {
    clients: [[{ ttlMs: 60_000, holdMs: 2_000, handsTo: [{ client: 1, afterMs: 0 }] }], []],
    faults: [away(1, 1_500, 6_500)],
    healAtMs: 8_000,
    missing: expectLocks(1, 1),
    catches: ["former-value-stays"],
  }),
  scenario("H12", "a node that has missed the end of a lock with atLeastMs gets to know it", {
    clients: [[{ ttlMs: 60_000, atLeastMs: 3_000, waitMs: 0, holdMs: 1_000 }], [
      { atMs: 2_000, ttlMs: 5_000, waitMs: 0 },
      { atMs: 3_500, ttlMs: 5_000, waitMs: 0 },
    ]],
    faults: [{ kind: "crash", node: 2, data: "all", silent: false, atMs: 500, forMs: 3_500 }],
    healAtMs: 4_000,
    missing: expectLocks(1, 1),
    catches: ["release-forgotten", "at-least-is-forgotten"],
  }),
  scenario("H13", "a lock with atLeastMs that was adopted keeps its keys for as long", {
    clients: [
      [{ ttlMs: 10_000, atLeastMs: 8_000, holdMs: 1_000, handsTo: [{ client: 1, afterMs: 50 }] }],
      [],
      [{ atMs: 3_000, waitMs: 0 }, { atMs: 10_000, waitMs: 0 }],
    ],
    healAtMs: 12_000,
    missing: all(expectLocks(1, 1), expectLocks(2, 1)),
    catches: ["at-least-is-forgotten"],
  }),
  scenario("N14", "full nodes extend readers, and let locks be handed over", {
    clients: [
      [works(6_000, { ttlMs: 3_000, shared: true })],
      [{ resources: ["b"], ttlMs: 5_000, holdMs: 1_500, handsTo: [{ client: 2, afterMs: 50 }] }],
      [{ resources: ["c"], atMs: 2_000, waitMs: 0 }],
    ],
    faults: onAll("full", 1_000, 4_500),
    missing: all(expectHeldMs(0, 5_990, 6_100), expectLocks(2, 1)),
    catches: ["full-node-ends-readers", "full-node-refuses-adoptions"],
  }),
  scenario("N15", "a client leaves servers that have become replicas, and finds their successors", {
    clients: [
      [works(8_000, { ttlMs: 10_000 })],
      [{ resources: ["b"], atMs: 2_500, ttlMs: 5_000, waitMs: 5_000 }],
    ],
    faults: onAll("demote", 2_000, 2_000),
    missing: all(expectHeldMs(0, 7_990, 8_100), expectLocks(1, 1)),
  }),
];
