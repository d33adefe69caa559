/**
 * Scenarios about a node that is replaced for good while locks are held: mistakes, and tokens.
 * `replacement.ts` draws plans for the ways of the manual and for others.
 */
import type { Fault, Op } from "./plan.ts";
import { all, expectLocks, scenario } from "./scenario.ts";
import type { Scenario } from "./scenario.ts";

/** Longer than any of these runs. */
export const FOR_GOOD_MS = 1_000_000_000;

const TTL_MS = 6_000;
/**
 * When node C is stopped, and when its successor counts if a TTL is waited for, in milliseconds.
 */
const STOPPED_MS = 1_000;
const WAITED_MS = 7_100;

/** Nodes A, B and C by their places; D is 3. */
const [OLD, NEW] = [[0, 1, 2], [0, 1, 3]];
const STOPPED: Fault = {
  kind: "crash",
  node: 2,
  data: "all",
  silent: false,
  atMs: STOPPED_MS,
  forMs: FOR_GOOD_MS,
};

/** Holds for long by itself. */
const HOLDER: readonly Partial<Op>[] = [{ ttlMs: TTL_MS, holdMs: 5_000 }];

function rival(atMs: number): readonly Partial<Op>[] {
  return [{ atMs, ttlMs: TTL_MS, holdMs: 1_000 }];
}

/** Has a client reach no node of `nodes` until locks were won. */
function cutOff(client: number, nodes: readonly number[], atMs = 0): Fault {
  return {
    kind: "partition",
    clients: [client],
    nodes,
    directions: ["requests", "replies"],
    atMs,
    forMs: 500,
  };
}

/** See the module. */
export const REPLACING_SCENARIOS: readonly Scenario[] = [
  scenario("N13", "a node that comes back after it was replaced lets two in", {
    nodes: 4,
    lists: [OLD, NEW],
    clients: [
      [{ atMs: WAITED_MS + 400, ttlMs: TTL_MS, holdMs: 2_000 }],
      rival(WAITED_MS + 500),
    ],
    faults: [cutOff(0, [1], WAITED_MS + 300), { ...STOPPED, forMs: WAITED_MS - STOPPED_MS }],
    outside: "mutual-exclusion",
  }),
  scenario("N13", "with the guard a node with the old creation marker lets another in", {
    nodes: 4,
    lists: [OLD, NEW],
    options: { restartGuardMs: TTL_MS },
    clients: [HOLDER, rival(STOPPED_MS + 500)],
    faults: [cutOff(0, [1]), STOPPED],
    outside: "mutual-exclusion",
  }),
  ...[0, -120_000].map((aheadMs) =>
    scenario("N13", `tokens rise if a new node's clock is right: it is ${aheadMs} ms ahead`, {
      nodes: 4,
      lists: [OLD, NEW],
      nodesAheadMs: [0, 0, 0, aheadMs],
      options: { fencing: true },
      // The second token is known to A and C alone, and the new client reaches B and D.
      clients: [[0, 500].map((atMs) => ({ atMs, ttlMs: TTL_MS, holdMs: 100 })), rival(WAITED_MS)],
      faults: [{ ...STOPPED, node: 1, atMs: 450, forMs: 300 }, STOPPED, cutOff(1, [0], WAITED_MS)],
      outside: aheadMs === 0 ? undefined : "fencing",
      missing: all(expectLocks(0, 2), expectLocks(1, 1)),
    })
  ),
];
