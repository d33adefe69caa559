import { assertEquals } from "@std/assert";
import {
  DENIED,
  FAILED,
  GRANTED,
  OUTDATED,
  QUARANTINED,
  UNSENT,
} from "../../../src/quorum/outcome.ts";
import { getEventListeners } from "node:events";
import type { NodeSet } from "../../../src/quorum/quorum_node.ts";
import { createNodeSet } from "../../support/node_set.ts";
import { Round } from "../../../src/quorum/round.ts";
import { TimerWheel } from "../../../src/time/timer_wheel.ts";
import { combinations } from "../../support/combinations.ts";
import { FakeClock, runMicrotasks } from "../../support/fake_clock.ts";
import { KeyspaceNode } from "../../support/keyspace_node.ts";

const TIMEOUT_MS = 100;
const DOWN = new Error("down");

type Answer = "granted" | "denied" | "failed" | "silent";
const ANSWERS: readonly Answer[] = ["granted", "denied", "failed", "silent"];

interface Bench extends NodeSet {
  readonly clock: FakeClock;
  readonly nodes: readonly KeyspaceNode[];
}

function setUp(nodeCount = 3): Bench {
  const clock = new FakeClock();
  const nodes = Array.from({ length: nodeCount }, (_, n) => new KeyspaceNode(`n${n}`, clock));
  for (const node of nodes) node.instead.acquire = () => {};
  return { ...createNodeSet(new TimerWheel(clock), nodes), clock, nodes };
}

function newRound(bench: Bench): Round {
  return new Round(bench, ["k"], "v", 1_000);
}

/** A round that has asked nodes which do not answer by themselves, and what became of it. */
function ask(bench: Bench, signal?: AbortSignal, connectingMs = 0) {
  const round = newRound(bench);
  round.connectingMs = connectingMs;
  const asked = { round, settled: false };
  round.ask("acquire", TIMEOUT_MS, signal).then(() => asked.settled = true);
  return asked;
}

function cast(round: Round, nodeIndex: number, answer: Answer): void {
  if (answer === "granted") round.answer(nodeIndex, GRANTED);
  if (answer === "denied") round.answer(nodeIndex, DENIED);
  if (answer === "failed") round.answer(nodeIndex, FAILED, DOWN);
}

/** Arranges the indexes of nodes in the orders in which they answer. */
const ORDERS: Record<string, (nodeIndexes: number[]) => number[]> = {
  "in their order": (nodeIndexes) => nodeIndexes,
  "in reverse": (nodeIndexes) => nodeIndexes.toReversed(),
  "from the middle": (nodeIndexes) => {
    const middle = nodeIndexes.length / 2;
    return [...nodeIndexes.slice(middle), ...nodeIndexes.slice(0, middle)];
  },
};

for (let nodeCount = 1; nodeCount <= 7; nodeCount++) {
  for (const [name, order] of Object.entries(ORDERS)) {
    Deno.test(`Round of ${nodeCount} settles on every vote, answers coming ${name}`, async () => {
      const bench = setUp(nodeCount);
      const { quorum } = bench;
      const nodeIndexes = order(Array.from({ length: nodeCount }, (_, nodeIndex) => nodeIndex));
      const all = combinations(ANSWERS, nodeCount).map((answers) => {
        const asked = ask(bench);
        for (const nodeIndex of nodeIndexes) cast(asked.round, nodeIndex, answers[nodeIndex]);
        const count = (answer: Answer) => answers.filter((other) => other === answer).length;
        return { answers, asked, count };
      });
      await runMicrotasks();
      for (const { answers, asked: { round, settled }, count } of all) {
        const early = count("granted") >= quorum || count("granted") + count("silent") < quorum;
        assertEquals(settled, early, answers.join());
        assertEquals(round.decision === "open", !early);
      }
      await bench.clock.advance(TIMEOUT_MS);
      for (const { answers, asked: { round, settled }, count } of all) {
        assertEquals(settled, true);
        assertEquals(round.decision, count("granted") >= quorum ? "granted" : "refused");
        assertEquals([round.granted, round.denied], [count("granted"), count("denied")]);
        assertEquals(round.deniedByMajority, count("denied") > nodeCount - quorum);
        const lost = count("failed") + count("silent");
        if (round.failed === lost) {
          assertEquals(round.failedByMajority, lost > nodeCount - quorum);
        }
        for (const { node, outcome, error } of round.votes) {
          const answer = answers[Number(node.slice(1))];
          assertEquals(outcome, answer === "silent" ? "timed-out" : answer);
          assertEquals(error, answer === "failed" ? DOWN : undefined);
        }
      }
      assertEquals(bench.wheel.size, 0);
    });
  }
}

