import { assertEquals } from "@std/assert";
import { runMicrotasks } from "../../support/fake_clock.ts";
import type { RedlockOptions } from "../../../src/options.ts";
import { Stand, type WaitingCluster } from "../../support/waiting_nodes.ts";

/** A stand whose nodes tell. */
async function standing(
  nodeCount = 3,
  prepare?: (cluster: WaitingCluster) => void,
  options?: RedlockOptions,
): Promise<Stand> {
  const stand = new Stand(nodeCount, prepare, options);
  await stand.cluster.clock.advance(100);
  return stand;
}

/** Makes one attempt and waits after it; says for how long, and what it claims then. */
async function denied(stand: Stand): Promise<[waitedMs: number, claim: string]> {
  const round = await stand.attempt();
  assertEquals(round.decision, "refused");
  return [await stand.wait(round), stand.waiter.priority];
}

// Keys that run out

for (
  const [remaining, waitedMs] of [
    [[100], 100],
    [[100, 300], 300],
    [[100, 300, Infinity], 300],
    [[Infinity, 300, 100], 300],
    [[100, 200, 300, 400], 300],
    [[500, 100, 200, 400, 300], 300],
    [[100, Infinity, Infinity], 60_000],
    [[100, 59_999, Infinity], 59_999],
    [[100, 60_001, Infinity], 60_000],
  ] as const
) {
  Deno.test(`QueuedWaiter asks again after ${waitedMs} ms where keys in its way live for ${remaining}`, async () => {
    const stand = await standing(remaining.length);
    const { nodes } = stand.cluster;
    remaining.forEach((ms, number) => nodes[number].set("a", "other", ms));
    stand.begin();
    await stand.cluster.clock.advance(0); // all have answered, whatever decided
    assertEquals(await stand.wait(stand.latest!), waitedMs);
    assertEquals(stand.waiter.priority, "last");
  });
}

Deno.test("QueuedWaiter that some nodes granted waits for one key less to run out", async () => {
  const stand = await standing(5);
  [0, 0, 3, 300, Infinity].forEach((ms, number) => {
    stand.cluster.nodes[number].set("a", "other", ms);
  });
  assertEquals(await denied(stand), [3, "last"]);
});

Deno.test("QueuedWaiter that some nodes granted asks soon, and each time later, until none does", async () => {
  const stand = await standing();
  const { nodes } = stand.cluster;
  for (const node of nodes.slice(0, 2)) node.set("a", "other");
  for (const waitedMs of [8, 32, 128, 512]) assertEquals(await denied(stand), [waitedMs, "last"]);
  nodes[2].set("a", "other", 100);
  assertEquals(await denied(stand), [60_000, "last"]);
  assertEquals(await denied(stand), [8, "last"]);
});

for (const fraction of [0, 0.5]) {
  Deno.test(`QueuedWaiter that some nodes granted waits by its round trips, with a jitter of ${fraction}`, async () => {
    const stand = await standing();
    for (const node of stand.cluster.nodes) node.replyMs = 10;
    for (const node of stand.cluster.nodes.slice(0, 2)) node.set("a", "other");
    stand.cluster.fraction = fraction;
    assertEquals(await denied(stand), [4 * 10 * (0.5 + fraction), "last"]);
  });
}

Deno.test("QueuedWaiter that some nodes granted asks at least once a minute", async () => {
  const stand = await standing();
  for (const node of stand.cluster.nodes.slice(0, 2)) node.set("a", "other");
  for (let attempt = 0; attempt < 7; attempt++) await denied(stand);
  assertEquals(await denied(stand), [60_000, "last"]);
});

