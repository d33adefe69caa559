import { assertEquals, assertStrictEquals } from "@std/assert";
import { decide, type Decision, quorumSize } from "../../../src/quorum/quorum.ts";
import type { LockNode } from "../../../src/quorum/lock_node.ts";
import {
  askToAcquire,
  askToExtend,
  askToRelease,
  type Electorate,
  electorateOf,
  Round,
} from "../../../src/quorum/round.ts";
import { undo } from "../../../src/lock/undo.ts";
import { TimerWheel } from "../../../src/time/timer_wheel.ts";
import { FakeClock, runMicrotasks } from "../../support/fake_clock.ts";
import { countListeners, FakeNode } from "../../support/fake_nodes.ts";

const TIMEOUT_MS = 100;
const DOWN = new Error("down");

type Answer = "granted" | "denied" | "failed" | "silent";
const ANSWERS: readonly Answer[] = ["granted", "denied", "failed", "silent"];

interface Bench extends Electorate {
  readonly clock: FakeClock;
  readonly nodes: readonly FakeNode[];
}

function setUp(nodeCount: number): Bench {
  const clock = new FakeClock();
  const nodes = Array.from({ length: nodeCount }, (_, index) => new FakeNode(`n${index}`, clock));
  return { ...electorateOf(new TimerWheel(clock), nodes), clock, nodes };
}

function newRound(electorate: Electorate): Round {
  return new Round(electorate, ["k"], "v", 1_000);
}

function cast(round: Round, seat: number, answer: Answer): void {
  if (answer === "granted") round.grant(seat);
  if (answer === "denied") round.deny(seat);
  if (answer === "failed") round.fail(seat, DOWN);
}

/** Every way in which `length` nodes can answer. */
function vectors(length: number): Answer[][] {
  if (length === 0) return [[]];
  return vectors(length - 1).flatMap((rest) => ANSWERS.map((answer) => [...rest, answer]));
}

/** Arranges the seats of a vote in the orders that its answers are to come in. */
const ORDERS: readonly (readonly [name: string, order: (seats: number[]) => number[]])[] = [
  ["in the order of seats", (seats) => seats],
  ["in reverse", (seats) => seats.toReversed()],
  [
    "from the middle",
    (seats) => [...seats.slice(seats.length / 2), ...seats.slice(0, seats.length / 2)],
  ],
];

Deno.test("quorumSize() is the smallest number of nodes of which any two sets share one", () => {
  assertEquals([1, 2, 3, 4, 5, 6, 7, 31].map(quorumSize), [1, 2, 2, 3, 3, 4, 4, 16]);
});

Deno.test("decide() is open only while both outcomes are possible", () => {
  for (let nodeCount = 1; nodeCount <= 31; nodeCount++) {
    const quorum = quorumSize(nodeCount);
    for (let granted = 0; granted <= nodeCount; granted++) {
      for (let pending = 0; pending + granted <= nodeCount; pending++) {
        let expected: Decision = "open";
        if (granted >= quorum) expected = "granted";
        else if (granted + pending < quorum) expected = "refused";
        assertEquals(decide(granted, pending, quorum), expected);
      }
      assertEquals(decide(granted, 0, quorum) === "open", false);
    }
  }
});

