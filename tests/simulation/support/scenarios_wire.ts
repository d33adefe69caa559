/**
 * Scenarios about the network and about the algorithm: what is lost, late, doubled or cut, and what
 * is made of it.
 *
 * @module
 */
import type { Fault } from "./plan.ts";
import { all, expectHeldMs, expectLocks, expectSoon, locksOf, scenario } from "./scenario.ts";
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
  scenario("W1", "a lock behind a login that takes long is a lock like any other", {
    login: "password",
    clients: [[{ ...LONG_TTL, kind: "tryAcquire" }]],
    faults: ALL.map((node) => ({ kind: "hang", node, atMs: 1.2, forMs: 800 })),
    missing: all(expectLocks(0, 1), expectSoon(0, 0, 900)),
  }),
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
  scenario("W2", "a SET that waits in a hung node is done before the release that follows it", {
    clients: [[{ ...LONG_TTL }]],
    faults: [{ kind: "hang", node: 2, atMs: 1.2, forMs: 1_500 }],
    missing: expectLocks(0, 1),
  }),
  scenario("W3", "a late command of one attempt does not touch the key of the next", {
    clients: [[{ holdMs: 2_000, waitMs: 5_000 }], [{ atMs: 300, waitMs: 9_000 }]],
    faults: ALL.slice(0, 2).map((node) => (
      { kind: "slow", client: 0, node, direction: "requests", extraMs: 700, atMs: 0, forMs: 900 }
    )),
    missing: expectLocks(1, 1),
  }),
  scenario("W4", "commands that come twice delete nobody's lock", {
    clients: [[{ holdMs: 300 }, { atMs: 600, holdMs: 300 }], [{ atMs: 100, holdMs: 1_000 }]],
    faults: Array.from({ length: 24 }, (_, index): Fault => (
      { kind: "replay", client: 0, node: index % 3, atMs: 100 + 40 * index }
    )),
  }),
  scenario("W5", "partitions that flap, one direction after the other, do no harm", {
    nodes: 5,
    clients: [[{ holdMs: 3_000, autoExtend: true, ttlMs: 1_500 }], [{ atMs: 200 }], [{
      atMs: 900,
    }]],
    faults: Array.from({ length: 20 }, (_, index): Fault => ({
      kind: "partition",
      clients: [index % 3],
      nodes: [index % 5, (index + 2) % 5, (index + 3) % 5],
      directions: [index % 2 === 0 ? "requests" : "replies"],
      atMs: 200 * index,
      forMs: 150,
    })),
  }),
  scenario("W6", "one slow node of three does not set the pace", {
    clients: [[{ atMs: 100, holdMs: 500 }]],
    faults: [
      {
        kind: "slow",
        client: 0,
        node: 1,
        direction: "replies",
        extraMs: 400,
        atMs: 0,
        forMs: 9_000,
      },
    ],
    missing: expectSoon(0, 100, 3),
  }),
  scenario("W7", "twenty clients that cannot connect for a while all get their turn", {
    clients: Array.from(
      { length: 20 },
      (_, client) => [{ atMs: client, waitMs: 30_000, holdMs: 20 }],
    ),
    faults: ALL.map((node) => ({
      kind: "unconnectable",
      node,
      mood: "refused",
      atMs: 0,
      forMs: 3_000,
    })),
  }),
  scenario("G1", "the wait for a lock is not charged to its validity", {
    clients: [[{ holdMs: 1_500 }], [{ atMs: 100, ttlMs: 2_000, waitMs: 5_000 }]],
    missing: (outcome) => {
      const claimMs = locksOf(outcome, 1)[0]?.claimMs ?? 0;
      return claimMs > 1_970 ? undefined : `the lock began with ${claimMs} ms`;
    },
  }),
  scenario("G2", "seven contenders for one resource all get it, one after the other", {
    nodes: 4,
    clients: Array.from({ length: 7 }, () => [{ waitMs: 60_000, holdMs: 100 }]),
    network: { jitterMs: 2 },
    missing: ({ world }) =>
      new Set(world.checkers.all.map(({ client }) => client)).size === 7
        ? undefined
        : "one did not get it",
  }),
  scenario("G3", "a quorum that is reached after the validity is no lock, and is taken back", {
    clients: [[{ kind: "tryAcquire", ttlMs: 500 }]],
    nodeTimeoutMs: 2_000,
    faults: ALL.map((node) => (
      { kind: "slow", client: 0, node, direction: "replies", extraMs: 600, atMs: 0, forMs: 3_000 }
    )),
    missing: expectLocks(0, 0),
  }),
  scenario("G4", "a quorum that is reached though one node is down is a lock", {
    clients: [[{ holdMs: 500 }]],
    faults: [{ kind: "crash", node: 0, data: "all", silent: false, atMs: 0, forMs: 5_000 }],
    missing: all(expectLocks(0, 1), expectSoon(0, 0, 3)),
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
  scenario("G6", "a release after the validity spares the successor", {
    clients: [
      [{ ttlMs: 1_000, holdMs: 2_000, ignoresSignal: true }],
      [{ atMs: 200, holdMs: 3_000 }],
    ],
    missing: all(expectHeldMs(0, 950, 990), expectHeldMs(1, 2_990, 3_010)),
  }),
  scenario("G7", "a call that is aborted in its middle leaves nothing behind", {
    clients: [[{ ...LONG_TTL, waitMs: 5_000, abortAfterMs: 1.5 }], [{ atMs: 100, waitMs: 0 }]],
    missing: all(expectLocks(0, 0), expectLocks(1, 1)),
  }),
  scenario("G8", "a client that closes in the middle of everything leaves nothing behind", {
    clients: [
      [{ holdMs: 5_000 }, { atMs: 50, waitMs: 9_000 }, { atMs: 1_000, kind: "close" }],
      [{ atMs: 1_100, waitMs: 0 }],
    ],
    missing: expectLocks(1, 1),
  }),
];
