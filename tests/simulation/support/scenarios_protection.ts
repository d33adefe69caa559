/**
 * Scenarios in which fencing tokens or the restart guard are on, each beside one without that goes
 * wrong.
 */
import type { Fault, Op } from "./plan.ts";
import type { Outcome } from "./run.ts";
import { all, expectLocks, expectSoon, locksOf, scenario } from "./scenario.ts";
import type { Scenario } from "./scenario.ts";
import { BARE_QUORUM, HOLDER_AND_RIVAL, RIVAL_SHUT_OUT } from "./scenarios_nodes.ts";
import { BEFORE_A_WRITE_MS } from "./scenarios_processes.ts";
import { WALL_MS } from "./world.ts";

const FENCED = { fencing: true };
/** As long as the longest lock. */
const GUARDED = { restartGuardMs: 6_000 };

/**
 * Node 2 goes down for a moment, and comes back with nothing, or without its last so many
 * milliseconds.
 */
function crash(atMs: number, data: "none" | number): Fault {
  return { kind: "crash", node: 1, data, silent: false, atMs, forMs: 200 };
}

/**
 * One locks on all nodes, another on two of them, of which one is gone when the first comes back.
 */
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

const DAY_MS = 24 * 60 * 60 * 1_000;
const TEN_YEARS_MS = 3_650 * DAY_MS;
/** Over so many days, clients that ask their idle connections would send half a million `PING`s. */
const FOR_DAYS = { healAtMs: 22 * DAY_MS, process: { asksNone: true } } as const;
/** Two clients that lock in turns, with all nodes, then with each two of them. */
const TURNS: readonly (readonly Partial<Op>[])[] = [0, 1].map((client) =>
  [0, 1, 2, 3, 4, 5].map((turn) => ({
    atMs: 1_000 * (2 * turn + client),
    ttlMs: 800,
    waitMs: 700,
    holdMs: 100,
  }))
);
/** Has each node away for some of the turns. */
const TURNS_FAULTS: readonly Fault[] = [0, 1, 2].map((node) => (
  { kind: "hang", node, atMs: 2_500 + 3_000 * node, forMs: 2_800 }
));
/** As {@linkcode TURNS}, but days apart: counters are renewed, and expire. */
const DAYS: readonly (readonly Partial<Op>[])[] = [[0, 0.5, 1.2, 3, 12, 21], [0.1, 2, 9, 13]].map(
  (days) => days.map((day) => ({ atMs: day * DAY_MS, ttlMs: 800, waitMs: 700, holdMs: 100 })),
);

/** Has both clients reach nodes 1 and 2 alone. */
const CUT_OFF_THREE = {
  kind: "partition",
  clients: [0, 1],
  nodes: [2],
  directions: ["requests", "replies"],
  atMs: 0,
} as const;

/** By how much the highest token of a client's locks is ahead of true time, in milliseconds. */
function leadMs(outcome: Outcome, client: number): number {
  const leads = locksOf(outcome, client).map(({ lock, sinceMs }) =>
    lock.fencingToken! / 1_000 - WALL_MS - sinceMs
  );
  return Math.max(...leads);
}

/** Complains unless the tokens of all clients are close to the clocks that are right. */
function expectTokensInTime(outcome: Outcome): string | undefined {
  for (const client of outcome.plan.clients.keys()) {
    const aheadMs = leadMs(outcome, client);
    if (aheadMs > 2_000) return `tokens of client-${client + 1} are ${aheadMs} ms ahead`;
  }
  return undefined;
}

/**
 * A rival whose guard is shorter than the holder's lock, which no client can see from its own
 * options.
 */
function withShortGuard(guarded: Scenario): Scenario {
  const clients = guarded.plan.clients.map((client, index) =>
    index === 1 ? { ...client, restartGuardMs: 500 } : client
  );
  return { ...guarded, plan: { ...guarded.plan, clients } };
}

