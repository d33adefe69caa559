import { assertEquals } from "@std/assert";
import { createClientState } from "../../../src/client_state.ts";
import { undo } from "../../../src/lock/undo.ts";
import type { LockRequest } from "../../../src/quorum/lock_node.ts";
import { Round } from "../../../src/quorum/round.ts";
import { TimerWheel } from "../../../src/time/timer_wheel.ts";
import { FakeClock } from "../../support/fake_clock.ts";
import { FakeNode } from "../../support/fake_nodes.ts";

const DOWN = new Error("down");
const PLACE = { remainingMs: 1, ahead: 0, length: 1 };

function setUp(nodeCount: number) {
  const clock = new FakeClock();
  const nodes = Array.from({ length: nodeCount }, (_, index) => new FakeNode(`n${index}`, clock));
  const client = createClientState(new TimerWheel(clock), nodes);
  return { clock, nodes, round: new Round(client, ["k"], "v", 1_000) };
}

Deno.test("undo() releases wherever a key may be set, whatever each node did, and waits for none", () => {
  const { clock, nodes, round } = setUp(3);
  nodes[1].mode = "throw";
  nodes[2].mode = "hang";
  undo(round);
  assertEquals(round.wanted, false);
  for (const { calls } of nodes) {
    assertEquals(calls.map(({ operation, value }) => [operation, value]), [["release", "v"]]);
  }
  assertEquals(clock.timers, 0);
});

Deno.test("undo() tells nodes where a key of the round may stand", () => {
  const { nodes, round } = setUp(1);
  const seen: unknown[] = [];
  nodes[0].release = ({ maybeSet, ttlMs, keys, wanted }: LockRequest) => {
    seen.push([maybeSet, ttlMs, keys, wanted]);
  };
  round.maybeSet = 1;
  undo(round);
  assertEquals(seen, [[1, 1_000, ["k"], true]]);
});

/** What a node did, whether it says that a key may be set there, and whether it is asked to release. */
const ANSWERS: readonly (readonly [what: string, answer: (round: Round) => void, asked: number])[] =
  [
    ["granted", (round) => round.grant(0), 1],
    ["denied a plain attempt", (round) => {
      round.maybeSet = 0;
      round.deny(0);
    }, 0],
    ["denied a script that may have set a key before", (round) => round.deny(0), 1],
    ["put the caller in its queue", (round) => round.enqueued(0, PLACE), 0],
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
    round.maybeSet = 1;
    answer(round);
    undo(round);
    assertEquals(nodes[0].asked("release").length, asked);
  });
}
