/** Scenarios about extending a lock. */
import type { Fault } from "./plan.ts";
import { expectHeldMs, expectLocks, expectSoon, scenario } from "./scenario.ts";
import type { Scenario } from "./scenario.ts";

const MAJORITY = [0, 1];

/** See the module. */
export const EXTENSION_SCENARIOS: readonly Scenario[] = [
  scenario(
    "E1",
    "a lock that is gone on a majority stays lost, also if no reply to its first extension arrived",
    {
      clients: [
        [{ ttlMs: 3_000, holdMs: 8_000, autoExtend: true }],
        [{ atMs: 600, holdMs: 100 }],
      ],
      faults: [
        ...MAJORITY.map((node): Fault => ({ kind: "flush", node, atMs: 500 })),
        ...[...MAJORITY, 2].map((node): Fault => (
          { kind: "lost-extension", client: 0, node, reset: true, atMs: 900, forMs: 200 }
        )),
      ],
      outside: "mutual-exclusion",
      // The first extension is due after a second. The next whose replies arrive loses the lock.
      missing: expectHeldMs(0, 990, 1_500),
    },
  ),
  scenario("E2", "an extension takes nothing from the client that got the lock in the meantime", {
    catches: ["extension-steals"],
    clients: [
      [{ ttlMs: 4_000, holdMs: 8_000, extendEveryMs: 2_500 }],
      [{ atMs: 600, holdMs: 3_000 }],
    ],
    faults: MAJORITY.map((node) => ({ kind: "flush", node, atMs: 500 })),
    outside: "mutual-exclusion",
    missing: expectHeldMs(1, 2_990, 3_010),
  }),
  scenario("E4", "an extension shortens nothing that a longer one under way has just prolonged", {
    catches: ["extension-shortens-ttl"],
    clients: [[{
      ttlMs: 3_000,
      holdMs: 4_000,
      autoExtend: true,
      extendEveryMs: 750,
      extendTtlMs: 60_000,
    }]],
    network: { delayMs: 50 },
  }),
  scenario("E4", "a longer extension that reached a minority leaves no key once the lock ran out", {
    catches: ["doubtful-extension-stays"],
    clients: [[{
      ttlMs: 1_000,
      holdMs: 5_000,
      extendEveryMs: 300,
      extendTtlMs: 60_000,
      end: "abandon",
    }]],
    faults: [1, 2].map((node) => ({ kind: "hang", node, atMs: 200, forMs: 3_000 })),
    missing: expectLocks(0, 1),
  }),
  scenario("E5", "an extension that races the release does not bring the key back", {
    clients: [
      [{ ttlMs: 60_000, holdMs: 1_000, extendEveryMs: 999.5, autoExtend: true, end: "twice" }],
      [{ atMs: 500, waitMs: 5_000 }],
    ],
    faults: [
      {
        kind: "slow",
        client: 0,
        node: 2,
        direction: "requests",
        extraMs: 50,
        atMs: 500,
        forMs: 900,
      },
    ],
    missing: expectSoon(1, 1_000, 2_100),
  }),
  scenario("E5", "a node that answers after the release that a key is missing is not filled in", {
    clients: [[{ ttlMs: 60_000, holdMs: 600, extendEveryMs: 500 }]],
    faults: [
      { kind: "flush", node: 2, atMs: 100 },
      {
        kind: "slow",
        client: 0,
        node: 2,
        direction: "replies",
        extraMs: 300,
        atMs: 400,
        forMs: 1_000,
      },
    ],
    missing: expectLocks(0, 1),
    catches: ["filled-in-after-its-end"],
  }),
  scenario("E3", "an extension whose replies wait in a paused process does not revive the lock", {
    // The other one is there so that the checkers look after the end.
    clients: [
      [{ ttlMs: 1_000, holdMs: 5_000, extendEveryMs: 500, extendTtlMs: 60_000 }],
      [{ kind: "inspect", atMs: 995 }, { kind: "inspect", atMs: 1_500 }],
    ],
    faults: [{ kind: "pause", client: 0, atMs: 502.8, forMs: 1_500 }],
    missing: expectHeldMs(0, 900, 1_000),
    catches: ["extended-after-its-end"],
  }),
  scenario("E6", "extensions that fail for a while are tried again inside the validity", {
    clients: [[{ ttlMs: 3_000, holdMs: 8_000, autoExtend: true }]],
    faults: MAJORITY.map((node): Fault => ({
      kind: "errors",
      node,
      text: "LOADING Redis is loading the dataset in memory",
      commands: ["EVALSHA", "EVAL"],
      atMs: 500,
      forMs: 1_500,
    })),
    missing: expectHeldMs(0, 7_990, 8_010),
  }),
];
