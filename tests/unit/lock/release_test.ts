import { assertEquals } from "@std/assert";
import {
  DENIED,
  FAILED,
  GRANTED,
  QUARANTINED,
  QUEUED,
  UNSENT,
} from "../../../src/quorum/outcome.ts";
import { takeBack } from "../../../src/lock/release.ts";
import { Round } from "../../../src/quorum/round.ts";
import { Cluster } from "../../support/cluster.ts";
import type { KeyspaceNode } from "../../support/keyspace_node.ts";

const DOWN = new Error("down");
const POSITION = {
  remainingMs: 1,
  ahead: 0,
  length: 1,
  score: 0,
  timeMs: 0,
  foreign: false,
  value: "",
  turnMs: 0,
};

/** A round that may have set a key on each node. */
function setUp(nodeCount: number) {
  const { nodes, wheel, clock } = new Cluster(nodeCount);
  const round = new Round({ nodes, wheel, quorum: 1, closed: false }, ["k"], "v", 1_000);
  return { nodes, clock, round };
}

/** What a node answered, and whether a key may be set there, so that it is asked to release. */
const ANSWERS: readonly (readonly [
  what: string,
  answer: (round: Round, node: KeyspaceNode) => void,
  mayHaveKeys: boolean,
])[] = [
  ["granted", (round) => round.answer(0, GRANTED), true],
  ["denied", (round) => round.answer(0, DENIED), false],
  ["put the caller in its queue", (round) => round.answer(0, QUEUED, POSITION), false],
  [
    "denied, but resends",
    (round, node) => {
      node.resends = true;
      round.answer(0, DENIED);
    },
    true,
  ],
  ["failed", (round) => round.answer(0, FAILED, DOWN), true],
  ["was not sent anything", (round) => round.answer(0, UNSENT, DOWN), false],
  ["is in quarantine", (round) => round.answer(0, QUARANTINED), true],
  ["has not answered", () => {}, true],
  [
    "denied, and was filled in later",
    (round) => {
      round.answer(0, DENIED);
      round.filledInOn = 1;
    },
    true,
  ],
];

for (const [what, answer, mayHaveKeys] of ANSWERS) {
  Deno.test(`takeBack() ${mayHaveKeys ? "asks" : "leaves out"} a node that ${what}`, () => {
    const { nodes, round } = setUp(1);
    answer(round, nodes[0]);
    assertEquals([round.mayHaveKeys(0), round.follow().mayHaveKeys(0)], [mayHaveKeys, mayHaveKeys]);
    takeBack(round, round.follow());
    assertEquals(nodes[0].asked("release").length, mayHaveKeys ? 1 : 0);
  });
}