const WAITS = {
  ticket: { ticketId: "t", score: 0, agreed: false, onEnqueued() {}, onPutBack() {} },
};
const TRIES = { seeksGrant: true };
type Timed = readonly [atMs: number, answer: Answer];
const SILENT: Timed = [0, "silent"];
const DENIED_AT_10: readonly Timed[] = [[10, "denied"], [10, "denied"], SILENT];
/** When rounds of which nodes answer so settle. */
const SETTLING: [name: string, Partial<Round>, answers: readonly Timed[], settlesMs: number][] = [
  ["is denied settles at once", {}, DENIED_AT_10, 10],
  ["waits and is denied lingers for as long again", WAITS, DENIED_AT_10, 20],
  ["waits and is denied at once lingers 2 ms", WAITS, [[0, "denied"], [0, "denied"], SILENT], 2],
  [
    "waits and is denied late ends in time",
    WAITS,
    [[80, "denied"], [80, "denied"], SILENT],
    TIMEOUT_MS,
  ],
  ["waits and is denied by the second of 2 settles then", WAITS, [[5, "denied"], [8, "denied"]], 8],
  [
    "waits and is denied lingers no longer because another denies meanwhile",
    ...[WAITS, [[10, "denied"], ...DENIED_AT_10, [18, "denied"]], 20] as const,
  ],
  ["waits and is granted settles at once", WAITS, [[10, "granted"], [10, "granted"], SILENT], 10],
  ["tries and is denied lingers for as long again", TRIES, DENIED_AT_10, 20],
  [
    "tries and has a grant settles at once",
    ...[TRIES, [[10, "granted"], [10, "denied"], ...DENIED_AT_10], 10] as const,
  ],
  ["tries and fails settles at once", TRIES, [[10, "failed"], [10, "failed"], SILENT], 10],
];
for (const [name, fields, answers, settlesMs] of SETTLING) {
  Deno.test(`Round that ${name}`, async () => {
    const bench = setUp(answers.length);
    const round = Object.assign(newRound(bench), fields);
    const startMs = bench.clock.nowMs;
    let settledMs = NaN;
    round.ask("acquire", TIMEOUT_MS).then(() => settledMs = bench.clock.nowMs - startMs);
    for (let ms = 0; ms <= TIMEOUT_MS; ms++) {
      answers.forEach(([atMs, answer], nodeIndex) => atMs === ms && cast(round, nodeIndex, answer));
      await bench.clock.advance(1);
    }
    assertEquals(Math.floor(settledMs), settlesMs);
  });
}

Deno.test("Round counts a node's first answer only", () => {
  const { round } = ask(setUp(5));
  for (let times = 0; times < 3; times++) {
    for (const answer of ANSWERS) cast(round, 0, answer);
  }
  assertEquals([round.granted, round.denied, round.failed, round.decision], [1, 0, 0, "open"]);
});

Deno.test("Round keeps the highest of the values to which counters must be raised", () => {
  const { round } = ask(setUp());
  round.counts = { last: [], floor: 0 };
  for (const [nodeIndex, floor] of [5, 7, 6].entries()) round.answer(nodeIndex, OUTDATED, floor);
  assertEquals(round.counts, { last: [], floor: 7 });
});

Deno.test("Round takes from a denial which keys are free, and forgets its counter; an error is no such detail", () => {
  const { round } = ask(setUp());
  const free: number[] = [];
  Object.assign(round, { counts: { last: [1, 2], floor: 0 }, pool: { keys: [], place: 0, free } });
  round.answer(1, DENIED, 5);
  round.answer(2, UNSENT, DOWN);
  assertEquals([round.counts!.last, Object.entries(free)], [[1, undefined], [["1", 5]]]);
  assertEquals(round.votes.map(({ error }) => error), [undefined, DOWN]);
});

Deno.test("Round counts a vote in quarantine like a failed one, and distinguishes them in votes", () => {
  const { round } = ask(setUp());
  round.answer(0, QUARANTINED);
  round.answer(1, GRANTED);
  assertEquals([round.granted, round.failed, round.decision], [1, 1, "open"]);
  round.answer(2, QUARANTINED);
  assertEquals([round.failed, round.decision, round.failedByMajority], [2, "refused", true]);
  const outcomes = round.votes.map(({ outcome }) => outcome);
  assertEquals(outcomes, ["quarantined", "granted", "quarantined"]);
  assertEquals([0, 1].map((nodeIndex) => round.voteOf(nodeIndex)), ["quarantined", "granted"]);
});

