/**
 * Scenarios about nodes: clocks, lost data, errors, silence.
 *
 * @module
 */
import type { Fault } from "./plan.ts";
import { all, expectHeldMs, expectLocks, expectSoon, scenario } from "./scenario.ts";
import type { Scenario } from "./scenario.ts";

/** One holds for long, another comes to see whether it is let in. */
export const HOLDER_AND_RIVAL = [[{ ttlMs: 6_000, holdMs: 5_000 }], [{
  atMs: 500,
  ttlMs: 6_000,
  holdMs: 4_000,
}]];
/** Has the holder's lock rest on nodes 1 and 2 alone. */
export const BARE_QUORUM: Fault = {
  kind: "partition",
  clients: [0],
  nodes: [2],
  directions: ["requests", "replies"],
  atMs: 0,
  forMs: 9_000,
};
export const BOTH = [0, 1];
export const RIVAL_SHUT_OUT = expectHeldMs(0, 4_990, 5_010);

/** See the module. */
export const NODE_SCENARIOS: readonly Scenario[] = [
  scenario("N1", "a node's clock that jumps ahead takes one of three votes, and lets nobody in", {
    clients: HOLDER_AND_RIVAL,
    faults: [{ kind: "node-step", node: 0, stepMs: 60_000, atMs: 1_000 }],
    missing: RIVAL_SHUT_OUT,
  }),
  scenario("N1", "the clocks of two nodes that jump ahead let another in", {
    clients: HOLDER_AND_RIVAL,
    faults: BOTH.map((node) => ({ kind: "node-step", node, stepMs: 60_000, atMs: 1_000 })),
    outside: "mutual-exclusion",
  }),
  scenario("N1", "nodes' clocks that jump back keep keys for longer, and no more", {
    clients: HOLDER_AND_RIVAL,
    faults: BOTH.map((node) => ({ kind: "node-step", node, stepMs: -5_000, atMs: 1_000 })),
    missing: RIVAL_SHUT_OUT,
  }),
  scenario(
    "N2",
    "a node whose clock has stopped keeps a dead holder's key, and a quorum goes on",
    {
      clients: [[{ ttlMs: 2_000 }], [{ atMs: 500 }]],
      faults: [
        { kind: "node-rate", node: 0, rate: 0, atMs: 0, forMs: 9_000 },
        { kind: "die", client: 0, silent: true, atMs: 700 },
      ],
      missing: expectSoon(1, 2_000, 2_100),
    },
  ),
  scenario("N2", "two nodes whose clocks run twice as fast let another in", {
    clients: HOLDER_AND_RIVAL,
    faults: BOTH.map((node) => ({ kind: "node-rate", node, rate: 2, atMs: 0, forMs: 9_000 })),
    outside: "mutual-exclusion",
  }),
  scenario("N3", "a node that restarts empty where all three granted lets nobody in", {
    clients: HOLDER_AND_RIVAL,
    faults: [{ kind: "crash", node: 1, data: "none", silent: false, atMs: 1_000, forMs: 200 }],
    missing: RIVAL_SHUT_OUT,
  }),
  scenario("N3", "a node that restarts empty where a bare quorum granted lets another in", {
    clients: HOLDER_AND_RIVAL,
    faults: [
      BARE_QUORUM,
      { kind: "crash", node: 1, data: "none", silent: false, atMs: 1_000, forMs: 200 },
    ],
    outside: "mutual-exclusion",
  }),
  scenario("N4", "a node that has lost its last second forgets a SET, and lets another in", {
    clients: HOLDER_AND_RIVAL,
    faults: [
      BARE_QUORUM,
      { kind: "crash", node: 1, data: 1_000, silent: false, atMs: 400, forMs: 200 },
    ],
    outside: "mutual-exclusion",
  }),
  scenario("N4", "nodes that have lost a DEL keep the key until its TTL, and no longer", {
    clients: [[{ ttlMs: 3_000, holdMs: 1_000 }], [{ atMs: 1_500 }]],
    faults: BOTH.map((node) => (
      { kind: "crash", node, data: 300, silent: false, atMs: 1_100, forMs: 100 }
    )),
    missing: expectSoon(1, 3_000, 2_100),
  }),
  scenario("N5", "a node that restarts twice inside an acquisition costs one vote", {
    clients: [[{ holdMs: 2_000 }], [{ atMs: 500 }]],
    faults: [
      { kind: "crash", node: 0, data: "all", silent: false, atMs: 1.2, forMs: 0.5 },
      { kind: "crash", node: 0, data: "all", silent: false, atMs: 2.2, forMs: 100 },
    ],
    missing: all(expectLocks(0, 1), expectHeldMs(0, 1_990, 2_010)),
  }),
  scenario("N5", "a majority that restarts at once with its data changes nothing", {
    clients: HOLDER_AND_RIVAL,
    faults: BOTH.map((node) => (
      { kind: "crash", node, data: "all", silent: false, atMs: 1_000, forMs: 500 }
    )),
    missing: RIVAL_SHUT_OUT,
  }),
  scenario("N5", "a lock that is extended does not erode as nodes restart empty one by one", {
    clients: [[{ ttlMs: 3_000, holdMs: 9_000, autoExtend: true }], [{ atMs: 500, waitMs: 9_000 }]],
    faults: [0, 1, 2].map((node) => (
      { kind: "crash", node, data: "none", silent: false, atMs: 1_500 + 2_500 * node, forMs: 100 }
    )),
    missing: expectHeldMs(0, 8_990, 9_010),
  }),
  scenario("N5", "a lock that is not extended erodes as nodes restart empty one by one", {
    clients: HOLDER_AND_RIVAL,
    faults: [0, 1, 2].map((node) => (
      { kind: "crash", node, data: "none", silent: false, atMs: 1_000 + 500 * node, forMs: 100 }
    )),
    outside: "mutual-exclusion",
  }),
  scenario("N7", "a node that evicts the key where a bare quorum granted lets another in", {
    clients: HOLDER_AND_RIVAL,
    faults: [BARE_QUORUM, { kind: "evict", node: 0, atMs: 1_000 }],
    outside: "mutual-exclusion",
  }),
  scenario("N8", "one node that is flushed lets nobody in", {
    clients: HOLDER_AND_RIVAL,
    faults: [{ kind: "flush", node: 0, atMs: 1_000 }],
    missing: RIVAL_SHUT_OUT,
  }),
  scenario("N8", "two nodes that are flushed let another in", {
    clients: HOLDER_AND_RIVAL,
    faults: BOTH.map((node) => ({ kind: "flush", node, atMs: 1_000 })),
    outside: "mutual-exclusion",
  }),
  scenario("N9", "scripts that are flushed again and again stop nobody", {
    clients: [[{ ttlMs: 900, holdMs: 3_000, autoExtend: true, resources: ["a", "b"] }], [{
      atMs: 500,
    }]],
    faults: Array.from({ length: 30 }, (_, index) => (
      { kind: "flush-scripts", node: index % 3, atMs: 150 * index }
    )),
    missing: all(expectHeldMs(0, 2_990, 3_010), expectLocks(1, 1)),
  }),
  scenario("N10", "a minority that answers errors costs nothing", {
    clients: [[{ atMs: 100, holdMs: 500 }]],
    faults: [{
      ...{ kind: "errors", node: 0, text: "LOADING Redis is loading the dataset in memory" },
      ...{ commands: ["SET", "EVAL", "EVALSHA"], atMs: 0, forMs: 5_000 },
    }],
    missing: expectSoon(0, 100, 3),
  }),
  scenario("N10", "a majority that answers errors is no quorum, and never somebody else's lock", {
    clients: [[{ kind: "tryAcquire", atMs: 100 }]],
    faults: BOTH.map((node) => ({
      ...{ kind: "errors", node, text: "OOM command not allowed when used memory > 'maxmemory'." },
      ...{ commands: ["SET"], atMs: 0, forMs: 5_000 },
    })),
    missing: expectLocks(0, 0),
  }),
  scenario("N11", "a hung minority costs nothing", {
    nodes: 5,
    clients: [[{ atMs: 100, holdMs: 500 }]],
    faults: BOTH.map((node) => ({ kind: "hang", node, atMs: 0, forMs: 5_000 })),
    missing: expectSoon(0, 100, 3),
  }),
  scenario("N11", "a majority that hangs while a lock is held ends it in time", {
    clients: [[{ kind: "using", ttlMs: 2_000, holdMs: 5_000 }]],
    faults: BOTH.map((node) => ({ kind: "hang", node, atMs: 1_000, forMs: 6_000 })),
    // Extended last before the nodes hang, at two thirds of a second.
    missing: expectHeldMs(0, 2_500, 2_650),
  }),
];
