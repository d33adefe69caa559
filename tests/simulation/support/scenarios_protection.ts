/**
 * Scenarios in which fencing tokens or the restart guard are on, each beside one without that goes wrong.
 *
 * @module
 */
import type { Fault, Op } from "./plan.ts";
import { all, expectLocks, expectSoon, scenario } from "./scenario.ts";
import type { Scenario } from "./scenario.ts";
import { BARE_QUORUM, BOTH, HOLDER_AND_RIVAL, RIVAL_SHUT_OUT } from "./scenarios_nodes.ts";
import { BEFORE_A_WRITE_MS } from "./scenarios_processes.ts";

const FENCED = { fencing: true };
/** How much later a lock is there whose script the nodes do not know yet. */
const SCRIPT_MS = 1;
/** As long as the longest lock. */
const GUARDED = { restartGuardMs: 6_000 };

/** Node 2 goes down for a moment, and comes back with nothing, or without its last so many milliseconds. */
function crash(atMs: number, data: "none" | number): Fault {
  return { kind: "crash", node: 1, data, silent: false, atMs, forMs: 200 };
}

/** One locks on all nodes, another on two of them, of which one is gone when the first comes back. */
const COUNTERS_APART: readonly (readonly Partial<Op>[])[] = [
  [{ atMs: 500, ttlMs: 400, holdMs: 100 }],
  [{ atMs: 0, ttlMs: 400, holdMs: 100 }, { atMs: 12_000, ttlMs: 400, holdMs: 100 }],
];
const COUNTERS_FAULTS: readonly Fault[] = [
  { ...BARE_QUORUM, atMs: 200 },
  { kind: "crash", node: 0, data: "all", silent: false, atMs: 1_100, forMs: 12_000 },
];
/** Node 2 has lost the second lock, and what it counted for it. */
const ROLLED_BACK = crash(1_000, 700);

/** See the module. */
export const PROTECTION_SCENARIOS: readonly Scenario[] = [
  scenario("P1", "with fencing tokens the store refuses what a paused process writes late", {
    options: FENCED,
    clients: [[{ ttlMs: 1_000, holdMs: 3_000 }], [{ atMs: 100, ttlMs: 5_000, holdMs: 4_000 }]],
    faults: [{ kind: "pause", client: 0, atMs: BEFORE_A_WRITE_MS + SCRIPT_MS, forMs: 2_600 }],
    missing: ({ world: { store } }) => {
      if (store.late.length > 0) return store.late[0].what;
      return store.refused === 1 ? undefined : `${store.refused} writes were refused`;
    },
  }),
  scenario("N3", "with the guard a node that restarts empty under a bare quorum lets nobody in", {
    options: GUARDED,
    clients: HOLDER_AND_RIVAL,
    faults: [BARE_QUORUM, crash(1_000, "none")],
    missing: all(RIVAL_SHUT_OUT, expectSoon(1, 5_000, 2_100)),
  }),
  scenario("N3", "with a guard that is shorter than the lock it lets another in", {
    options: { restartGuardMs: 500, notify: false },
    clients: HOLDER_AND_RIVAL,
    faults: [BARE_QUORUM, crash(1_000, "none")],
    outside: "mutual-exclusion",
  }),
  scenario("N4", "with the guard a node that has lost its last second lets nobody in", {
    options: GUARDED,
    clients: HOLDER_AND_RIVAL,
    faults: [BARE_QUORUM, crash(400, 1_000)],
    missing: RIVAL_SHUT_OUT,
  }),
  scenario("N6", "an empty server in the place of a node lets another in", {
    clients: HOLDER_AND_RIVAL,
    faults: [BARE_QUORUM, { kind: "flush", node: 1, atMs: 1_000 }],
    outside: "mutual-exclusion",
  }),
  scenario("N6", "with the guard an empty server in the place of a node lets nobody in", {
    options: GUARDED,
    clients: HOLDER_AND_RIVAL,
    faults: [BARE_QUORUM, { kind: "flush", node: 1, atMs: 1_000 }],
    missing: RIVAL_SHUT_OUT,
  }),
  scenario(
    "N7",
    "with the guard too a node that evicts the key under a bare quorum lets another in",
    {
      options: GUARDED,
      clients: HOLDER_AND_RIVAL,
      faults: [BARE_QUORUM, { kind: "evict", node: 0, atMs: 1_000 }],
      outside: "mutual-exclusion",
    },
  ),
  scenario("N8", "with the guard two nodes that are flushed let nobody in", {
    options: GUARDED,
    clients: HOLDER_AND_RIVAL,
    faults: BOTH.map((node) => ({ kind: "flush", node, atMs: 1_000 })),
    missing: RIVAL_SHUT_OUT,
  }),
  scenario("N12", "a counter that is lost resumes above what it was", {
    options: FENCED,
    clients: COUNTERS_APART,
    faults: [...COUNTERS_FAULTS, crash(1_000, "none")],
    healAtMs: 15_000,
    missing: expectLocks(1, 2),
  }),
  scenario("N12", "a counter that is rolled back gives a token again", {
    options: FENCED,
    clients: COUNTERS_APART,
    faults: [...COUNTERS_FAULTS, ROLLED_BACK],
    healAtMs: 15_000,
    outside: "fencing",
  }),
  scenario("N12", "with the guard a counter that is rolled back gives no token again", {
    options: { ...FENCED, ...GUARDED },
    clients: COUNTERS_APART,
    faults: [...COUNTERS_FAULTS, ROLLED_BACK],
    healAtMs: 15_000,
    missing: expectLocks(1, 2),
  }),
];