for (
  const [what, readyMs, connectingMs, soonestMs, latestMs] of [
    ["ready before it began its time", -5_000, 1_000, TIMEOUT_MS, TIMEOUT_MS],
    ["ready 450 ms later that more time", 450, 1_000, 450 + TIMEOUT_MS, 455 + TIMEOUT_MS],
    ["ready too late the time of connecting", 450, 300, 300, 300],
    ["ready too late no less than its time", 450, 30, TIMEOUT_MS, TIMEOUT_MS],
    ["ready 450 ms later no more time unless it waits", 450, 0, TIMEOUT_MS, TIMEOUT_MS],
    ["never ready a minute at most", Infinity, Infinity, 60_000, 60_000],
  ] as const
) {
  Deno.test(`Round gives a node that is ${what}`, async () => {
    const bench = setUp(1);
    const { clock, nodes: [node] } = bench;
    const readyAtMs = clock.monotonicMs() + readyMs;
    node.readyAtMs = readyMs < 0 ? readyAtMs : Infinity;
    const startMs = clock.monotonicMs();
    const asked = ask(bench, undefined, connectingMs);
    while (!asked.settled) {
      await clock.advance(1);
      if (clock.monotonicMs() >= readyAtMs) node.readyAtMs = readyAtMs;
    }
    const passedMs = clock.monotonicMs() - startMs;
    assertEquals([passedMs >= soonestMs, passedMs <= latestMs], [true, true], `${passedMs}`);
    const { round } = asked;
    assertEquals([round.votes[0].outcome, round.failed], ["timed-out", 1]);
    round.answer(0, GRANTED); // late
    assertEquals([round.granted, round.failed], [1, 0]);
  });
}

Deno.test("Round waits for no node beyond its time because another has more", async () => {
  const bench = setUp(2);
  bench.nodes[0].readyAtMs = bench.clock.monotonicMs() + 50;
  bench.nodes[1].readyAtMs = Infinity;
  const asked = ask(bench, undefined, 1_000);
  await bench.clock.advance(50 + TIMEOUT_MS);
  assertEquals([asked.settled, asked.round.failed], [true, 1]);
});

const ENDS: Record<string, (bench: Bench, round: Round, controller: AbortController) => void> = {
  "is granted": (_, round) => [0, 1].forEach((nodeIndex) => round.answer(nodeIndex, GRANTED)),
  "is denied": (_, round) => [0, 1].forEach((nodeIndex) => round.answer(nodeIndex, DENIED)),
  "is cut short by its signal": (_bench, _round, controller) => controller.abort(),
  "is cut short as the client closes": ({ wheel }) => wheel.announceClose(),
  "times out": ({ clock }) => clock.advanceSync(TIMEOUT_MS),
};

for (const [how, end] of Object.entries(ENDS)) {
  Deno.test(`Round that ${how} keeps the process alive and a listener until then, and no longer`, async () => {
    const bench = setUp();
    const controller = new AbortController();
    const listeners = () => getEventListeners(controller.signal, "abort").length;
    const asked = ask(bench, controller.signal);
    assertEquals([listeners(), bench.clock.timersAlive], [1, 1]);
    end(bench, asked.round, controller);
    await bench.clock.advance(0);
    assertEquals(asked.settled, true);
    assertEquals([listeners(), bench.clock.timersAlive, bench.wheel.size], [0, 0, 0]);
    assertEquals(asked.round.decision === "open", how.includes("cut short"));
  });
}

Deno.test("Round.ask() settles if its signal aborts, or its client closes, while the nodes are asked", async () => {
  for (const closes of [false, true]) {
    const bench = setUp();
    const controller = new AbortController();
    const round = newRound(bench);
    bench.nodes[0].instead.acquire = (request, nodeIndex) => {
      if (closes) Object.assign(bench, { closed: true });
      else controller.abort();
      request.answer(nodeIndex, GRANTED);
    };
    await round.ask("acquire", TIMEOUT_MS, controller.signal);
    assertEquals([round.granted, bench.wheel.size], [1, 0]);
  }
});

Deno.test("Round.follow() has the same keys, value and guard, and is cancelled with the round", () => {
  const round = new Round(setUp(), ["k"], "v", 1_000, { guardMs: 70 });
  const { keys, value, ttlMs, guardMs } = round.follow();
  assertEquals([keys, value, ttlMs, guardMs], [["k"], "v", 1_000, 70]);
  const following = round.follow();
  assertEquals([round.wanted, following.wanted], [true, true]);
  round.cancel();
  assertEquals([round.wanted, following.wanted], [false, false]);
});