for (
  const [retryDelayMaxMs, fraction, ahead, waitedMs] of [
    [2_000, 0, 0, 1_000],
    [2_000, 0.5, 0, 1_500],
    [2_000, 0.5, 3, 6_000],
    [100, 0.5, 0, 375],
    [200_000, 0.5, 0, 60_000],
  ]
) {
  Deno.test(`QueuedWaiter with ${ahead} before it trusts for ${waitedMs} ms that it is woken, where its longest delay is ${retryDelayMaxMs} ms and the jitter ${fraction}`, async () => {
    const options = { retryDelayMs: 10, retryDelayMaxMs };
    const stand = await standing(3, undefined, options);
    stand.cluster.occupy();
    stand.cluster.fraction = fraction;
    const others = Array.from({ length: ahead }, (_, index) => `other:${index}`);
    stand.cluster.nodes[1].enqueue("a", ...others);
    assertEquals(await denied(stand), [waitedMs, "last"]);
    assertEquals(stand.cluster.lines[0], [stand.waiter.ticketId]);
  });
}

for (const [ahead, waitedMs] of [[0, 1_000], [1, 1_020], [5, 1_100]]) {
  Deno.test(`QueuedWaiter with ${ahead} before it leaves them ${waitedMs - 1_000} ms when a key runs out`, async () => {
    const stand = await standing();
    stand.cluster.occupy("a", 1_000);
    const others = Array.from({ length: ahead }, (_, index) => `other:${index}`);
    stand.cluster.nodes[1].enqueue("a", ...others);
    assertEquals(await denied(stand), [waitedMs, "last"]);
  });
}

Deno.test("QueuedWaiter asks within a minute, however many stand before it", async () => {
  const stand = await standing(1);
  stand.cluster.occupy("a", 59_990);
  stand.cluster.nodes[0].enqueue("a", "other:1", "other:2");
  assertEquals(await denied(stand), [60_000, "last"]);
});

// Free, but others' turn

Deno.test("QueuedWaiter waits for those whose turn it is, and overtakes them once it has waited in vain", async () => {
  const stand = await standing();
  for (const node of stand.cluster.nodes) node.enqueue("a", "other:1");
  assertEquals(await denied(stand), [100, "last"]);
  assertEquals(await denied(stand), [0, "overdue"]);
  assertEquals((await stand.attempt()).decision, "granted");
  assertEquals(stand.cluster.claims, ["last", "last", "overdue"]);
  assertEquals(stand.cluster.lines, Array(3).fill(["other:1"]));
});

for (const [ahead, replyMs, waitedMs] of [[1, 5, 100], [2, 5, 150], [1, 6, 120], [3, 20, 800]]) {
  Deno.test(`QueuedWaiter gives ${ahead} before it ${waitedMs} ms where answers take ${replyMs} ms`, async () => {
    const stand = await standing();
    const others = Array.from({ length: ahead }, (_, index) => `other:${index}`);
    for (const node of stand.cluster.nodes) {
      node.replyMs = replyMs;
      node.enqueue("a", ...others);
    }
    assertEquals(await denied(stand), [waitedMs, "last"]);
  });
}

Deno.test("QueuedWaiter does not overtake while those before it get on", async () => {
  const stand = await standing();
  const { nodes } = stand.cluster;
  for (const node of nodes) node.enqueue("a", "other:1", "other:2", "other:3");
  assertEquals(await denied(stand), [200, "last"]);
  for (const node of nodes) node.drop("a", "other:1");
  assertEquals(await denied(stand), [150, "last"]);
  for (const node of nodes) node.drop("a", "other:2");
  assertEquals(await denied(stand), [100, "last"]);
  assertEquals(await denied(stand), [0, "overdue"]);
});

Deno.test("QueuedWaiter that overtook in vain waits as patiently as before", async () => {
  const stand = await standing();
  for (const node of stand.cluster.nodes) node.enqueue("a", "other:1");
  await denied(stand);
  await denied(stand);
  stand.cluster.occupy("a", 500);
  assertEquals(await denied(stand), [520, "last"]);
  assertEquals(await denied(stand), [100, "last"]);
  assertEquals(await denied(stand), [0, "overdue"]);
});

