/** Scenarios about processes and their clocks: pauses, jumps, sleep, death. */
import { all, expectHeldMs, expectLocks, expectSoon, heldMs, scenario } from "./scenario.ts";
import type { Fault } from "./plan.ts";
import type { Scenario } from "./scenario.ts";

const SECOND = { ttlMs: 1_000, holdMs: 3_000 };
/**
 * A moment between a holder's look at the lock and its write: it looks every 50 ms, and writes a
 * turn later.
 */
export const BEFORE_A_WRITE_MS = 402.075;

/** See the module. */
export const PROCESS_SCENARIOS: readonly Scenario[] = [
  scenario(
    "P1",
    "a process that is paused between its look at the lock and its write writes late",
    {
      clients: [[SECOND], [{ atMs: 100, ttlMs: 5_000, holdMs: 4_000 }]],
      faults: [{ kind: "pause", client: 0, atMs: BEFORE_A_WRITE_MS, forMs: 2_600 }],
      // No lock can prevent it: the two are never `held` at one instant, and yet there are two
      // writers.
      missing: ({ world }) => world.store.late.length > 0 ? undefined : "nobody wrote too late",
    },
  ),
  scenario("P3", "a process that stalls between any two statements never claims too much", {
    clients: Array.from(
      { length: 3 },
      (_, client) =>
        Array.from({ length: 4 }, (_, op) => ({ ...SECOND, atMs: 500 * client + 2_000 * op })),
    ),
    process: { stallChance: 0.1, stallMaxMs: 1_500 },
    healAtMs: 20_000,
  }),
  scenario("P5", "a wall clock that is stepped ahead ends the lock, as if the machine had slept", {
    clients: [[{ holdMs: 5_000 }]],
    faults: [{ kind: "wall-step", client: 0, stepMs: 60_000, atMs: 1_000 }],
    missing: expectHeldMs(0, 990, 1_000),
  }),
  scenario("P5", "a wall clock that is stepped back changes nothing", {
    clients: [[{ ttlMs: 5_000, holdMs: 8_000 }]],
    faults: [{ kind: "wall-step", client: 0, stepMs: -60_000, atMs: 1_000 }],
    missing: expectHeldMs(0, 4_900, 4_950),
  }),
  scenario("P5", "a wall clock that gains slowly on the monotonic one is noticed in time", {
    clients: [[{ ttlMs: 20_000, holdMs: 30_000, end: "abandon" }]],
    clocks: { monotonicRate: 0.998, wallRate: 1.004 },
    healAtMs: 30_000,
    missing: expectHeldMs(0, 19_600, 19_750),
    catches: ["small-gains-forgotten"],
  }),
  scenario(
    "P8",
    "a client that a listener closes in the first timer after a clock's jump ends its other locks too",
    {
      clients: [[
        {
          ...SECOND,
          end: "abandon",
          ignoresSignal: true, // it would look at the clock before the timer does
          listener: { on: "lost", does: "close" },
        },
        { resources: ["b"], ttlMs: 60_000, holdMs: 8_000 },
      ]],
      faults: [{ kind: "wall-step", client: 0, stepMs: 30_000, atMs: 500 }],
      missing: (outcome) => {
        const [, secondMs = Infinity] = heldMs(outcome, 0);
        return secondMs < 1_000 ? undefined : `the second lock was held for ${secondMs} ms`;
      },
    },
  ),
  scenario("P8", "a client that a listener closes while another call is undecided leaves no key", {
    clients: [
      [
        { ttlMs: 60_000 }, // granted by the first node, denied by the second one
        { resources: ["theirs"], atMs: 20, listener: { on: "attempt", does: "close" } },
      ],
      [{ atMs: 100 }],
    ],
    faults: [
      { kind: "slow", client: 0, node: 2, direction: "requests", extraMs: 40, forMs: 500, atMs: 0 },
      { kind: "foreign", nodes: [1], resource: "a", ttlMs: 60_000, atMs: 0 },
      { kind: "foreign", nodes: [0, 1, 2], resource: "theirs", ttlMs: 60_000, atMs: 0 },
    ],
    missing: all(expectLocks(0, 0), expectSoon(1, 100, 100)),
    catches: ["nodes-closed-before-calls-end"],
  }),
  scenario("P9", "replies that came while the event loop was blocked are read before a deadline", {
    clients: [[{ kind: "tryAcquire", ttlMs: 30_000 }]],
    nodeTimeoutMs: 200,
    faults: [{ kind: "pause", client: 0, atMs: 1.7, forMs: 1_000 }],
    process: { timersFirst: true },
    missing: expectLocks(0, 1),
    catches: ["late-deadline-judged-at-once"],
  }),
  scenario(
    "P10",
    "a signal that is asked after the event loop was blocked knows that it has aborted",
    {
      clients: [[{ ...SECOND, blockMs: 400, asksSignal: true }]],
      missing: expectHeldMs(0, 900, 1_000),
      catches: ["signal-does-not-look-at-the-clock"],
    },
  ),
  scenario("P7", "a wall clock that was set back before a sleep does not hide it", {
    clients: [[{ ttlMs: 3_000, holdMs: 8_000 }], [{ atMs: 1_000, holdMs: 3_000 }]],
    faults: [
      { kind: "wall-step", client: 0, stepMs: -60_000, atMs: 1_400 },
      { kind: "suspend", client: 0, atMs: 1_500, forMs: 5_000 },
    ],
    missing: all(expectHeldMs(0, 2_900, 3_010), expectLocks(1, 1)),
    catches: ["loss-hides-a-sleep", "loss-gives-time-back"],
  }),
  scenario("P7", "a wall clock that is set back after a sleep gives nothing back", {
    clients: [[{ ttlMs: 3_000, holdMs: 8_000 }], [{ atMs: 1_000, holdMs: 3_000 }]],
    faults: [
      { kind: "suspend", client: 0, atMs: 300, forMs: 2_000 },
      { kind: "wall-step", client: 0, stepMs: -1_500, atMs: 2_400 },
    ],
    missing: all(expectHeldMs(0, 2_900, 3_010), expectLocks(1, 1)),
    catches: ["loss-gives-time-back"],
  }),
  ...[
    { when: "", losses: [] },
    { when: ", also with its wall clock set back before", losses: [-200] },
    { when: ", also with its wall clock set back after", losses: [2_001] },
  ].map(({ when, losses }) =>
    scenario("P7", `a lock is extended after a sleep of two thirds of its TTL${when}`, {
      clients: [[{ ttlMs: 3_000, holdMs: 6_000, autoExtend: true }], [{ atMs: 1_000 }]],
      faults: [
        { kind: "suspend", client: 0, atMs: 500, forMs: 2_000 },
        ...losses.map((atMs): Fault => (
          { kind: "wall-step", client: 0, stepMs: -60_000, atMs: 500 + atMs }
        )),
      ],
      missing: all(expectHeldMs(0, 7_990, 8_010), expectLocks(1, 1)),
      catches: ["extended-by-monotonic-clock-alone"],
    })
  ),
  scenario("P7", "a sleep and a loss of the wall clock between two looks hide each other", {
    clients: [[{ kind: "tryAcquire", ttlMs: 1_000, holdMs: 3_000 }], [
      { atMs: 1_100, holdMs: 3_000 },
    ]],
    faults: [
      { kind: "wall-step", client: 0, stepMs: -60_000, atMs: 1.6 },
      { kind: "suspend", client: 0, atMs: 1.7, forMs: 2_000 },
    ],
    outside: "mutual-exclusion",
  }),
  scenario("P7", "a machine whose clocks run at half the speed believes in its lock", {
    clients: [[{ ttlMs: 3_000, holdMs: 6_000 }], [{ atMs: 1_000, holdMs: 3_000 }]],
    faults: [{ kind: "client-rate", client: 0, rate: 0.5, atMs: 0, forMs: 9_000 }],
    outside: "mutual-exclusion",
  }),
];
