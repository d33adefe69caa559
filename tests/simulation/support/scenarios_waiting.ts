/** Scenarios about waiting: who is notified, by whom, and what becomes of those who are not. */
import type { Op } from "./plan.ts";
import { all, expectLocks, expectOrder, expectSoon, scenario } from "./scenario.ts";
import type { Scenario } from "./scenario.ts";

const ALL = [0, 1, 2];
/** Holds the lock from the beginning for a second. */
const HOLDER: Partial<Op> = { ttlMs: 3_000, holdMs: 1_000 };
/** When the holder lets go: what it writes takes it a moment longer than it holds. */
const RELEASED_MS = 1_003;
/** How long a hand-off may take where a message leads it: a few trips of half a millisecond. */
const HAND_OFF_MS = 12;
/** Keeps a lock for longer than it holds it, with a TTL that is much longer. */
const KEPT_MS = 300;
const KEPT: Partial<Op> = { ttlMs: 30_000, holdMs: 100, atLeastMs: KEPT_MS, waitMs: 60_000 };
/** How much later each asks than the one ahead of it when a key expires. */
const STAGGER_MS = 20;
/** The TTL of a lock that nobody releases. */
const GONE_MS = 600;
/** For how long those put off a release who send several in one tick. */
const GATHER_MS = 50;
/** After how long a first that does not use its turn is overtaken. */
const PATIENCE_MS = 50;

/** One that waits for as long as it takes. */
function waits(atMs: number, more: Partial<Op> = {}): Partial<Op> {
  return { atMs, ttlMs: 3_000, holdMs: 100, waitMs: 20_000, ...more };
}

/** Takes a lock again and again, each time for 20 milliseconds. */
function manyOf(resource: string, startMs: number): Partial<Op>[] {
  return Array.from({ length: 60 }, (_, index) => {
    return waits(startMs + index * 70, { resources: [resource], holdMs: 20 });
  });
}

