import { assert, assertEquals, assertGreater, assertLessOrEqual } from "@std/assert";
import type { RedlockOptions } from "../../../src/options.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { countListeners } from "../../support/fake_nodes.ts";
import { WaiterBench as Bench } from "../../support/waiter_bench.ts";
import type { WaitingCluster } from "../../support/waiting_nodes.ts";

/** The constants of which these tests say no more than what they promise. */
const PATIENCE_MS = 50;
const STAGGER_MS = 20;
const IDLE_MS_MAX = 60_000;

/** A waiter whose nodes are subscribed, for a lock that somebody else has for ever. */
async function denied(
  nodeCount = 3,
  prepare?: (cluster: WaitingCluster) => void,
  options?: RedlockOptions,
) {
  const bench = new Bench(nodeCount, prepare, options);
  await bench.cluster.clock.advance(100);
  bench.cluster.occupy();
  return bench;
}

/** Calls `act` after some milliseconds. */
function later(bench: Bench, ms: number, act: () => void): void {
  bench.cluster.clock.setTimer(act, ms);
}

// Its ticket

Deno.test("QueuedWaiter asks without a ticket before a node is subscribed, then with one of its client's", async () => {
  const bench = new Bench(3, ({ nodes }) => nodes.forEach((node) => node.subscribeMs = Infinity));
  assertEquals(bench.waiter.nextTicket(), undefined);
  bench.cluster.nodes[0].confirm();
  assert(bench.waiter.nextTicket() === bench.waiter);
  assertEquals(bench.waiter.ticketId, `${bench.notifications.id}:1`);
  await bench.cluster.clock.advance(0);
});

Deno.test("QueuedWaiter that may be in queues asks with its ticket though no node can notify it", async () => {
  const bench = await denied();
  await bench.attempt();
  for (const node of bench.cluster.nodes) node.cut();
  assert(bench.waiter.nextTicket() === bench.waiter);
});

Deno.test("QueuedWaiter has as its score when it joined, by the median of the nodes' clocks, and keeps it", async () => {
  const bench = await denied(3, ({ nodes }) => {
    nodes.forEach((node, index) => node.aheadMs = [60_000, 5_000, -3_600_000][index]);
  });
  const joinedMs = bench.cluster.clock.wallMs() + 5_000;
  await bench.attempt();
  await bench.cluster.clock.advance(1_000);
  await bench.attempt();
  assertEquals(bench.waiter.score, joinedMs * 1_000);
  assertEquals(bench.cluster.nodes[1].score(bench.waiter.ticketId), bench.waiter.score);
});

Deno.test("QueuedWaiter whose score a quorum of nodes did not take asks with one that they have the next time", async () => {
  const bench = await denied(5);
  const { nodes } = bench.cluster;
  for (const node of nodes) node.enqueue("a", "other:1");
  const lateUs = (bench.cluster.clock.wallMs() + 200) * 1_000;
  bench.waiter.nextTicket();
  bench.waiter.score -= 1_000_000; // a second too early for those that have others
  for (const node of nodes.slice(0, 2)) node.drop("a", "other:1");
  nodes.slice(2).forEach((node, index) => node.raise("a", "other:1", lateUs + index));
  await bench.denied(100);
  await bench.attempt();
  const scores = nodes.map((node) => node.score(bench.waiter.ticketId)!);
  assertEquals(scores.slice(0, 3), [bench.waiter.score, bench.waiter.score, bench.waiter.score]);
  assertGreater(scores[4], scores[2]);
});

/** Whether a quorum of the nodes can notify the waiter, as the end of a test's name, and how to make it so. */
const NOTIFIERS = [
  ["", () => {}],
  [", though too few nodes can notify it", ({ nodes }) => nodes[0].cut()],
] as const satisfies [string, (cluster: WaitingCluster) => unknown][];

for (const [what, prepare] of NOTIFIERS) {
  Deno.test(`QueuedWaiter that is the first on some nodes alone agrees with them on a score, where it was granted too${what}`, async () => {
    const bench = await denied(2);
    const [one, other] = bench.cluster.nodes;
    prepare(bench.cluster);
    bench.cluster.free();
    other.enqueue("a", "other:1");
    other.raise("a", "other:1", (bench.cluster.clock.wallMs() + 200) * 1_000);
    bench.waiter.nextTicket();
    const beforeUs = bench.waiter.score -= 1_000_000;
    await bench.denied(10); // one has granted it, the other has put it behind
    const round = await bench.attempt();
    assertEquals([round.granted, round.denied], [1, 1]);
    assertGreater(bench.waiter.score, beforeUs);
    assertEquals(other.score(bench.waiter.ticketId), bench.waiter.score);
    if (what === "") assertEquals(one.score(bench.waiter.ticketId), bench.waiter.score);
  });

  Deno.test(`QueuedWaiter that is notified again and again, but is never the first on a quorum, overtakes after a patience${what}`, async () => {
    const bench = await denied(2);
    const [, other] = bench.cluster.nodes;
    prepare(bench.cluster);
    bench.cluster.free();
    other.enqueue("a", "other:1");
    const startMs = bench.nowMs;
    while (bench.waiter.priority !== "overdue" && bench.nowMs - startMs < 1_000) {
      later(bench, 10, () => bench.notify(0, 1));
      await bench.denied();
    }
    assertLessOrEqual(bench.nowMs - startMs, PATIENCE_MS + 30);
    assertEquals((await bench.attempt()).decision, "granted");
  });
}

