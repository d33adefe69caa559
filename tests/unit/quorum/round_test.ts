import { assertEquals, assertStrictEquals } from "@std/assert";
import { decide, type Decision, quorumSize } from "../../../src/quorum/quorum.ts";
import { askToAcquire, askToExtend, askToRelease, Round } from "../../../src/quorum/round.ts";
import { type ClientState, createClientState } from "../../../src/client_state.ts";
import { TimerWheel } from "../../../src/time/timer_wheel.ts";
import { FakeClock, runMicrotasks } from "../../support/fake_clock.ts";
import { countListeners, FakeNode } from "../../support/fake_nodes.ts";

const TIMEOUT_MS = 100;
const DOWN = new Error("down");

type Answer = "granted" | "denied" | "failed" | "silent";
const ANSWERS: readonly Answer[] = ["granted", "denied", "failed", "silent"];

interface Bench extends ClientState {
  readonly clock: FakeClock;
  readonly nodes: readonly FakeNode[];
}

function setUp(nodeCount: number): Bench {
  const clock = new FakeClock();
  const nodes = Array.from({ length: nodeCount }, (_, index) => new FakeNode(`n${index}`, clock));
  return { ...createClientState(new TimerWheel(clock), nodes), clock, nodes };
}

function newRound(client: ClientState): Round {
  return new Round(client, ["k"], "v", 1_000);
}

function cast(round: Round, nodeIndex: number, answer: Answer): void {
  if (answer === "granted") round.grant(nodeIndex);
  if (answer === "denied") round.deny(nodeIndex);
  if (answer === "failed") round.fail(nodeIndex, DOWN);
}

/** Every way in which `length` nodes can answer. */
function vectors(length: number): Answer[][] {
  if (length === 0) return [[]];
  return vectors(length - 1).flatMap((rest) => ANSWERS.map((answer) => [...rest, answer]));
}

/** Arranges the seats of a vote in the orders that its answers are to come in. */
const ORDERS: readonly (readonly [name: string, order: (nodeIndexes: number[]) => number[]])[] = [
  ["in the order of seats", (nodeIndexes) => nodeIndexes],
  ["in reverse", (nodeIndexes) => nodeIndexes.toReversed()],
  [
    "from the middle",
    (
      nodeIndexes,
    ) => [
      ...nodeIndexes.slice(nodeIndexes.length / 2),
      ...nodeIndexes.slice(0, nodeIndexes.length / 2),
    ],
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
      const client = setUp(nodeCount);
      const { quorum } = client;
      const nodeIndexes = order(Array.from({ length: nodeCount }, (_, nodeIndex) => nodeIndex));
      const rounds = vectors(nodeCount).map((answers) => {
        const round = newRound(client);
        const state = { answers, round, settled: false };
        round.ask(() => {}, TIMEOUT_MS).then(() => state.settled = true);
        for (const nodeIndex of nodeIndexes) cast(round, nodeIndex, answers[nodeIndex]);
        return state;
      });
      await runMicrotasks();
      for (const { answers, round, settled } of rounds) {
        const count = (answer: Answer) => answers.filter((other) => other === answer).length;
        const early = count("granted") >= quorum || count("granted") + count("silent") < quorum;
        assertEquals(settled, early, answers.join());
        assertEquals(round.decision === "open", !early);
      }
      await client.clock.advance(TIMEOUT_MS);
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
      assertEquals(client.wheel.size, 0);
    });
  }
}

Deno.test("Round.ask() asks every node in its seat before anything is decided", async () => {
  const client = setUp(3);
  const asked: unknown[] = [];
  const round = newRound(client);
  await round.ask((node, request, nodeIndex) => {
    asked.push([node.name, request === round, nodeIndex]);
    request.grant(nodeIndex);
  }, TIMEOUT_MS);
  assertEquals(asked, [["n0", true, 0], ["n1", true, 1], ["n2", true, 2]]);
  assertEquals(round.granted, 3);
});

Deno.test("Round.ask() sets no timer where every node answers at once", async () => {
  const client = setUp(3);
  await newRound(client).ask((_, request, nodeIndex) => request.grant(nodeIndex), TIMEOUT_MS);
  assertEquals(client.wheel.size, 0);
  assertEquals(client.clock.timersAlive, 0);
});

