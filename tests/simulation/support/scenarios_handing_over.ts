/** Locks that move from one client to another: tokens that are lost, late, or come to several. */
import type { Fault, Op } from "./plan.ts";
import { all, expectHeldMs, expectLocks, locksOf, scenario } from "./scenario.ts";
import type { Scenario } from "./scenario.ts";

/** Works for a second, and hands over. */
const GIVER: Partial<Op> = { ttlMs: 3_000, holdMs: 1_000 };

/** Each of the clients 1 to 3 is far from all nodes but one. */
const APART: Fault[] = [1, 2, 3].flatMap((client) =>
  [0, 1, 2].filter((node) => node !== client - 1).map((node): Fault => ({
    kind: "slow",
    client,
    node,
    direction: "requests",
    extraMs: 3,
    atMs: 900,
    forMs: 3_000,
  }))
);

/** Complains unless that many locks were had by others than the first client. */
function expectAdopted(count: number): NonNullable<Scenario["missing"]> {
  return (outcome) => {
    const had =
      [1, 2, 3].flatMap((client) => outcome.world.clients[client] ? locksOf(outcome, client) : [])
        .length;
    return had === count ? undefined : `${had} locks were adopted, expected ${count}`;
  };
}

/** A client that cannot reach the last node while it adopts the lock. */
function away(client: number, forMs: number, atMs = 900): Fault {
  return {
    kind: "partition",
    clients: [client],
    nodes: [2],
    directions: ["requests", "replies"],
    atMs,
    forMs,
  };
}

/** The first node ends, so that the lock needs the last one. */
const FIRST_ENDS = { kind: "crash", node: 0, data: "all", silent: false, forMs: 20_000 } as const;

/** See the module. */
export const HANDING_OVER_SCENARIOS: readonly Scenario[] = [
  scenario("H1", "of three that adopt one lock at once, each with a node of its own, one gets it", {
    clients: [
      [{ ...GIVER, handsTo: [1, 2, 3].map((client) => ({ client, afterMs: 0 })) }],
      [],
      [],
      [],
    ],
    faults: APART,
    missing: expectAdopted(1),
    catches: ["adopted-value-kept", "failed-adoption-deletes"],
  }),
  scenario("H2", "a giver that extends while it hands over does not hold the lock any more", {
    clients: [[{ ...GIVER, extendsMeanwhile: true, handsTo: [{ client: 1, afterMs: 5 }] }], []],
    missing: all(expectHeldMs(0, 999, 1_010), expectLocks(1, 1)),
    catches: ["giver-keeps-holding"],
  }),
  scenario("H3", "a token that comes late takes nothing from the next holder", {
    clients: [
      [{ ...GIVER, handsTo: [{ client: 1, afterMs: 5_000 }] }],
      [],
      [{ atMs: 2_000, ttlMs: 5_000, holdMs: 4_000 }],
    ],
    missing: all(expectLocks(1, 0), expectHeldMs(2, 3_999, 4_010)),
    catches: ["adoption-takes-any-key"],
  }),
  scenario("H5", "a token that comes twice is adopted once, also after the lock was released", {
    clients: [
      [{ ...GIVER, handsTo: [0, 300, 2_000].map((afterMs) => ({ client: 1, afterMs })) }],
      [],
    ],
    missing: expectAdopted(1),
    catches: ["adopted-value-kept"],
  }),
  scenario(
    "H6",
    "a lock is adopted with a greater fencing token while two of five nodes are down",
    {
      nodes: 5,
      options: { fencing: true },
      clients: [[{ ...GIVER, handsTo: [1, 2].map((client) => ({ client, afterMs: 50 })) }], [], []],
      faults: [3, 4].map((node) => (
        { kind: "crash", node, data: "all", silent: node === 3, atMs: 1_030, forMs: 5_000 }
      )),
      missing: expectAdopted(1),
    },
  ),
  scenario("H7", "a node that has missed an adoption holds the lock after the next extension", {
    clients: [
      [{
        ttlMs: 3_000,
        holdMs: 8_000,
        extendEveryMs: 1_000,
        handsTo: [{ client: 1, afterMs: 0 }],
      }],
      [],
    ],
    faults: [away(1, 900, 7_900), { ...FIRST_ENDS, atMs: 10_500 }],
    healAtMs: 30_000,
    missing: expectHeldMs(1, 7_999, 8_100),
    catches: ["adopted-lock-never-heals"],
  }),
  scenario("H8", "a release frees a node that has missed the adoption", {
    clients: [
      [{ ttlMs: 15_000, holdMs: 1_000, handsTo: [{ client: 1, afterMs: 0 }] }],
      [],
      [{ atMs: 2_500, waitMs: 1_000, ttlMs: 3_000 }],
    ],
    faults: [away(1, 700), { ...FIRST_ENDS, atMs: 2_200 }],
    healAtMs: 30_000,
    missing: all(expectAdopted(2), expectLocks(2, 1)),
    catches: ["former-value-stays"],
  }),
  scenario(
    "H9",
    "a client that comes too late to adopt a lock frees the nodes that still have its value",
    {
      clients: [
        [{
          ttlMs: 15_000,
          holdMs: 1_000,
          handsTo: [1, 2].map((client) => ({ client, afterMs: 500 * client - 500 })),
        }],
        [],
        [],
        [{ atMs: 2_500, waitMs: 1_000, ttlMs: 3_000 }],
      ],
      faults: [away(1, 20_000), { ...FIRST_ENDS, atMs: 2_200 }],
      healAtMs: 30_000,
      missing: all(expectAdopted(2), expectLocks(2, 0), expectLocks(3, 1)),
      catches: ["dead-value-stays"],
    },
  ),
];