Deno.test("QueuedWaiter forgets how long it waited for others when the key was taken meanwhile", async () => {
  const stand = await standing();
  for (const node of stand.cluster.nodes) node.enqueue("a", "other:1");
  assertEquals(await denied(stand), [100, "last"]);
  stand.cluster.occupy("a", 500);
  assertEquals(await denied(stand), [520, "last"]);
  assertEquals(await denied(stand), [100, "last"]);
});

Deno.test("QueuedWaiter does not overtake for one caller because another has waited in vain", async () => {
  const stand = await standing();
  for (const node of stand.cluster.nodes) node.enqueue("a", "other:1");
  assertEquals(await denied(stand), [100, "last"]);
  stand.waiter.requeue();
  assertEquals(await denied(stand), [100, "last"]);
});

Deno.test("QueuedWaiter that is woken while it waits for others asks as one who was", async () => {
  const stand = await standing();
  for (const node of stand.cluster.nodes) node.enqueue("a", "other:1");
  const round = await stand.attempt();
  stand.cluster.clock.setTimer(() => stand.wake(0, 2), 30);
  assertEquals([await stand.wait(round), stand.waiter.priority], [30, "woken"]);
});

// Rounds that say too little

/** Four nodes, two of which decide a round that the others answer `replyMs` later. */
async function early(replyMs: number): Promise<Stand> {
  const stand = await standing(4);
  stand.cluster.occupy("a", 500);
  for (const node of stand.cluster.nodes.slice(2)) node.replyMs = replyMs;
  return stand;
}

Deno.test("QueuedWaiter whose round was decided early looks again once the others have answered", async () => {
  const stand = await early(1);
  assertEquals(await denied(stand), [2 + 500, "last"]);
});

Deno.test("QueuedWaiter whose round was decided early polls where the others don't answer", async () => {
  const stand = await early(400);
  const round = await stand.attempt();
  assertEquals(await stand.wait(round), 2 + 100);
});

Deno.test("QueuedWaiter whose round was decided early is content with a wake-up", async () => {
  const stand = await early(400);
  const round = stand.begin();
  await runMicrotasks();
  stand.cluster.clock.setTimer(() => stand.wake(0, 1), 1);
  assertEquals([await stand.wait(round), stand.waiter.priority], [1, "woken"]);
});

Deno.test("QueuedWaiter whose round was decided early waits no longer than it may", async () => {
  for (const limitMs of [1, 2, 3, 50]) {
    const stand = await early(400);
    const round = await stand.attempt();
    assertEquals(await stand.wait(round, limitMs), limitMs);
    assertEquals(stand.cluster.clock.timersAlive, 0);
  }
});

// Polling

Deno.test("QueuedWaiter that too few nodes answered polls", async () => {
  const stand = await standing();
  stand.cluster.set("fail", 0, 1);
  stand.cluster.nodes[2].set("a", "other");
  assertEquals(await denied(stand), [2 + 100, "last"]);
});

Deno.test("QueuedWaiter that too few nodes answered polls, though some woke it", async () => {
  const stand = await standing();
  const { clock } = stand.cluster;
  stand.cluster.set("hang", 0, 1);
  stand.cluster.nodes[2].set("a", "other");
  const round = stand.begin(20);
  await clock.advance(10);
  stand.wake(2);
  await clock.advance(10);
  assertEquals([await stand.wait(round), stand.waiter.priority], [2 + 100, "last"]);
});

Deno.test("QueuedWaiter polls where too few nodes tell, and doubles its delays", async () => {
  const stand = await standing(3, ({ nodes }) => {
    for (const node of nodes.slice(1)) node.refusal = new Error("no");
  }, { retryDelayMaxMs: 700 });
  stand.cluster.occupy();
  const round = await stand.attempt();
  for (const [attempt, delayMs] of [[0, 100], [1, 200], [2, 350], [9, 350]]) {
    const startMs = stand.nowMs;
    let overMs = 0;
    stand.waiter.wait(attempt, Infinity, undefined, round)
      .then(() => overMs = stand.nowMs - startMs);
    await stand.cluster.clock.advance(1_000);
    assertEquals(overMs, 2 + delayMs);
  }
  assertEquals([stand.cluster.claims, stand.cluster.lines], [["none"], [[], [], []]]);
});