for (let nodeCount = 1; nodeCount <= 7; nodeCount++) {
  for (const [name, order] of ORDERS) {
    Deno.test(`Round of ${nodeCount} settles on every vote, answers coming ${name}`, async () => {
      const electorate = setUp(nodeCount);
      const { quorum } = electorate;
      const seats = order(Array.from({ length: nodeCount }, (_, seat) => seat));
      const rounds = vectors(nodeCount).map((answers) => {
        const round = newRound(electorate);
        const state = { answers, round, settled: false };
        round.ask(() => {}, TIMEOUT_MS).then(() => state.settled = true);
        for (const seat of seats) cast(round, seat, answers[seat]);
        return state;
      });
      await runMicrotasks();
      for (const { answers, round, settled } of rounds) {
        const count = (answer: Answer) => answers.filter((other) => other === answer).length;
        const early = count("granted") >= quorum || count("granted") + count("silent") < quorum;
        assertEquals(settled, early, answers.join());
        assertEquals(round.decision === "open", !early);
      }
      await electorate.clock.advance(TIMEOUT_MS);
      for (const { answers, round, settled } of rounds) {
        const count = (answer: Answer) => answers.filter((other) => other === answer).length;
        assertEquals(settled, true);
        assertEquals(round.decision, count("granted") >= quorum ? "granted" : "refused");
        assertEquals([round.granted, round.denied], [count("granted"), count("denied")]);
        assertEquals(round.deniedByMajority, count("denied") > nodeCount - quorum);
        const lost = count("failed") + count("silent");
        if (round.failed === lost) assertEquals(round.unanswered, lost > nodeCount - quorum);
        for (const { node, outcome, error } of round.votes) {
          const answer = answers[Number(node.slice(1))];
          assertEquals(outcome, answer === "silent" ? "timed-out" : answer);
          assertEquals(error, answer === "failed" ? DOWN : undefined);
        }
      }
      assertEquals(electorate.wheel.size, 0);
    });
  }
}

Deno.test("Round.ask() asks every node in its seat before anything is decided", async () => {
  const electorate = setUp(3);
  const asked: unknown[] = [];
  const round = newRound(electorate);
  await round.ask((node, ballot, seat) => {
    asked.push([node.name, ballot === round, seat]);
    ballot.grant(seat);
  }, TIMEOUT_MS);
  assertEquals(asked, [["n0", true, 0], ["n1", true, 1], ["n2", true, 2]]);
  assertEquals(round.granted, 3);
});

Deno.test("Round.ask() sets no timer where every node answers at once", async () => {
  const electorate = setUp(3);
  await newRound(electorate).ask((_, ballot, seat) => ballot.grant(seat), TIMEOUT_MS);
  assertEquals(electorate.wheel.size, 0);
  assertEquals(electorate.clock.timersAlive, 0);
});

Deno.test("Round takes a node that throws for one that failed", async () => {
  const electorate = setUp(3);
  const round = newRound(electorate);
  await round.ask((_, ballot, seat) => {
    if (seat === 0) throw DOWN;
    if (seat === 1) throw "text";
    ballot.grant(seat);
  }, TIMEOUT_MS);
  assertEquals(round.decision, "refused");
  assertEquals(round.votes.map(({ outcome }) => outcome), ["failed", "failed", "granted"]);
  assertStrictEquals(round.votes[0].error, DOWN);
  assertEquals(round.votes[1].error?.message, "text");
});

Deno.test("Round counts a node's first answer only", async () => {
  const electorate = setUp(5);
  const round = newRound(electorate);
  const asked = round.ask(() => {}, TIMEOUT_MS);
  for (let times = 0; times < 3; times++) {
    round.grant(0);
    round.deny(0);
    round.fail(0, DOWN);
  }
  assertEquals([round.granted, round.denied, round.failed, round.decision], [1, 0, 0, "open"]);
  await electorate.clock.advance(TIMEOUT_MS);
  await asked;
});

Deno.test("Round.votes takes in votes that come after the decision", async () => {
  const electorate = setUp(3);
  const round = newRound(electorate);
  const asked = round.ask(() => {}, TIMEOUT_MS);
  round.grant(0);
  round.grant(1);
  await asked;
  assertEquals(round.votes.map(({ node }) => node), ["n0", "n1"]);
  electorate.clock.block(30);
  round.deny(2);
  assertEquals(round.votes[2], { node: "n2", outcome: "denied", elapsedMs: 30 });
});

Deno.test("Round.votes takes in a vote that comes after its time-out, in place of it", async () => {
  const electorate = setUp(3);
  const round = newRound(electorate);
  const asked = round.ask(() => {}, TIMEOUT_MS);
  round.grant(0);
  await electorate.clock.advance(TIMEOUT_MS);
  await asked;
  assertEquals(round.votes.map(({ outcome }) => outcome), ["granted", "timed-out", "timed-out"]);
  assertEquals([round.failed, round.unanswered], [2, true]);
  electorate.clock.block(50);
  round.grant(2);
  assertEquals(round.votes[2], { node: "n2", outcome: "granted", elapsedMs: 150 });
  assertEquals([round.granted, round.failed, round.unanswered], [2, 1, false]);
});