Deno.test("QueuedWaiter agrees on a score though a node's grant came after the round was decided", async () => {
  const bench = await denied(2);
  const [one, other] = bench.cluster.nodes;
  bench.cluster.free();
  other.enqueue("a", "other:1");
  other.raise("a", "other:1", (bench.cluster.clock.wallMs() + 200) * 1_000);
  bench.waiter.nextTicket();
  const beforeUs = bench.waiter.score -= 1_000_000;
  one.replyMs = 20; // the denial of the other decides
  later(bench, 30, () => bench.notify(1));
  await bench.denied();
  assertGreater(bench.waiter.score, beforeUs);
});

// Until it is known who notifies

for (
  const [what, prepare, waitedMs] of [
    ["until all nodes are subscribed", () => {}, 10],
    ["50 ms after a quorum is", ({ nodes }) => nodes[2].subscribeMs = Infinity, 60],
    ["until the last has refused", ({ nodes }) => nodes[2].refusal = new Error("no"), 10],
    ["a second if too few are", ({ nodes }) => {
      nodes[1].subscribeMs = nodes[2].subscribeMs = Infinity;
    }, 1_000],
  ] as const satisfies [string, (cluster: WaitingCluster) => unknown, number][]
) {
  const prepared = (cluster: WaitingCluster) => {
    for (const node of cluster.nodes) node.subscribeMs = 10;
    prepare(cluster);
  };

  Deno.test(`QueuedWaiter is ready ${what}`, async () => {
    const bench = new Bench(3, prepared);
    const startMs = bench.nowMs;
    let readyMs = 0;
    bench.waiter.ready(Infinity, undefined).then(() => readyMs = bench.nowMs - startMs);
    await bench.cluster.clock.advance(2_000);
    assertEquals(readyMs, waitedMs);
  });

  Deno.test(`QueuedWaiter polls after its first denial, ever more rarely, ${what}`, async () => {
    const bench = new Bench(3, prepared);
    bench.cluster.occupy();
    for (const node of bench.cluster.nodes) node.replyMs = 1;
    const startMs = bench.nowMs;
    const isQueued = () => bench.cluster.queues.filter(({ length }) => length === 1).length >= 2;
    let attempt = 0;
    for (; !isQueued() && bench.nowMs - startMs < waitedMs; attempt++) {
      const round = await bench.attempt();
      await bench.wait(round, 1_000, undefined, attempt);
    }
    assertLessOrEqual(attempt, 2 + Math.log2(1 + waitedMs / 4));
    const round = await bench.attempt();
    assertEquals(isQueued(), waitedMs < 1_000);
    if (isQueued()) assertEquals(await bench.wait(round, 10_000), 10_000);
  });
}

Deno.test("QueuedWaiter is ready when its time is over or its signal aborts, whatever nodes do", async () => {
  for (const ends of ["time", "signal"]) {
    const bench = new Bench(1, ({ nodes }) => nodes[0].subscribeMs = Infinity);
    const controller = new AbortController();
    let ready = false;
    bench.waiter.ready(100, controller.signal).then(() => ready = true);
    await bench.cluster.clock.advance(99);
    assertEquals(ready, false);
    if (ends === "signal") controller.abort();
    else await bench.cluster.clock.advance(1);
    await runMicrotasks();
    assertEquals([ready, bench.cluster.clock.timersAlive], [true, 0]);
  }
});

Deno.test("QueuedWaiter knows the length of the longest queue that a node has reported", async () => {
  const bench = await denied();
  assertEquals(bench.waiter.queueLength, undefined);
  bench.cluster.nodes[1].enqueue("a", "other:1", "other:2");
  bench.cluster.nodes[0].enqueue("a", "other:1");
  await bench.attempt();
  assertEquals(bench.waiter.queueLength, 3);
});

// Notified