Deno.test("QueuedWaiter that polls takes no notice of nodes that begin to tell, and then lines up", async () => {
  const stand = await standing(3, ({ nodes }) => nodes.forEach((node) => node.listenMs = Infinity));
  await stand.cluster.clock.advance(1_000);
  stand.cluster.occupy();
  const round = await stand.attempt();
  stand.cluster.clock.setTimer(() => stand.cluster.nodes.forEach((node) => node.tell()), 20);
  assertEquals(await stand.wait(round), 102);
  await stand.attempt();
  assertEquals(stand.cluster.claims, ["none", "last"]);
});

// Nodes that come and go

for (const [fraction, delayMs] of [[0, 0], [0.5, 25], [0.98, 49]]) {
  Deno.test(`QueuedWaiter asks once within 50 ms when a node tells anew: after ${delayMs} with a jitter of ${fraction}`, async () => {
    const stand = await standing(3, ({ nodes }) => nodes[2].listenMs = Infinity);
    stand.cluster.occupy();
    stand.cluster.fraction = fraction;
    const first = await stand.attempt();
    stand.cluster.clock.setTimer(() => stand.cluster.nodes[2].tell(), 200);
    assertEquals([await stand.wait(first), stand.waiter.priority], [200 + delayMs, "last"]);
    assertEquals(await denied(stand), [60_000, "last"]);
    assertEquals(stand.cluster.lines, Array(3).fill([stand.waiter.ticketId]));
  });
}

Deno.test("QueuedWaiter asks once more within 50 ms where a node told anew while it asked", async () => {
  const stand = await standing(3, ({ nodes }) => nodes[2].listenMs = Infinity);
  const { clock, nodes } = stand.cluster;
  stand.cluster.occupy();
  for (const node of nodes) node.replyMs = 10;
  const first = stand.begin();
  await clock.advance(5);
  nodes[2].tell();
  await clock.advance(5);
  assertEquals([await stand.wait(first), stand.waiter.priority], [25, "last"]);
  assertEquals(await denied(stand), [60_000, "last"]);
});

Deno.test("QueuedWaiter asks no later than a key runs out where a node told anew while it asked", async () => {
  const stand = await standing(3, ({ nodes }) => nodes[2].listenMs = Infinity);
  stand.cluster.occupy("a", 10);
  const round = stand.begin();
  stand.cluster.nodes[2].tell();
  await stand.cluster.clock.advance(0);
  assertEquals(await stand.wait(round), 10);
});

Deno.test("QueuedWaiter asks at once when too few nodes tell any more, and then polls", async () => {
  const stand = await standing();
  const { clock, nodes } = stand.cluster;
  stand.cluster.occupy();
  nodes[2].deafen();
  const round = await stand.attempt();
  clock.setTimer(() => nodes[1].deafen(), 200);
  assertEquals(await stand.wait(round), 200);
  assertEquals(await denied(stand), [102, "last"]);
  assertEquals(stand.cluster.claims, ["last", "none"]);
});

Deno.test("QueuedWaiter that one node woke after it was woken in vain asks no later for a node that tells anew", async () => {
  const stand = await standing(5, ({ nodes }) => nodes[4].listenMs = Infinity);
  const { clock, nodes } = stand.cluster;
  stand.cluster.occupy();
  for (const node of nodes) node.replyMs = 10;
  const first = await stand.attempt();
  clock.setTimer(() => stand.wake(0), 10);
  await stand.wait(first);
  const second = await stand.attempt();
  clock.setTimer(() => stand.wake(0), 200);
  clock.setTimer(() => nodes[4].tell(), 205);
  assertEquals([await stand.wait(second), stand.waiter.priority], [210, "woken"]);
});