Deno.test("Round takes a node that throws for one that failed", async () => {
  const client = setUp(3);
  const round = newRound(client);
  await round.ask((_, request, nodeIndex) => {
    if (nodeIndex === 0) throw DOWN;
    if (nodeIndex === 1) throw "text";
    request.grant(nodeIndex);
  }, TIMEOUT_MS);
  assertEquals(round.decision, "refused");
  assertEquals(round.votes.map(({ outcome }) => outcome), ["failed", "failed", "granted"]);
  assertStrictEquals(round.votes[0].error, DOWN);
  assertEquals(round.votes[1].error?.message, "text");
});

Deno.test("Round counts a node's first answer only", async () => {
  const client = setUp(5);
  const round = newRound(client);
  const asked = round.ask(() => {}, TIMEOUT_MS);
  for (let times = 0; times < 3; times++) {
    round.grant(0);
    round.deny(0);
    round.fail(0, DOWN);
  }
  assertEquals([round.granted, round.denied, round.failed, round.decision], [1, 0, 0, "open"]);
  await client.clock.advance(TIMEOUT_MS);
  await asked;
});

Deno.test("Round.votes takes in votes that come after the decision", async () => {
  const client = setUp(3);
  const round = newRound(client);
  const asked = round.ask(() => {}, TIMEOUT_MS);
  round.grant(0);
  round.grant(1);
  await asked;
  assertEquals(round.votes.map(({ node }) => node), ["n0", "n1"]);
  client.clock.block(30);
  round.deny(2);
  assertEquals(round.votes[2], { node: "n2", outcome: "denied", elapsedMs: 30 });
});

Deno.test("Round.votes takes in a vote that comes after its time-out, in place of it", async () => {
  const client = setUp(3);
  const round = newRound(client);
  const asked = round.ask(() => {}, TIMEOUT_MS);
  round.grant(0);
  await client.clock.advance(TIMEOUT_MS);
  await asked;
  assertEquals(round.votes.map(({ outcome }) => outcome), ["granted", "timed-out", "timed-out"]);
  assertEquals([round.failed, round.unanswered], [2, true]);
  client.clock.block(50);
  round.grant(2);
  assertEquals(round.votes[2], { node: "n2", outcome: "granted", elapsedMs: 150 });
  assertEquals([round.granted, round.failed, round.unanswered], [2, 1, false]);
});

Deno.test("Round.votes tells when each answer came", async () => {
  const client = setUp(3);
  const round = newRound(client);
  const asked = round.ask(() => {}, TIMEOUT_MS);
  await client.clock.advance(10);
  round.deny(2);
  await client.clock.advance(10);
  round.grant(0, client.clock.monotonicMs() - 5);
  await client.clock.advance(80);
  await asked;
  assertEquals(round.votes, [
    { node: "n0", outcome: "granted", elapsedMs: 15 },
    { node: "n1", outcome: "timed-out", elapsedMs: 100 },
    { node: "n2", outcome: "denied", elapsedMs: 10 },
  ]);
});

Deno.test("Round counts a node's time from when it could first be asked", async () => {
  const client = setUp(3);
  client.nodes[0].readyAtMs = Infinity;
  const round = newRound(client);
  let settled = false;
  round.ask(() => {}, TIMEOUT_MS).then(() => settled = true);
  round.grant(1);
  await client.clock.advance(400);
  assertEquals([settled, round.decision], [false, "open"]);
  client.nodes[0].readyAtMs = client.clock.monotonicMs();
  await client.clock.advance(99);
  assertEquals(settled, false);
  round.grant(0);
  await runMicrotasks();
  assertEquals([settled, round.decision], [true, "granted"]);
});

Deno.test("Round gives up on a node one time-out after it could first be asked, and a little", async () => {
  const client = setUp(1);
  client.nodes[0].readyAtMs = Infinity;
  const round = newRound(client);
  let settled = false;
  round.ask(() => {}, TIMEOUT_MS).then(() => settled = true);
  await client.clock.advance(450);
  client.nodes[0].readyAtMs = client.clock.monotonicMs();
  await client.clock.advance(2 * TIMEOUT_MS);
  assertEquals([settled, round.decision, round.votes[0].outcome], [true, "refused", "timed-out"]);
});