for (const nodeCount of [1, 2, 3, 5]) {
  Deno.test(`QueuedWaiter of ${nodeCount} nodes asks at once when the first of them notifies it, and keeps to the order`, async () => {
    const bench = await denied(nodeCount);
    for (const node of bench.cluster.nodes) node.replyMs = 10;
    const round = await bench.attempt();
    later(bench, 300, () => bench.notify(nodeCount - 1));
    assertEquals([await bench.wait(round), bench.waiter.notified], [300, true]);
    bench.cluster.free();
    const granted = await bench.attempt();
    assertEquals([granted.decision, bench.cluster.priorities.at(-1)], ["granted", "in-order"]);
  });
}

for (const [nodeCount, quorum] of [[1, 1], [2, 2], [3, 2], [5, 3]]) {
  Deno.test(`QueuedWaiter of ${nodeCount} nodes that was notified in vain asks once ${quorum} have notified it, or a round trip later`, async () => {
    const bench = await denied(nodeCount);
    for (const node of bench.cluster.nodes) node.replyMs = 10;
    const first = await bench.attempt();
    later(bench, 100, () => bench.notify(0));
    await bench.wait(first);
    const vain = await bench.attempt();
    let over = false;
    bench.waiter.wait(0, Infinity, undefined, vain).then(() => over = true);
    await bench.cluster.clock.advance(100);
    for (let number = 0; number < quorum; number++) {
      assertEquals(over, false);
      bench.notify(number, number); // the same one twice counts once
      await runMicrotasks();
    }
    assertEquals([over, bench.waiter.notified], [true, true]);
    if (quorum === 1) return;
    const again = await bench.attempt();
    later(bench, 100, () => bench.notify(1));
    const waitedMs = await bench.wait(again) - 100;
    assert(waitedMs >= 5 && waitedMs <= 15, `${waitedMs} ms for round trips of 10`);
  });
}

Deno.test("QueuedWaiter that was notified while it asked asks again at once", async () => {
  const bench = await denied();
  for (const node of bench.cluster.nodes) node.replyMs = 10;
  const round = bench.begin();
  await bench.cluster.clock.advance(5);
  bench.notify(2);
  await bench.cluster.clock.advance(5);
  assertEquals([await bench.wait(round), bench.waiter.notified], [0, true]);
});

// The first in the queue that does not use its turn

Deno.test("QueuedWaiter overtakes the first that was notified before it, after a patience and no sooner", async () => {
  for (const replyMs of [0, 4, 40]) {
    const bench = await denied();
    for (const node of bench.cluster.nodes) {
      node.enqueue("a", "stuck:1");
      node.replyMs = replyMs;
    }
    const round = await bench.attempt();
    later(bench, 300, () => bench.cluster.free());
    const waitedMs = await bench.wait(round) - 300;
    const patienceMs = Math.max(PATIENCE_MS, 10 * replyMs);
    assert(waitedMs >= patienceMs && waitedMs <= patienceMs + 2, `${waitedMs}, ${patienceMs}`);
    assertEquals([bench.waiter.priority, bench.waiter.notified], ["overdue", false]);
    assertEquals((await bench.attempt()).decision, "granted");
    assertEquals(bench.cluster.queues, [[], [], []]);
  }
});

Deno.test("QueuedWaiter leaves the first alone once a quorum of nodes says that it has the key", async () => {
  for (const [taken, waits] of [[1, false], [2, true], [3, true]] as const) {
    const bench = await denied();
    const round = await bench.attempt();
    const { nodes } = bench.cluster;
    const { ticketId } = bench.waiter;
    later(bench, 100, () => nodes.forEach((node) => node.notify(ticketId, "next")));
    later(
      bench,
      110,
      () => nodes.slice(0, taken).forEach((node) => node.notify(ticketId, "taken")),
    );
    const waitedMs = await bench.wait(round, 10_000);
    assertEquals(waitedMs, waits ? 10_000 : 100 + PATIENCE_MS, `${taken}`);
  }
});

Deno.test("QueuedWaiter is patient anew with each release, and not with one that a slow node reports late", async () => {
  const bench = await denied();
  const round = await bench.attempt();
  const { nodes } = bench.cluster;
  const { ticketId } = bench.waiter;
  const all = (notice: "next" | "taken", count = 3) =>
    nodes.slice(0, count).forEach((node) => node.notify(ticketId, notice));
  later(bench, 100, () => all("next", 2));
  later(bench, 110, () => all("taken", 2));
  later(bench, 120, () => nodes[2].notify(ticketId, "next"));
  later(bench, 1_000, () => all("next"));
  assertEquals(await bench.wait(round), 1_000 + PATIENCE_MS);
});

