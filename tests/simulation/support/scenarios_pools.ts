/** Scenarios about calls for any one of several resources. */
import type { Op } from "./plan.ts";
import type { Outcome } from "./run.ts";
import { all, expectLocks, expectOrder, expectSoon, locksOf, scenario } from "./scenario.ts";
import type { Scenario } from "./scenario.ts";

const PAIR = ["a", "b"];
const EIGHT = ["a", "b", "c", "d", "e", "f", "g", "h"];
/**
 * How long a hand-off may take: four round trips of a millisecond, and what a holder's last write
 * takes it.
 */
const HAND_OFF_MS = 12;
/** After how long a first that does not use its turn is overtaken. */
const PATIENCE_MS = 50;

/** Holds one resource from the beginning. */
function holds(resource: string, holdMs: number): Partial<Op> {
  return { resources: [resource], ttlMs: 5_000, holdMs };
}

/** Waits for any one of the two for as long as it takes. */
function waits(atMs: number, more: Partial<Op> = {}): Partial<Op> {
  return { atMs, resources: PAIR, any: true, ttlMs: 5_000, waitMs: 20_000, holdMs: 2_000, ...more };
}

/** Complains unless the first lock of each client is on a resource. */
function expectResources(
  ...names: readonly (string | undefined)[]
): NonNullable<Scenario["missing"]> {
  return (outcome) => {
    const found = names.map((_, client) => locksOf(outcome, client)[0]?.lock.resources.join("+"));
    const wrong = names.findIndex((name, client) => name !== undefined && name !== found[client]);
    return wrong < 0
      ? undefined
      : `client-${wrong + 1} had ${found[wrong]}, expected ${names[wrong]}`;
  };
}

/** Complains if a client made more attempts than so many before everything was mended. */
function expectAttempts(client: number, max: number): NonNullable<Scenario["missing"]> {
  return ({ world, plan }) => {
    const made =
      [...world.values.values()].filter((value) =>
        value.client.index === client && value.atMs < plan.healAtMs
      ).length;
    return made <= max ? undefined : `client-${client + 1} made ${made} attempts, expected ${max}`;
  };
}

/** Complains if a ticket is in a queue when all is over. */
function nobodyLeft({ world }: Outcome): string | undefined {
  const left = world.nodes.flatMap((node) => PAIR.flatMap((name) => node.queue(name)));
  return left.length === 0 ? undefined : `${left.length} tickets are left in queues`;
}

/** See the module. */
export const POOL_SCENARIOS: readonly Scenario[] = [
  scenario("A1", "as many have one of several as there are, and the others wait", {
    clients: Array.from({ length: 3 }, () => [waits(0, { holdMs: 500 })]),
    healAtMs: 3_000,
    missing: all(...[0, 1, 2].map((client) => expectLocks(client, 1)), nobodyLeft),
    catches: ["held-key-of-a-pool-granted"],
  }),
  scenario(
    "A2",
    "those who wait get what is released, each as soon as it is, in the order of asking",
    {
      clients: [[holds("a", 1_000)], [holds("b", 1_500)], [waits(50)], [waits(100)]],
      healAtMs: 8_000,
      missing: all(
        expectOrder(0, 1, 2, 3),
        expectResources("a", "b", "a", "b"),
        expectSoon(2, 1_003, HAND_OFF_MS),
        expectSoon(3, 1_503, HAND_OFF_MS),
        nobodyLeft,
      ),
    },
  ),
  scenario(
    "A4",
    "a node that denies says which are free, and the next attempt is for one of them",
    {
      clients: [
        EIGHT.slice(1).map((name) => holds(name, 5_000)),
        ...Array.from({ length: 6 }, (_, index): Partial<Op>[] => [
          { atMs: 100 + 100 * index, kind: "tryAcquire", resources: EIGHT, any: true, holdMs: 20 },
        ]),
      ],
      healAtMs: 3_000,
      missing: all(
        ...[1, 2, 3, 4, 5, 6].flatMap((client) => [
          expectLocks(client, 1),
          expectAttempts(client, 3),
        ]),
      ),
      catches: ["free-keys-ignored", "any-key-of-a-pool-counts"],
    },
  ),
  scenario("A5", "a first that is stopped is overtaken once, and not for each of several again", {
    clients: [[holds("a", 1_000)], [holds("b", 1_200)], [waits(50)], [waits(100)], [waits(150)]],
    faults: [{ kind: "pause", client: 2, atMs: 500, forMs: 3_000 }],
    healAtMs: 8_000,
    missing: all(
      expectSoon(3, 1_003, PATIENCE_MS + 2 * HAND_OFF_MS),
      expectSoon(4, 1_203, 2 * HAND_OFF_MS),
    ),
    catches: ["any-key-of-a-pool-counts", "won-queue-alone-is-left"],
  }),
  scenario("A6", "one that gives up just when it is notified passes the notification on", {
    clients: [
      [holds("a", 1_000)],
      [holds("b", 5_000)],
      [waits(50, { abortAfterMs: 953.2 })],
      [waits(100)],
    ],
    healAtMs: 8_000,
    missing: all(expectLocks(2, 0), expectSoon(3, 1_003, 2 * HAND_OFF_MS), nobodyLeft),
  }),
  scenario(
    "A9",
    "a key whose holder died is taken by the first of another queue, though its own first is stopped",
    {
      clients: [
        [{ ...holds("a", 9_000), ttlMs: 2_000 }],
        [holds("b", 30_000)],
        [{ atMs: 50, resources: ["a"], ttlMs: 5_000, waitMs: 20_000 }],
        [waits(100)],
      ],
      faults: [
        { kind: "die", client: 0, silent: false, atMs: 500 },
        { kind: "pause", client: 2, atMs: 600, forMs: 15_000 },
      ],
      healAtMs: 16_000,
      missing: expectSoon(3, 2_000, 1_500),
    },
  ),
  scenario(
    "A10",
    "of eight that are released far away, each goes to another, and at the same time",
    {
      clients: [
        EIGHT.map((name) => holds(name, 2_000)),
        ...EIGHT.map((_, index) => [waits(100 + 100 * index, { resources: EIGHT })]),
      ],
      network: { delayMs: 40 },
      healAtMs: 8_000,
      missing: all(...EIGHT.map((_, index) => expectSoon(index + 1, 2_000, 5 * 80))),
      catches: ["one-ticket-has-all-turns"],
    },
  ),
  scenario("A11", "eight, to which nodes far away give turns for different keys, have one soon", {
    clients: [
      ...EIGHT.map((name) => [holds(name, 2_000)]),
      ...EIGHT.map((_, index) => [waits(100 + 100 * index, { resources: EIGHT })]),
    ],
    network: { delayMs: 40, jitterMs: 40 },
    healAtMs: 8_000,
    missing: all(...EIGHT.map((_, index) => expectSoon(index + 8, 2_000, 800))),
    catches: ["turn-of-a-pool-kept-for-one"],
  }),
];
