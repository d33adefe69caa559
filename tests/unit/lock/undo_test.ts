import { assertEquals } from "@std/assert";
import { undo } from "../../../src/lock/undo.ts";
import type { LockRequest } from "../../../src/quorum/lock_node.ts";
import { Round } from "../../../src/quorum/round.ts";
import { Cluster } from "../../support/cluster.ts";

const DOWN = new Error("down");
const POSITION = { remainingMs: 1, ahead: 0, length: 1 };

/** A round that may have set a key on each node. */
function setUp(nodeCount: number) {
  const { nodes, wheel, clock } = new Cluster(nodeCount);
  const round = new Round({ nodes, wheel, quorum: 1 }, ["k"], "v", 1_000);
  round.maybeSet = 2 ** nodeCount - 1;
  return { nodes, clock, round };
}

Deno.test("undo() releases under the round's value whatever nodes do, waits for none, and cancels the round", () => {
  const { clock, nodes, round } = setUp(3);
  nodes[1].mode = "throw";
  nodes[2].mode = "hang";
  const requests: unknown[] = [];
  const { release } = nodes[0];
  nodes[0].release = (request: LockRequest, nodeIndex) => {
    const { maybeSet, ttlMs, keys, wanted } = request;
    requests.push([maybeSet, ttlMs, keys, wanted]);
    release.call(nodes[0], request, nodeIndex);
  };
  undo(round);
  assertEquals([round.wanted, requests], [false, [[0b111, 1_000, ["k"], true]]]);
  for (const { calls } of nodes) {
    assertEquals(calls.map(({ operation, value }) => [operation, value]), [["release", "v"]]);
  }
  assertEquals(clock.timers, 0);
});

/** What a node did, whether a key may be set there then, and whether it is asked to release. */
const ANSWERS: readonly (readonly [what: string, answer: (round: Round) => void, asked: number])[] =
  [
    ["granted", (round) => round.grant(0), 1],
    ["denied a plain attempt", (round) => {
      round.maybeSet = 0;
      round.deny(0);
    }, 0],
    ["denied a script that may have set a key before", (round) => round.deny(0), 1],
    ["put the caller in its queue", (round) => {
      round.maybeSet = 0;
      round.enqueued(0, POSITION);
    }, 0],
    [
      "put the caller in its queue, but may have set a key before",
      (round) => round.enqueued(0, POSITION),
      1,
    ],
    ["failed", (round) => round.fail(0, DOWN), 1],
    ["was not sent anything", (round) => {
      round.maybeSet = 0;
      round.fail(0, DOWN);
    }, 1],
    ["is in quarantine", (round) => round.quarantine(0), 1],
    ["has not answered", () => {}, 1],
    ["denied, and was filled in later", (round) => {
      round.maybeSet = 0;
      round.deny(0);
      round.maybeSet = 1;
    }, 1],
  ];

for (const [what, answer, asked] of ANSWERS) {
  Deno.test(`undo() ${asked ? "asks" : "leaves out"} a node that ${what}`, () => {
    const { nodes, round } = setUp(1);
    answer(round);
    undo(round);
    assertEquals(nodes[0].asked("release").length, asked);
  });
}