Deno.test("Round.votes tells when each answer came", async () => {
  const electorate = setUp(3);
  const round = newRound(electorate);
  const asked = round.ask(() => {}, TIMEOUT_MS);
  await electorate.clock.advance(10);
  round.deny(2);
  await electorate.clock.advance(10);
  round.grant(0, electorate.clock.monotonicMs() - 5);
  await electorate.clock.advance(80);
  await asked;
  assertEquals(round.votes, [
    { node: "n0", outcome: "granted", elapsedMs: 15 },
    { node: "n1", outcome: "timed-out", elapsedMs: 100 },
    { node: "n2", outcome: "denied", elapsedMs: 10 },
  ]);
});

Deno.test("Round counts a node's time from when it could first be asked", async () => {
  const electorate = setUp(3);
  electorate.nodes[0].readyAtMs = Infinity;
  const round = newRound(electorate);
  let settled = false;
  round.ask(() => {}, TIMEOUT_MS).then(() => settled = true);
  round.grant(1);
  await electorate.clock.advance(400);
  assertEquals([settled, round.decision], [false, "open"]);
  electorate.nodes[0].readyAtMs = electorate.clock.monotonicMs();
  await electorate.clock.advance(99);
  assertEquals(settled, false);
  round.grant(0);
  await runMicrotasks();
  assertEquals([settled, round.decision], [true, "granted"]);
});

Deno.test("Round gives up on a node one time-out after it could first be asked, and a little", async () => {
  const electorate = setUp(1);
  electorate.nodes[0].readyAtMs = Infinity;
  const round = newRound(electorate);
  let settled = false;
  round.ask(() => {}, TIMEOUT_MS).then(() => settled = true);
  await electorate.clock.advance(450);
  electorate.nodes[0].readyAtMs = electorate.clock.monotonicMs();
  await electorate.clock.advance(2 * TIMEOUT_MS);
  assertEquals([settled, round.decision, round.votes[0].outcome], [true, "refused", "timed-out"]);
});

Deno.test("Round does not wait longer for a node that was ready before it began", async () => {
  const electorate = setUp(1);
  electorate.nodes[0].readyAtMs = electorate.clock.monotonicMs() - 5_000;
  let settled = false;
  newRound(electorate).ask(() => {}, TIMEOUT_MS).then(() => settled = true);
  await electorate.clock.advance(TIMEOUT_MS);
  assertEquals(settled, true);
});

Deno.test("Round waits its time although the wall clock jumps ahead", async () => {
  const electorate = setUp(1);
  const round = newRound(electorate);
  let settled = false;
  round.ask(() => {}, TIMEOUT_MS).then(() => settled = true);
  electorate.clock.stepWall(60_000);
  await electorate.clock.advance(TIMEOUT_MS - 1);
  assertEquals(settled, false);
  await electorate.clock.advance(1);
  assertEquals(settled, true);
});

Deno.test("Round keeps the process alive while it waits, and no longer", async () => {
  const electorate = setUp(3);
  const round = newRound(electorate);
  round.ask(() => {}, TIMEOUT_MS);
  assertEquals(electorate.clock.timersAlive, 1);
  await electorate.clock.advance(TIMEOUT_MS);
  assertEquals(electorate.clock.timersAlive, 0);
});

Deno.test("Round.ask() is cut short by its signal, and leaves no listener", async () => {
  const electorate = setUp(3);
  const controller = new AbortController();
  const listeners = countListeners(controller.signal);
  const round = newRound(electorate);
  const asked = round.ask(() => {}, TIMEOUT_MS, controller.signal);
  assertEquals(listeners(), 1);
  controller.abort();
  await asked;
  assertEquals([round.decision, listeners(), electorate.wheel.size], ["open", 0, 0]);
});

