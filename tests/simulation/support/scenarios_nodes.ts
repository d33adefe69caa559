/** Scenarios about nodes: clocks, lost data, errors, silence. */
import type { Fault } from "./plan.ts";
import { expectHeldMs, scenario } from "./scenario.ts";
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
];
