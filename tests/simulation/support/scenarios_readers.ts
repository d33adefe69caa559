/** Scenarios about locks in shared mode. */
import type { Op } from "./plan.ts";
import type { Outcome } from "./run.ts";
import { all, expectLocks, expectOrder, expectSoon, scenario } from "./scenario.ts";
import type { Scenario } from "./scenario.ts";

/**
 * How long a hand-off may take: four round trips of a millisecond, and what a holder's last write
 * takes it.
 */
const HAND_OFF_MS = 12;
/** How long each reader may take after the one before it, of those that enter one after another. */
const HOP_MS = 6;

/** Reads from a time on, and waits for that as long as it takes. */
function reads(atMs: number, more: Partial<Op> = {}): Partial<Op> {
  return { atMs, resources: ["a"], shared: true, ttlMs: 5_000, waitMs: 20_000, ...more };
}

/** The same; writes. */
function writes(atMs: number, more: Partial<Op> = {}): Partial<Op> {
  return { ...reads(atMs, more), shared: false };
}

/** Complains unless so many locks were held at once. */
function expectTogether(atMs: number, count: number): NonNullable<Scenario["missing"]> {
  return ({ world }) => {
    const held = world.checkers.all.filter(({ spans }) =>
      spans.some(([fromMs, toMs]) => fromMs <= atMs && atMs < toMs)
    );
    return held.length === count
      ? undefined
      : `${held.length} locks were held at ${atMs} ms, expected ${count}`;
  };
}

/** Complains if a ticket is in a queue when all is over, or a reader in a set. */
function nobodyLeft({ world }: Outcome): string | undefined {
  const left = world.nodes.flatMap((node) => [...node.queue("a"), ...node.liveReaders()]);
  return left.length === 0 ? undefined : `${left.length} tickets or readers are left`;
}

/** See the module. */
export const READER_SCENARIOS: readonly Scenario[] = [
  scenario("S1", "readers hold a resource together, and the writer has it when the last is done", {
    clients: [
      [reads(0, { holdMs: 300 })],
      [reads(10, { holdMs: 1_000 })],
      [reads(20, { holdMs: 600 })],
      [writes(50, { holdMs: 100 })],
    ],
    healAtMs: 5_000,
    missing: all(expectTogether(200, 3), expectSoon(3, 1_013, HAND_OFF_MS), nobodyLeft),
    catches: ["reader-deletes-the-marker"],
  }),
  scenario("S2", "a reader that comes after a writer has its turn after it", {
    clients: [
      [reads(0, { holdMs: 1_000 })],
      [writes(50, { holdMs: 500 })],
      [reads(100, { holdMs: 100 })],
      [reads(150, { holdMs: 100 })],
    ],
    healAtMs: 5_000,
    missing: all(
      expectOrder(0, 1, 2, 3),
      expectSoon(1, 1_003, HAND_OFF_MS),
      expectSoon(2, 1_503, 2 * HAND_OFF_MS),
      nobodyLeft,
    ),
    catches: ["readers-pass-who-waits"],
  }),
  scenario("S3", "readers behind a writer enter one after another, each a hop after the last", {
    clients: [
      [writes(0, { holdMs: 1_000 })],
      ...Array.from({ length: 5 }, (_, index) => [reads(50 + 50 * index, { holdMs: 2_000 })]),
    ],
    healAtMs: 8_000,
    missing: all(
      ...[1, 2, 3, 4, 5].map((client) => expectSoon(client, 1_003, HAND_OFF_MS + client * HOP_MS)),
      expectTogether(2_000, 5),
      nobodyLeft,
    ),
    catches: ["entered-reader-notifies-nobody"],
  }),
  scenario("S4", "a writer that is dead holds readers back until a reader's next extension", {
    clients: [
      [reads(0, { ttlMs: 3_000, holdMs: 7_000, autoExtend: true })],
      [writes(50)],
      [reads(100, { holdMs: 100 })],
    ],
    faults: [{ kind: "die", client: 1, silent: false, atMs: 500 }],
    healAtMs: 8_000,
    missing: expectSoon(2, 500, 1_000 + HAND_OFF_MS),
    catches: ["dead-first-holds-readers-back"],
  }),
  scenario("S6", "a reader that dies costs its own TTL, whatever the others have", {
    clients: [
      [reads(0, { ttlMs: 2_000, holdMs: 9_000 })],
      [reads(10, { ttlMs: 500, holdMs: 300 })],
      [writes(50)],
    ],
    faults: [{ kind: "die", client: 0, silent: false, atMs: 400 }],
    healAtMs: 8_000,
    missing: expectSoon(2, 2_000, 150),
    catches: ["key-expires-with-the-last-comer"],
  }),
  scenario("S9", "of the readers of one client one waits for all, and all enter with it", {
    clients: [
      [writes(0, { holdMs: 1_000 })],
      [50, 60, 70, 80, 90].map((atMs) => reads(atMs, { holdMs: 500 })),
      [writes(200, { holdMs: 100 })],
    ],
    healAtMs: 8_000,
    missing: all(
      expectLocks(1, 5),
      expectTogether(1_200, 5),
      expectSoon(2, 1_503, 3 * HAND_OFF_MS),
      nobodyLeft,
    ),
    catches: ["admitted-reader-goes-on-waiting"],
  }),
];