/** See the module. */
export const PROTECTION_SCENARIOS: readonly Scenario[] = [
  ...[TEN_YEARS_MS, 30 * TEN_YEARS_MS, -TEN_YEARS_MS, 61_000].map((aheadMs) =>
    scenario("F1", `a client whose clock is ${aheadMs} ms ahead moves no tokens`, {
      catches: aheadMs >= TEN_YEARS_MS ? ["counter-starts-from-any-hint"] : [],
      options: FENCED,
      clientsAheadMs: [aheadMs],
      clients: TURNS,
      faults: TURNS_FAULTS,
      healAtMs: 15_000,
      missing: all(expectLocks(0, 6), expectLocks(1, 6), expectTokensInTime),
    })
  ),
  scenario(
    "F1",
    "a token falls where a node whose clock was years ahead loses its data, though the guard is on",
    {
      options: { ...FENCED, restartGuardMs: 5_000 },
      nodesAheadMs: [TEN_YEARS_MS],
      clients: TURNS,
      faults: [
        { ...CUT_OFF_THREE, forMs: 2_500 },
        { kind: "node-step", node: 0, stepMs: -TEN_YEARS_MS, atMs: 2_600 },
        { kind: "crash", node: 0, data: "none", silent: false, atMs: 2_700, forMs: 100 },
        { kind: "hang", node: 1, atMs: 2_800, forMs: 9_000 },
      ],
      healAtMs: 15_000,
      outside: "fencing",
    },
  ),
  scenario("F1", "tokens rise over days, in which counters are renewed and expire", {
    options: FENCED,
    clients: DAYS,
    ...FOR_DAYS,
    missing: all(expectLocks(0, 6), expectLocks(1, 4), expectTokensInTime),
  }),
  scenario(
    "F1",
    "a counter that a node's wrong clock has put years ahead lives on without that node",
    {
      options: FENCED,
      nodesAheadMs: [TEN_YEARS_MS],
      clients: [[0, 10, 20].map((day) => ({ atMs: day * DAY_MS, ttlMs: 800, holdMs: 100 }))],
      faults: [10, 20].map((day) => (
        { kind: "hang", node: 0, atMs: day * DAY_MS - 1_000, forMs: 2_000 }
      )),
      ...FOR_DAYS,
      missing: expectLocks(0, 3),
      catches: ["leaping-counter-expires-early"],
    },
  ),
  scenario("K1", "a lock that a quorum grants after the cooldown has begun is not accepted", {
    options: { cooldownMs: 1_000 },
    clients: [[
      { ttlMs: 5_000, holdMs: 3_000, extendEveryMs: 1_000, waitMs: 0 },
      // while the extension is on its way that finds the keys gone,
      { atMs: 1_002.4, kind: "tryAcquire" },
      { atMs: 1_500, kind: "tryAcquire" },
      { atMs: 2_500, kind: "tryAcquire", holdMs: 100 },
    ]],
    faults: [0, 1, 2].map((node) => ({ kind: "flush", node, atMs: 900 })),
    missing: expectLocks(0, 2),
    catches: ["accepted-in-its-cooldown"],
  }),
  scenario("P1", "with fencing tokens the store refuses what a paused process writes late", {
    options: FENCED,
    clients: [[{ ttlMs: 1_000, holdMs: 3_000 }], [{ atMs: 100, ttlMs: 5_000, holdMs: 4_000 }]],
    faults: [{ kind: "pause", client: 0, atMs: BEFORE_A_WRITE_MS, forMs: 2_600 }],
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
  withShortGuard(
    scenario(
      "N3",
      "with another client's guard that is shorter than the lock it lets that one in",
      {
        options: { ...GUARDED, notify: false },
        clients: [HOLDER_AND_RIVAL[0], [{ atMs: 500, ttlMs: 450, holdMs: 100 }]],
        faults: [BARE_QUORUM, crash(1_000, "none")],
        outside: "mutual-exclusion",
      },
    ),
  ),
  scenario("N6", "an empty server in the place of a node lets another in", {
    clients: HOLDER_AND_RIVAL,
    faults: [BARE_QUORUM, { kind: "flush", node: 1, atMs: 1_000 }],
    outside: "mutual-exclusion",
  }),
  scenario("N6", "with the guard an empty server in the place of a node lets nobody in", {
    catches: ["emptied-node-counts"],
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
    catches: ["restarted-node-counts", "old-counters-believed"],
    options: { ...FENCED, ...GUARDED },
    clients: COUNTERS_APART,
    faults: [...COUNTERS_FAULTS, ROLLED_BACK],
    healAtMs: 15_000,
    missing: expectLocks(1, 2),
  }),
];
