/**
 * Scenarios about many locks of one client that are extended and released in one tick, so that
 * nodes get one script for all.
 */
import type { Fault, Op } from "./plan.ts";
import { all, expectLocks, expectSoon, locksOf, scenario } from "./scenario.ts";
import type { Scenario } from "./scenario.ts";

const ALL = [0, 1, 2];
/** How long a client gathers, and when its group of releases is on the way to the nodes. */
const GATHER_MS = 5;
const RELEASED_MS = 1_007.4;
/** After that, how soon somebody who waits has the lock. */
const HAND_OFF_MS = 15;

/** Locks of one client that end together. */
function together(resources: readonly string[], more: Partial<Op> = {}): Partial<Op>[] {
  return resources.map((resource) => ({ resources: [resource], ttlMs: 60_000, ...more }));
}

/** They are extended in groups, too. */
const EXTENDED: Partial<Op> = { ttlMs: 3_000, holdMs: 6_000, extendEveryMs: 1_000 };

function onAll(fault: (node: number) => Fault): Fault[] {
  return ALL.map(fault);
}

/** Complains unless so many locks of the first client were held for so long. */
function expectAllHeldMs(count: number, minMs: number): NonNullable<Scenario["missing"]> {
  return (outcome) => {
    const times = locksOf(outcome, 0).map(({ spans }) =>
      spans.reduce((total, [fromMs, toMs]) => total + toMs - fromMs, 0)
    );
    if (times.filter((ms) => ms >= minMs).length === count) return undefined;
    return `the locks were held for ${times.join(", ")} ms, expected ${count} of ${minMs} at least`;
  };
}

/** See the module. */
export const GROUP_SCENARIOS: readonly Scenario[] = [
  scenario("B1", "a group whose connections are cut on the way is released over the next ones", {
    gatherMs: GATHER_MS,
    clients: [
      together(["a", "b", "c"]),
      [{ resources: ["c"], atMs: 2_000, ttlMs: 5_000, waitMs: 3_000 }],
    ],
    faults: onAll((node) => ({
      kind: "cut",
      client: 0,
      node,
      requests: "lost",
      atMs: RELEASED_MS,
    })),
    missing: expectLocks(1, 1),
    catches: ["release-forgotten"],
  }),
  scenario(
    "B1",
    "a group that arrives in pieces, the last of which is lost, releases nothing twice",
    {
      gatherMs: GATHER_MS,
      network: { splitChance: 1, jitterMs: 1 },
      clients: [
        together(["a", "b", "c"]),
        [{ resources: ["b"], atMs: 2_000, ttlMs: 5_000, waitMs: 3_000 }],
      ],
      faults: ALL.flatMap((node): Fault[] =>
        [0, 0.4, 0.8].map((afterMs) => (
          { kind: "cut", client: 0, node, requests: "lost", atMs: RELEASED_MS + afterMs }
        ))
      ),
      missing: expectLocks(1, 1),
    },
  ),
  scenario("B3", "a group whose script the nodes have lost goes out again, whole", {
    gatherMs: GATHER_MS,
    clients: [[
      ...together(["a", "b"], EXTENDED),
      ...together(["c", "d"]),
      ...together(["e", "f"], { holdMs: 2_000 }),
    ]],
    faults: onAll((node) => ({ kind: "flush-scripts", node, atMs: 1_500 })),
    missing: expectAllHeldMs(2, 5_990),
    catches: ["script-never-sent"],
  }),
  scenario("B5", "a group notifies those who wait for some of its keys, and nobody else", {
    gatherMs: GATHER_MS,
    clients: [
      together(["a", "b", "c", "d"]),
      [{ resources: ["b"], atMs: 300, waitMs: 3_000 }],
      [{ resources: ["d"], atMs: 300, shared: true, waitMs: 3_000 }],
      [{ resources: ["c", "b"], any: true, atMs: 400, waitMs: 3_000 }],
    ],
    missing: all(
      expectSoon(1, RELEASED_MS, HAND_OFF_MS),
      expectSoon(2, RELEASED_MS, HAND_OFF_MS),
      expectSoon(3, RELEASED_MS, HAND_OFF_MS),
    ),
    catches: ["group-notifies-nobody"],
  }),
  scenario("B7", "a lock that is gone takes no other one of its group with it", {
    gatherMs: GATHER_MS,
    clients: [together(["a", "b", "c"], EXTENDED)],
    faults: onAll((node) => ({ kind: "evict", node, atMs: 1_500 })), // of a, the first
    missing: (outcome) => {
      const held = locksOf(outcome, 0).map(({ lock, spans }) =>
        `${lock.resources[0]} ${Math.round((spans.at(-1)![1] - spans[0][0]) / 1_000)} s`
      );
      return held.join(", ") === "a 2 s, b 6 s, c 6 s" ? undefined : held.join(", ");
    },
    catches: ["group-answers-the-neighbour"],
  }),
  scenario("B8", "of more releases than may be under way each has its turn", {
    gatherMs: GATHER_MS,
    roundsMax: 2,
    clients: [
      together(["a", "b", "c", "d", "e"]),
      [{ resources: ["e"], atMs: 300, ttlMs: 5_000, waitMs: 3_000 }],
    ],
    missing: expectSoon(1, RELEASED_MS, HAND_OFF_MS),
    catches: ["gate-lets-nobody-in"],
  }),
];
