/**
 * What the library once did wrong, found by a seed: the plan of the seed, shrunk to what it takes
 * and written by hand where randomness was left in it. Each names the mutation that brings the
 * fault back, and fails with it.
 */
import type { Op } from "./plan.ts";
import { expectSoon, scenario } from "./scenario.ts";
import type { Scenario } from "./scenario.ts";

/** Waits for as long as it takes. */
const WAITER: Partial<Op> = { ttlMs: 3_000, holdMs: 100, waitMs: 60_000 };

/** See the module. */
export const REGRESSION_SCENARIOS: readonly Scenario[] = [
  scenario("R1", "the signal is not late if the wall clock gains slowly on the monotonic one", {
    clients: [[{ ttlMs: 60_000, holdMs: 70_000, end: "abandon" }]],
    clocks: { monotonicRate: 0.996, wallRate: 1.004 },
    catches: ["steps-unnoticed"],
  }),
  scenario(
    "R2",
    "the signal of a lock of a few milliseconds is not late by the rounding of timers",
    {
      // The other one is there so that the checkers look right after the end, at 7 ms.
      clients: [[{ ttlMs: 10, holdMs: 50, end: "abandon" }], [{ kind: "inspect", atMs: 7.05 }]],
      network: { delayMs: 0.6 },
      catches: ["short-lock-without-margin"],
    },
  ),
  scenario("R4", "counters that cannot agree are not raised beyond the time of an answer", {
    nodeTimeoutMs: 100,
    options: { fencing: true },
    clients: [[{ ttlMs: 1_000, holdMs: 10 }, { waitMs: 1, atMs: 2_000 }]],
    faults: [
      { kind: "flush", node: 1, atMs: 500 },
      { kind: "crash", node: 2, data: "all", silent: false, atMs: 600, forMs: 5_000 },
      { kind: "hang", node: 0, atMs: 2_001.2, forMs: 3_000 },
    ],
    catches: ["raising-without-a-limit"],
  }),
  scenario("R5", "one that died without a word while it waited is overtaken", {
    clients: [[{ ...WAITER, holdMs: 1_000 }], [{ ...WAITER, atMs: 50 }], [
      { ...WAITER, atMs: 100 },
    ]],
    faults: [{ kind: "die", client: 1, silent: true, atMs: 500 }],
    missing: expectSoon(2, 1_003, 200),
    catches: ["stuck-first-never-overtaken"],
  }),
  scenario("R6", "a key that was filled in on a node that had denied is taken back", {
    clients: [[{ ttlMs: 600_000, holdMs: 5_000, extendEveryMs: 1_000, end: "abandon" }]],
    faults: [
      { kind: "foreign", nodes: [2], resource: "a", ttlMs: 500, atMs: 0 },
      { kind: "flush", node: 0, atMs: 1_500 },
      { kind: "flush", node: 1, atMs: 1_500 },
    ],
    catches: ["filled-in-key-forgotten", "undo-spares-what-may-be-set"],
  }),
  scenario("R9", "two that are each the first in the queue on one node agree who is", {
    nodes: 2,
    clients: [[{ ...WAITER, holdMs: 1_000 }], [{ ...WAITER, atMs: 50 }], [
      { ...WAITER, atMs: 350 },
    ]],
    faults: [
      {
        kind: "slow",
        client: 1,
        node: 1,
        direction: "requests",
        extraMs: 400,
        atMs: 54.4,
        forMs: 2,
      },
    ],
    missing: expectSoon(2, 1_003, 20),
    catches: ["scores-stay-apart"],
  }),
  scenario(
    "R10",
    "a subscription that a restart ended without a word is replaced before it is needed",
    {
      nodes: 1,
      clients: [
        [{ ...WAITER, holdMs: 500 }, { ...WAITER, atMs: 2_000, holdMs: 500 }],
        [{ ...WAITER, atMs: 50, waitMs: 200 }, { ...WAITER, atMs: 2_200 }],
      ],
      faults: [{ kind: "crash", node: 0, data: "none", silent: true, atMs: 1_000, forMs: 200 }],
      missing: expectSoon(1, 2_500, 60), // the new server does not know the script
      catches: ["subscription-outlives-its-server"],
    },
  ),
  scenario(
    "R11",
    "a short extension leaves no node with less than a long one before it has claimed",
    {
      clients: [[{
        ttlMs: 3_000,
        holdMs: 9_000,
        autoExtend: true,
        extendEveryMs: 5_000,
        extendTtlMs: 20_000,
      }]],
      faults: [
        { kind: "crash", node: 0, data: "all", silent: false, atMs: 4_900, forMs: 400 },
        { kind: "flush", node: 2, atMs: 5_500 },
      ],
      catches: ["extended-below-the-claim"],
    },
  ),
];