Deno.test("Round does not wait longer for a node that was ready before it began", async () => {
  const client = setUp(1);
  client.nodes[0].readyAtMs = client.clock.monotonicMs() - 5_000;
  let settled = false;
  newRound(client).ask(() => {}, TIMEOUT_MS).then(() => settled = true);
  await client.clock.advance(TIMEOUT_MS);
  assertEquals(settled, true);
});

Deno.test("Round waits its time although the wall clock jumps ahead", async () => {
  const client = setUp(1);
  const round = newRound(client);
  let settled = false;
  round.ask(() => {}, TIMEOUT_MS).then(() => settled = true);
  client.clock.stepWall(60_000);
  await client.clock.advance(TIMEOUT_MS - 1);
  assertEquals(settled, false);
  await client.clock.advance(1);
  assertEquals(settled, true);
});

Deno.test("Round keeps the process alive while it waits, and no longer", async () => {
  const client = setUp(3);
  const round = newRound(client);
  round.ask(() => {}, TIMEOUT_MS);
  assertEquals(client.clock.timersAlive, 1);
  await client.clock.advance(TIMEOUT_MS);
  assertEquals(client.clock.timersAlive, 0);
});

Deno.test("Round.ask() is cut short by its signal, and leaves no listener", async () => {
  const client = setUp(3);
  const controller = new AbortController();
  const listeners = countListeners(controller.signal);
  const round = newRound(client);
  const asked = round.ask(() => {}, TIMEOUT_MS, controller.signal);
  assertEquals(listeners(), 1);
  controller.abort();
  await asked;
  assertEquals([round.decision, listeners(), client.wheel.size], ["open", 0, 0]);
});

Deno.test("Round.ask() leaves no listener once it is decided", async () => {
  const client = setUp(3);
  const { signal } = new AbortController();
  const listeners = countListeners(signal);
  for (const answer of ["granted", "denied", "failed"] as const) {
    const round = newRound(client);
    const asked = round.ask(() => {}, TIMEOUT_MS, signal);
    cast(round, 0, answer);
    cast(round, 1, answer);
    await asked;
  }
  assertEquals(listeners(), 0);
});

Deno.test("Round.ask() settles where its signal is aborted while the nodes are asked", async () => {
  const client = setUp(3);
  const controller = new AbortController();
  const round = newRound(client);
  await round.ask(
    (_, request, nodeIndex) => {
      controller.abort();
      if (nodeIndex === 0) request.grant(nodeIndex);
    },
    TIMEOUT_MS,
    controller.signal,
  );
  assertEquals([round.granted, client.wheel.size], [1, 0]);
});

Deno.test("Round settles when the client closes", async () => {
  const client = setUp(3);
  const round = newRound(client);
  const asked = round.ask(() => {}, TIMEOUT_MS);
  client.wheel.announceClose();
  await asked;
  assertEquals(client.wheel.size, 0);
});

Deno.test("Round begins when it is made, by both clocks", async () => {
  const client = setUp(1);
  const round = newRound(client);
  assertEquals(round.monotonicMs, client.clock.monotonicMs());
  assertEquals(round.wallMs, client.clock.wallMs());
  client.clock.block(10);
  await round.ask((_, request, nodeIndex) => request.grant(nodeIndex), TIMEOUT_MS);
  assertEquals(round.votes[0].elapsedMs, 10);
});

Deno.test("Round.wanted is false once it, or the round it follows, is withdrawn", () => {
  const client = setUp(1);
  const round = newRound(client);
  const following = round.follow();
  assertEquals([round.wanted, following.wanted], [true, true]);
  round.cancel();
  assertEquals([round.wanted, following.wanted], [false, false]);
});

Deno.test("Round.follow() is about the same keys and value, and knows where they may stand", () => {
  const client = setUp(3);
  const round = newRound(client);
  round.maybeSet = 0b101;
  const following = round.follow(5_000);
  assertEquals(
    [following.keys, following.value, following.ttlMs, following.maybeSet],
    [["k"], "v", 5_000, 0b101],
  );
});

Deno.test("askToAcquire, askToExtend and askToRelease call the node's methods", async () => {
  const client = setUp(1);
  for (const question of [askToAcquire, askToExtend, askToRelease]) {
    await newRound(client).ask(question, TIMEOUT_MS);
  }
  const { calls } = client.nodes[0];
  assertEquals(calls.map(({ operation }) => operation), ["acquire", "extend", "release"]);
});