/** See the module. */
export const WAITING_SCENARIOS: readonly Scenario[] = [
  scenario("Q1", "releases of one tick notify those who wait, each for its key", {
    gatherMs: GATHER_MS,
    catches: ["group-notifies-nobody"],
    clients: [
      [{ ...HOLDER, resources: ["b"] }, HOLDER],
      [waits(300), waits(300, { resources: ["b"] })],
    ],
    missing: all(
      expectOrder(0, 1),
      expectLocks(1, 2),
      expectSoon(1, RELEASED_MS + GATHER_MS, HAND_OFF_MS),
    ),
  }),
  scenario("Q1", "those who wait get the lock in the order of asking, each as soon as it is free", {
    catches: ["release-notifies-nobody"],
    clients: [[HOLDER], [waits(50)], [waits(100)], [waits(150)], [waits(200)]],
    missing: all(
      expectOrder(0, 1, 2, 3, 4),
      expectSoon(1, RELEASED_MS, HAND_OFF_MS),
      expectSoon(4, RELEASED_MS, 3 * 105 + 4 * HAND_OFF_MS),
    ),
  }),
  scenario("Q2", "the second of those who wait does not ask when the first has taken the key", {
    clients: [[HOLDER], [waits(50, { holdMs: 1_000 })], [waits(100)]],
    healAtMs: 4_000,
    // It asks when it comes, again to join the queue, and when it is notified.
    missing: ({ world, plan }) => {
      const asked = [...world.values.values()].filter(({ client, atMs }) =>
        client.index === 2 && atMs < plan.healAtMs
      ).length;
      return asked <= 4 ? undefined : `it asked ${asked} times`;
    },
    catches: ["first-overtaken-though-it-took-the-key"],
  }),
  scenario("Q3", "a lock that is kept for a while is taken as soon as that is over", {
    catches: ["shortening-notifies-nobody"],
    clients: [[KEPT], ...[50, 100, 150].map((atMs) => [waits(atMs, KEPT)])],
    missing: all(
      expectOrder(0, 1, 2, 3),
      expectSoon(1, KEPT_MS, HAND_OFF_MS),
      expectSoon(3, 3 * KEPT_MS, 3 * HAND_OFF_MS),
    ),
  }),
  scenario("Q3", "a key that readers keep for a while is taken as soon as that is over", {
    catches: ["shortening-reader-notifies-nobody"],
    clients: [[{ ...KEPT, shared: true }], [waits(50, KEPT)]],
    missing: expectSoon(1, KEPT_MS, HAND_OFF_MS),
  }),
  scenario("Q3", "a lock that is given to nobody is taken when it expires", {
    catches: ["taken-says-not-for-how-long"],
    clients: [
      [{ ...HOLDER, ttlMs: 30_000 }],
      [waits(50, { ttlMs: GONE_MS, holdMs: 1, handsTo: [] })],
      [waits(100, { waitMs: 60_000 })],
    ],
    missing: expectSoon(2, RELEASED_MS + GONE_MS, STAGGER_MS + HAND_OFF_MS),
  }),
  scenario("Q3", "a lock of one that died is taken, though those ahead need another, too", {
    catches: ["last-asks-ever-more-rarely"],
    clients: [
      [{ ...HOLDER, autoExtend: true, holdMs: 60_000 }],
      [{ ...HOLDER, resources: ["b"], ttlMs: 60_000, holdMs: 30_000 }],
      ...[50, 100, 150].map((atMs) => [waits(atMs, { resources: ["a", "b"] })]),
      [waits(200)],
      [waits(250)],
    ],
    faults: [{ kind: "die", client: 0, silent: false, atMs: 4_500 }],
    missing: expectSoon(6, 4_500, 3_000 + 500),
  }),
  scenario("Q3", "a free lock is taken, though those who watch the first need another, too", {
    catches: ["several-keys-keep-a-free-one"],
    clients: [
      [HOLDER],
      [{ ...HOLDER, resources: ["b"], autoExtend: true, holdMs: 30_000 }],
      ...[50, 100].map((atMs) => [waits(atMs, { resources: ["a", "b"] })]),
      [waits(150)],
      ...[200, 250].map((atMs) => [waits(atMs, { resources: ["a", "b"] })]),
    ],
    missing: expectSoon(4, RELEASED_MS, 2 * PATIENCE_MS + HAND_OFF_MS),
  }),
  scenario("Q4", "one that died while it waited is passed over", {
    catches: ["dead-waiter-notified"],
    clients: [[HOLDER], [waits(50)], [waits(100)]],
    faults: [{ kind: "die", client: 1, silent: false, atMs: 500 }],
    missing: expectSoon(2, RELEASED_MS, HAND_OFF_MS),
  }),
  scenario("Q6", "one that gives up just when it is notified passes the notification on", {
    clients: [[HOLDER], [waits(50, { abortAfterMs: 953.2 })], [waits(100)]],
    missing: all(expectLocks(1, 0), expectSoon(2, RELEASED_MS, 2 * HAND_OFF_MS)),
  }),
  scenario("Q9", "one that asks again and again passes nobody who is about to be notified", {
    catches: ["newcomers-overtake"],
    clients: [
      Array.from({ length: 8 }, (_, index) => waits(index * 10, { holdMs: 200 })),
      [waits(300)],
    ],
    messages: { lostChance: 0, twiceChance: 0, lateMs: 40 },
    missing: expectSoon(1, 300, 2 * 210 + 40),
  }),
  scenario("Q11", "a first that is stuck when it is notified is overtaken after a patience", {
    catches: ["notified-first-never-overtaken"],
    clients: [[HOLDER], [waits(50)], [waits(100)], [waits(150)]],
    faults: [{ kind: "stick", node: 0, resource: "a", atMs: 900, forMs: 5_000 }],
    missing: all(
      expectOrder(0, 2, 3, 1),
      expectSoon(2, RELEASED_MS, PATIENCE_MS + HAND_OFF_MS),
      expectSoon(3, RELEASED_MS, PATIENCE_MS + 110 + 2 * HAND_OFF_MS),
    ),
  }),
  scenario("Q12", "clocks of clients that are minutes apart do not change the order of asking", {
    catches: ["waiters-ordered-by-their-own-clocks"],
    clients: [[HOLDER], [waits(50)], [waits(100)], [waits(150)], [waits(200)]],
    clientsAheadMs: [0, 300_000, -2_000, -300_000, 40],
    missing: expectOrder(0, 1, 2, 3, 4),
  }),
  scenario("Q13", "notifications that somebody else sends change nothing", {
    clients: [[HOLDER], [waits(50)], [waits(100)]],
    faults: ALL.flatMap((node) => [
      { kind: "forge", node, atMs: 300 } as const,
      { kind: "forge", node, atMs: 1_001 } as const,
    ]),
    missing: all(expectOrder(0, 1, 2), expectSoon(1, RELEASED_MS, HAND_OFF_MS)),
  }),
  scenario("Q14", "one that needs several keys has its turn beside many that need one of them", {
    clients: [
      [waits(200, { resources: ["a", "b", "c"], holdMs: 10 })],
      ...["a", "b", "c"].flatMap((name) => [0, 1, 2].map((start) => manyOf(name, start))),
    ],
    healAtMs: 6_000,
    missing: expectSoon(0, 200, 500),
  }),
  scenario("Q14", "a call for a held key and a free one leaves the free one to others", {
    catches: ["several-keys-split-the-vote"],
    nodes: 2,
    lists: [[0]],
    clients: [
      [{ ...HOLDER, ttlMs: 9_500, holdMs: 9_000 }],
      [{ ...HOLDER, resources: ["b"] }],
      [waits(50, { resources: ["a", "b"] })],
      [waits(100, { resources: ["b"] })],
    ],
    missing: expectSoon(3, RELEASED_MS, 1_000),
  }),
  scenario("Q14", "so does one if a client of another library holds the key", {
    nodes: 2,
    clients: [
      [{ ...HOLDER, resources: ["b"] }],
      [waits(50, { resources: ["a", "b"] })],
      [waits(100, { resources: ["b"] })],
    ],
    faults: [{ kind: "foreign", nodes: [0], resource: "a", ttlMs: 9_500, atMs: 0 }],
    options: { retryDelayMs: 10 },
    missing: expectSoon(2, RELEASED_MS, 1_000),
  }),
  scenario("Q15", "a release while the first waiter subscribes is noticed soon", {
    clients: [[{ ttlMs: 20_000, holdMs: 1_000 }], [waits(1_001, { ttlMs: 20_000 })]],
    missing: expectSoon(1, RELEASED_MS, HAND_OFF_MS),
  }),
  scenario("Q16", "one that has never waited does not starve those that are farther away", {
    catches: ["release-forgets-who-waits"],
    clients: [
      Array.from({ length: 80 }, (_, index) => waits(index * 55, { holdMs: 50, waitMs: 10_000 })),
      [waits(10)],
      [waits(20)],
    ],
    distancesMs: [0, 5, 5],
    missing: all(expectSoon(1, 50, 200), expectSoon(2, 50, 500)),
  }),
  scenario("Q16", "one that comes as another's turn ends does not starve the next in the queue", {
    catches: ["newcomer-has-the-turn-of-the-next"],
    clients: [
      [{ resources: ["b"], ttlMs: 10_000, holdMs: 6_000 }],
      [waits(20, { resources: ["a", "b"] })],
      [waits(50)],
      [
        { holdMs: 200 },
        ...Array.from({ length: 60 }, (_, index) => waits(258 + index * 66, { holdMs: 5 })),
      ],
    ],
    distancesMs: [0, 0, 8, 0],
    missing: expectSoon(2, 50, 300),
  }),
  scenario("Q17", "one that is far away gets its turn beside those that are near", {
    clients: [
      ...[0, 1].map((start) =>
        Array.from({ length: 100 }, (_, index) => waits(start + index * 25, { holdMs: 20 }))
      ),
      [waits(100), waits(101), waits(102)].map((op) => ({ ...op, holdMs: 20 })),
    ],
    distancesMs: [0, 0, 60],
    missing: all(expectSoon(2, 100, 1_000), expectLocks(2, 3)),
  }),
  scenario("Q17", "one whose event loop stands still for a while keeps its place", {
    clients: [[HOLDER], [waits(50)], [waits(100)], [waits(150)], [waits(200)]],
    faults: [{ kind: "pause", client: 1, atMs: 1_000, forMs: 80 }],
    missing: expectOrder(0, 2, 1, 3, 4),
  }),
  scenario("Q17", "one that was stopped for long goes behind those that wait", {
    clients: [
      [HOLDER],
      [waits(50)],
      ...Array.from({ length: 12 }, (_, index) => [waits(100 + 60 * index, { holdMs: 300 })]),
    ],
    faults: [{ kind: "pause", client: 1, atMs: 900, forMs: 2_000 }],
    missing: expectOrder(0, ...Array.from({ length: 12 }, (_, index) => 2 + index), 1),
    catches: ["stopped-client-keeps-its-place"],
  }),
  scenario("Q19", "a stall of its own does not make a waiter more patient", {
    clients: [[{ ...HOLDER, holdMs: 3_150, ttlMs: 10_000 }], [waits(50)], [waits(100)]],
    faults: [
      { kind: "pause", client: 2, atMs: 105.2, forMs: 3_000 },
      { kind: "die", client: 1, silent: true, atMs: 500 },
    ],
    missing: expectSoon(2, 3_153, 1_100),
  }),
];