Deno.test("QueuedWaiter that finds the key free and others ahead overtakes the first, with little more patience for more of them", async () => {
  for (const ahead of [1, 2, 5]) {
    const bench = await denied();
    bench.cluster.free();
    const others = Array.from({ length: ahead }, (_, index) => `other:${index}`);
    for (const node of bench.cluster.nodes) node.enqueue("a", ...others);
    const [waitedMs, priority] = await bench.denied();
    const patienceMs = PATIENCE_MS + STAGGER_MS * (ahead - 1);
    assert(waitedMs >= patienceMs && waitedMs <= patienceMs + 2, `${waitedMs}, ${ahead} ahead`);
    assertEquals(priority, "overdue");
    assertEquals((await bench.attempt()).decision, "granted");
    assertEquals(bench.cluster.queues[0], others.slice(1));
  }
});

// Keys that expire, and idleness

Deno.test("QueuedWaiter asks when a quorum of the keys has expired, a little later for each that is ahead", async () => {
  for (const ahead of [0, 1, 7]) {
    const bench = await denied(5);
    const livesMs = [300, 500, 700, 900, Infinity];
    const others = Array.from({ length: ahead }, (_, index) => `other:${index}`);
    bench.cluster.nodes.forEach((node, index) => {
      node.set("a", "other", livesMs[index]);
      node.enqueue("a", ...others);
    });
    const [waitedMs] = await bench.denied();
    const laterMs = waitedMs - 700 - STAGGER_MS * ahead;
    assert(laterMs >= 0 && laterMs <= 2, `${waitedMs} ms with ${ahead} ahead`);
  }
});

Deno.test("QueuedWaiter to whom nothing happens asks ever more rarely, those behind more rarely still, and never later than a minute", async () => {
  let before = 0;
  for (const ahead of [0, 1, 4]) {
    const bench = await denied(3, undefined, { retryDelayMaxMs: 2_000 });
    const others = Array.from({ length: ahead }, (_, index) => `other:${index}`);
    for (const node of bench.cluster.nodes) node.enqueue("a", ...others);
    const waitsMs: number[] = [];
    for (let asks = 0; asks < 9; asks++) waitsMs.push((await bench.denied())[0]);
    assert(waitsMs[0] >= 1_000 * (1 + ahead) && waitsMs[0] <= 2_000 * (1 + ahead), `${waitsMs}`);
    assertGreater(waitsMs[1], 1.9 * waitsMs[0]);
    assertEquals(waitsMs, waitsMs.toSorted((one, other) => one - other));
    assertGreater(waitsMs[8], IDLE_MS_MAX / 2);
    for (const waitedMs of waitsMs) assertLessOrEqual(waitedMs, IDLE_MS_MAX);
    assertGreater(waitsMs[0], before);
    before = waitsMs[0];
  }
});

Deno.test("QueuedWaiter that a minority grants asks soon, then ever more rarely, at moments that differ", async () => {
  const firstMs = new Set<number>();
  for (const fraction of [0, 0.5, 0.99]) {
    const bench = await denied();
    bench.cluster.fraction = fraction;
    bench.cluster.nodes[0].set("a", "", 0);
    for (const node of bench.cluster.nodes) node.replyMs = 5;
    const waitsMs: number[] = [];
    for (let asks = 0; asks < 4; asks++) waitsMs.push((await bench.denied())[0]);
    assertLessOrEqual(waitsMs[0], 4 * 10 * 1.5);
    for (let asks = 1; asks < 4; asks++) assertGreater(waitsMs[asks], 2 * waitsMs[asks - 1]);
    firstMs.add(waitsMs[0]);
  }
  assertEquals(firstMs.size, 3);
});

// The end of a wait

Deno.test("QueuedWaiter waits no longer than it may", async () => {
  const bench = await denied();
  const round = await bench.attempt();
  assertEquals([await bench.wait(round, 300), bench.waiter.priority], [300, "in-order"]);
  assertEquals([await bench.wait(round, 0), bench.cluster.clock.timersAlive], [0, 0]);
});

Deno.test("QueuedWaiter waits until its signal aborts, and leaves no listener", async () => {
  const bench = await denied();
  const { clock } = bench.cluster;
  const round = await bench.attempt();
  const controller = new AbortController();
  const listeners = countListeners(controller.signal);
  later(bench, 40, () => controller.abort());
  assertEquals(await bench.wait(round, 1_000, controller.signal), 40);
  assertEquals([listeners(), clock.timersAlive], [0, 0]);
  assertEquals(await bench.wait(round, 1_000, controller.signal), 0);
});

Deno.test("QueuedWaiter waits until the client closes, and polls no more then", async () => {
  for (const answers of [true, false]) {
    const bench = await denied();
    if (!answers) bench.cluster.set("fail", 0, 1);
    const round = await bench.attempt();
    let over = false;
    bench.waiter.wait(0, Infinity, undefined, round).then(() => over = true);
    await runMicrotasks();
    bench.notifications.close();
    assertEquals(bench.cluster.wheel.announceClose(), true);
    await runMicrotasks();
    assertEquals([over, bench.cluster.clock.timersAlive], [true, 0]);
  }
});