Deno.test("Round.ask() leaves no listener once it is decided", async () => {
  const electorate = setUp(3);
  const { signal } = new AbortController();
  const listeners = countListeners(signal);
  for (const answer of ["granted", "denied", "failed"] as const) {
    const round = newRound(electorate);
    const asked = round.ask(() => {}, TIMEOUT_MS, signal);
    cast(round, 0, answer);
    cast(round, 1, answer);
    await asked;
  }
  assertEquals(listeners(), 0);
});

Deno.test("Round.ask() settles where its signal is aborted while the nodes are asked", async () => {
  const electorate = setUp(3);
  const controller = new AbortController();
  const round = newRound(electorate);
  await round.ask(
    (_, ballot, seat) => {
      controller.abort();
      if (seat === 0) ballot.grant(seat);
    },
    TIMEOUT_MS,
    controller.signal,
  );
  assertEquals([round.granted, electorate.wheel.size], [1, 0]);
});

Deno.test("Round settles when the client closes", async () => {
  const electorate = setUp(3);
  const round = newRound(electorate);
  const asked = round.ask(() => {}, TIMEOUT_MS);
  electorate.wheel.announceClose();
  await asked;
  assertEquals(electorate.wheel.size, 0);
});

Deno.test("Round begins when it is made, by both clocks", async () => {
  const electorate = setUp(1);
  const round = newRound(electorate);
  assertEquals(round.monotonicMs, electorate.clock.monotonicMs());
  assertEquals(round.wallMs, electorate.clock.wallMs());
  electorate.clock.block(10);
  await round.ask((_, ballot, seat) => ballot.grant(seat), TIMEOUT_MS);
  assertEquals(round.votes[0].elapsedMs, 10);
});

Deno.test("Round.wanted is false once it, or the round it follows, is withdrawn", () => {
  const electorate = setUp(1);
  const round = newRound(electorate);
  const following = round.follow();
  assertEquals([round.wanted, following.wanted], [true, true]);
  round.withdraw();
  assertEquals([round.wanted, following.wanted], [false, false]);
});

Deno.test("Round.follow() is about the same keys and value, and knows where they may stand", () => {
  const electorate = setUp(3);
  const round = newRound(electorate);
  round.mayStand = 0b101;
  const following = round.follow(5_000);
  assertEquals(
    [following.keys, following.value, following.ttlMs, following.mayStand],
    [["k"], "v", 5_000, 0b101],
  );
});

Deno.test("askToAcquire, askToExtend and askToRelease call the node's methods", async () => {
  const electorate = setUp(1);
  for (const question of [askToAcquire, askToExtend, askToRelease]) {
    await newRound(electorate).ask(question, TIMEOUT_MS);
  }
  const { calls } = electorate.nodes[0];
  assertEquals(calls.map(({ operation }) => operation), ["acquire", "extend", "release"]);
});

Deno.test("undo() releases on every node, whatever each did, and waits for none", () => {
  const electorate = setUp(3);
  electorate.nodes[1].mode = "throw";
  electorate.nodes[2].mode = "hang";
  const round = newRound(electorate);
  undo(round);
  assertEquals(round.wanted, false);
  for (const { calls } of electorate.nodes) {
    assertEquals(calls.map(({ operation, value }) => [operation, value]), [["release", "v"]]);
  }
  assertEquals(electorate.clock.timers, 0);
});

Deno.test("undo() tells nodes where a key of the round may stand", () => {
  const seen: unknown[] = [];
  const node: LockNode = {
    name: "n",
    acquire() {},
    extend() {},
    release: ({ mayStand, ttlMs, keys, wanted }) => seen.push([mayStand, ttlMs, keys, wanted]),
    inspect: () => Promise.resolve(undefined),
  };
  const round = newRound({ ...setUp(1), nodes: [node] });
  round.mayStand = 1;
  undo(round);
  assertEquals(seen, [[1, 1_000, ["k"], true]]);
});
