/**
 * Scenarios about the network and about the algorithm: what is lost, late, doubled or cut, and what
 * is made of it.
 */
import type { Fault } from "./plan.ts";
import { expectLocks, expectSoon, locksOf, scenario } from "./scenario.ts";
import type { Scenario } from "./scenario.ts";

const ALL = [0, 1, 2];
const LONG_TTL = { ttlMs: 60_000, holdMs: 100, waitMs: 0 };

/** See the module. */
export const WIRE_SCENARIOS: readonly Scenario[] = [
  scenario("W1", "replies that are lost leave no key behind", {
    clients: [[{ ...LONG_TTL }, { ...LONG_TTL, atMs: 4_000 }]],
    faults: ALL.map((node) => (
      { kind: "half-open", client: 0, node, directions: ["replies"], atMs: 50 }
    )),
  }),
  scenario("W1", "a SET whose connection breaks before its reply is taken back over the next one", {
    clients: [[{ ...LONG_TTL, kind: "tryAcquire" }]],
    faults: ALL.map((node) => ({ kind: "cut", client: 0, node, requests: "delivered", atMs: 1.6 })),
    missing: expectLocks(0, 0),
    catches: ["sent-commands-count-as-unsent"],
  }),
  scenario(
    "W1",
    "a key that was set behind a login that was refused is no lock, and is taken back",
    {
      login: "open",
      clients: [[{ ...LONG_TTL, kind: "tryAcquire" }]],
      faults: ALL.map((node) => ({
        kind: "errors",
        node,
        text: "WRONGPASS invalid username-password pair or user is disabled.",
        commands: ["AUTH"],
        atMs: 0,
        forMs: 3_000,
      })),
      missing: expectLocks(0, 0),
      catches: ["refused-login-accepted"],
    },
  ),
  scenario("W1", "a lock is set in no other database than its own", {
    login: "database",
    clients: [[{ ...LONG_TTL, kind: "tryAcquire" }]],
    faults: ALL.map((node) => ({
      kind: "errors",
      node,
      text: "ERR DB index is out of range",
      commands: ["SELECT"],
      atMs: 0,
      forMs: 3_000,
    })),
    missing: expectLocks(0, 0),
    catches: ["database-not-awaited"],
  }),
  scenario("W1", "a release is sent until it arrived, though the next connections break too", {
    catches: ["pending-release-forgotten"],
    clients: [[{ ...LONG_TTL, kind: "tryAcquire" }]],
    faults: ALL.flatMap((node) => [
      { kind: "cut", client: 0, node, requests: "delivered", atMs: 1.6 } as const,
      ...Array.from({ length: 50 }, (_, index): Fault => (
        { kind: "cut", client: 0, node, requests: "lost", atMs: 20 + 2 * index }
      )),
    ]),
    missing: expectLocks(0, 0),
  }),
  scenario("W1", "an attempt is not taken back on nodes that have denied it", {
    clients: [[{ holdMs: 2_000 }], [{ atMs: 500, kind: "tryAcquire" }]],
    healAtMs: 3_000,
    missing: ({ world: { values, ledger, nodes } }) => {
      const attempts = [...values].filter(([, { client, atMs }]) =>
        client.index === 1 && atMs < 3_000
      );
      const undone = attempts.flatMap(([value]) =>
        nodes.filter(({ index }) => ledger.of(value, index).releasedOver.size > 0)
      );
      // Two denials decide it, before the third is there.
      return attempts.length === 1 && undone.length <= 1
        ? undefined
        : `${attempts.length} attempts were taken back on ${undone.length} nodes`;
    },
    catches: ["undo-spares-no-node"],
  }),
  scenario("W1", "a release whose connection breaks is sent over the next one", {
    clients: [[{ ttlMs: 600_000, holdMs: 500 }]],
    faults: [{ kind: "cut", client: 0, node: 2, requests: "lost", atMs: 502.3 }],
    missing: expectLocks(0, 1),
    catches: ["release-forgotten"],
  }),
  scenario("W2", "a script that a node did not know is not sent again behind its undo", {
    clients: [[
      { resources: ["a", "b"], holdMs: 100 },
      { resources: ["a", "b"], holdMs: 10, atMs: 1_000, ttlMs: 60_000 },
    ], [
      // its release has the node know that script again
      { resources: ["c", "d"], holdMs: 150, atMs: 800 },
    ]],
    faults: [
      { kind: "flush-scripts", node: 2, atMs: 900 },
      {
        kind: "slow",
        client: 0,
        node: 2,
        direction: "replies",
        extraMs: 300,
        atMs: 950,
        forMs: 1_000,
      },
    ],
    missing: expectLocks(0, 2),
    catches: ["script-sent-for-undone-attempt"],
  }),
  scenario("W8", "a connection on which nothing comes back is replaced after two seconds", {
    clients: [[{ holdMs: 100 }, { atMs: 1_000, waitMs: 9_000 }]],
    faults: [0, 1].map((node) => (
      { kind: "half-open", client: 0, node, directions: ["replies"], atMs: 500 }
    )),
    missing: (outcome) => {
      const sinceMs = locksOf(outcome, 0)[1]?.sinceMs ?? Infinity;
      return sinceMs < 4_500 ? undefined : `the second lock was acquired at ${sinceMs} ms`;
    },
    catches: ["silent-connection-kept"],
  }),
  scenario("W6", "a split vote does not wait for a node that has hung for long", {
    nodeTimeoutMs: 2_000,
    clients: [[{ kind: "inspect", atMs: 2_000 }, { atMs: 8_000, ttlMs: 10_000, waitMs: 20_000 }]],
    faults: [
      { kind: "hang", node: 0, atMs: 1_000, forMs: 30_000 },
      { kind: "foreign", nodes: [1], resource: "a", ttlMs: 200, atMs: 7_990 },
    ],
    missing: expectSoon(0, 8_000, 500),
    catches: ["server-that-hangs-counts-as-connected"],
  }),
  scenario("G3", "a quorum that is reached after the validity is no lock, and is taken back", {
    clients: [[{ kind: "tryAcquire", ttlMs: 500 }]],
    nodeTimeoutMs: 2_000,
    faults: ALL.map((node) => (
      { kind: "slow", client: 0, node, direction: "replies", extraMs: 600, atMs: 0, forMs: 3_000 }
    )),
    missing: expectLocks(0, 0),
  }),
  scenario("G5", "a release goes to a node whose grant never arrived", {
    clients: [[{ ...LONG_TTL, holdMs: 500 }]],
    faults: [
      {
        kind: "slow",
        client: 0,
        node: 2,
        direction: "replies",
        extraMs: 5_000,
        atMs: 1.2,
        forMs: 5_000,
      },
    ],
    missing: expectLocks(0, 1),
  }),
];
