import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { QueuedWaiter } from "../../../src/waiting/queued_waiter.ts";
import type { Round } from "../../../src/quorum/round.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { countListeners } from "../../support/fake_nodes.ts";
import { Stand, type WaitingCluster } from "../../support/waiting_nodes.ts";

/** A stand whose nodes tell, for a lock that somebody else has for ever. */
async function standing(nodeCount = 3, prepare?: (cluster: WaitingCluster) => void) {
  const stand = new Stand(nodeCount, prepare);
  await stand.cluster.clock.advance(100);
  stand.cluster.occupy();
  return stand;
}

// Beginning to listen

Deno.test("QueuedWaiter asks without a ticket while too few nodes tell, then with its own", async () => {
  const stand = new Stand(3, ({ nodes }) => nodes.forEach((node) => node.listenMs = Infinity));
  const { waiter, cluster: { nodes } } = stand;
  nodes[0].tell();
  assertEquals(waiter.next(), undefined);
  nodes[1].tell();
  assert(waiter.next() === waiter);
  nodes[0].deafen();
  assertEquals(waiter.next(), undefined);
  await stand.cluster.clock.advance(0);
});

Deno.test("QueuedWaiter names itself by its client's id, a number of its own and when it came", async () => {
  const stand = new Stand();
  const { waiter, notifications, client, cluster } = stand;
  const wallMs = cluster.clock.wallMs();
  assertEquals(waiter.ticketId, `${notifications.id}:1:${wallMs}`);
  await cluster.clock.advance(123);
  const other = new QueuedWaiter(notifications, client, ["b"]);
  assertEquals(other.ticketId, `${notifications.id}:2:${wallMs + 123}`);
});

for (
  const [what, prepare, waitedMs] of [
    ["until all nodes tell", () => {}, 10],
    ["50 ms after a quorum tells", ({ nodes }) => nodes[2].listenMs = Infinity, 60],
    ["until the last has refused", ({ nodes }) => nodes[2].refusal = new Error("no"), 10],
    ["a second where too few tell", ({ nodes }) => {
      nodes[1].listenMs = nodes[2].listenMs = Infinity;
    }, 1_000],
  ] as const satisfies [string, (cluster: WaitingCluster) => unknown, number][]
) {
  const prepared = (cluster: WaitingCluster) => {
    for (const node of cluster.nodes) node.listenMs = 10;
    prepare(cluster);
  };
  Deno.test(`QueuedWaiter that was denied waits ${what}, and asks at once`, async () => {
    const stand = new Stand(3, prepared);
    stand.cluster.occupy();
    const denied = await stand.attempt();
    assertEquals(stand.cluster.claims, ["none"]);
    assertEquals(await stand.wait(denied), waitedMs);
    assertEquals([stand.waiter.woken, stand.cluster.lines], [false, [[], [], []]]);
    await stand.attempt();
    assertEquals(stand.cluster.claims.at(-1), waitedMs === 1_000 ? "none" : "last");
  });

  Deno.test(`QueuedWaiter is ready ${what}`, async () => {
    const stand = new Stand(3, prepared);
    const startMs = stand.nowMs;
    let readyMs = 0;
    stand.waiter.ready(Infinity, undefined).then(() => readyMs = stand.nowMs - startMs);
    await stand.cluster.clock.advance(2_000);
    assertEquals(readyMs, waitedMs);
  });
}

Deno.test("QueuedWaiter is ready at once where it is known who tells", async () => {
  const stand = await standing();
  let ready = false;
  stand.waiter.ready(Infinity, undefined).then(() => ready = true);
  await runMicrotasks();
  assertEquals([ready, stand.cluster.clock.timersAlive], [true, 0]);
});

Deno.test("QueuedWaiter is ready when its time is over or its signal aborts, whatever nodes do", async () => {
  for (const ends of ["time", "signal"]) {
    const stand = new Stand(1, ({ nodes }) => nodes[0].listenMs = Infinity);
    const controller = new AbortController();
    let ready = false;
    stand.waiter.ready(100, controller.signal).then(() => ready = true);
    await stand.cluster.clock.advance(99);
    assertEquals(ready, false);
    if (ends === "signal") controller.abort();
    else await stand.cluster.clock.advance(1);
    await runMicrotasks();
    assertEquals([ready, stand.cluster.clock.timersAlive], [true, 0]);
  }
});

Deno.test("QueuedWaiter that was denied without a ticket lines up at once where enough nodes tell", async () => {
  const stand = new Stand();
  stand.cluster.occupy();
  const denied = await stand.attempt();
  assertEquals(denied.ticket, undefined);
  await stand.cluster.clock.advance(100);
  assertEquals(await stand.wait(denied), 0);
  await stand.attempt();
  assertEquals(stand.cluster.claims, ["none", "last"]);
  assertEquals(stand.cluster.lines, Array(3).fill([stand.waiter.ticketId]));
});

Deno.test("QueuedWaiter knows how long the longest line is that it was told of", async () => {
  const stand = await standing();
  assertEquals(stand.waiter.queueLength, undefined);
  stand.cluster.nodes[1].enqueue("a", "other:1", "other:2");
  stand.cluster.nodes[0].enqueue("a", "other:1");
  await stand.attempt();
  assertEquals(stand.waiter.queueLength, 3);
});

// Woken

/** A stand that was woken, asked, and was denied all the same; `replyMs` is how long that took. */
async function inVain(nodeCount = 3, replyMs = 10): Promise<[stand: Stand, denied: Round]> {
  const stand = await standing(nodeCount);
  for (const node of stand.cluster.nodes) node.replyMs = replyMs;
  const first = await stand.attempt();
  stand.cluster.clock.setTimer(() => stand.wake(0), 100);
  await stand.wait(first);
  return [stand, await stand.attempt()];
}

for (const nodeCount of [1, 2, 3, 5]) {
  Deno.test(`QueuedWaiter of ${nodeCount} nodes asks at once when the first of them wakes it, and keeps to the line unless that is a quorum`, async () => {
    const stand = await standing(nodeCount);
    const { clock, nodes } = stand.cluster;
    for (const node of nodes) node.replyMs = 10;
    const denied = await stand.attempt();
    clock.setTimer(() => stand.wake(nodeCount - 1), 1_000);
    assertEquals([await stand.wait(denied), stand.waiter.woken], [1_000, true]);
    assertEquals(stand.waiter.priority, "woken");
    stand.cluster.free();
    const granted = await stand.attempt();
    const claim = nodeCount === 1 ? "woken" : "last";
    assertEquals([granted.decision, stand.cluster.claims.at(-1)], ["granted", claim]);
  });
}

for (const [nodeCount, quorum] of [[1, 1], [2, 2], [3, 2], [5, 3]]) {
  Deno.test(`QueuedWaiter of ${nodeCount} nodes that was woken in vain asks again once ${quorum} have woken it`, async () => {
    const [stand, denied] = await inVain(nodeCount);
    let over = false;
    stand.waiter.wait(0, Infinity, undefined, denied).then(() => over = true);
    await stand.cluster.clock.advance(1_000);
    for (let number = 0; number < quorum; number++) {
      assertEquals(over, false);
      stand.wake(number);
      await runMicrotasks();
    }
    assertEquals([over, stand.waiter.woken, stand.waiter.priority], [true, true, "woken"]);
  });
}

for (
  const [replyMs, fraction, graceMs] of [
    [10, 0, 5],
    [10, 0.5, 10],
    [10, 1, 15],
    [0, 0, 1],
    [0, 1, 3],
  ]
) {
  Deno.test(`QueuedWaiter that was woken in vain gives the others ${graceMs} ms, where answers take ${replyMs} and the jitter is ${fraction}`, async () => {
    const [stand, denied] = await inVain(3, replyMs);
    stand.cluster.fraction = fraction;
    stand.cluster.clock.setTimer(() => stand.wake(1), 1_000);
    assertEquals([await stand.wait(denied), stand.waiter.priority], [1_000 + graceMs, "woken"]);
  });
}

Deno.test("QueuedWaiter that the same node woke twice does not take it for two", async () => {
  const [stand, denied] = await inVain();
  for (const ms of [100, 103]) stand.cluster.clock.setTimer(() => stand.wake(1), ms);
  assertEquals(await stand.wait(denied), 110);
});

Deno.test("QueuedWaiter that too few nodes put in line for a quorum is content with these", async () => {
  const stand = await standing(5);
  const { clock, nodes } = stand.cluster;
  stand.cluster.set("fail", 3, 4);
  for (const node of nodes.slice(1, 3)) node.deafen();
  for (let attempt = 0; attempt < 2; attempt++) { // the second in vain
    const denied = await stand.attempt(); // node 0 puts it in line, 1 and 2 only deny
    assertEquals(stand.cluster.lines.map(({ length }) => length), [1, 0, 0, 0, 0]);
    clock.setTimer(() => stand.wake(0), 20);
    assertEquals([await stand.wait(denied), stand.waiter.priority], [20, "woken"]);
  }
});

Deno.test("QueuedWaiter that asked unwoken since it was woken in vain asks at the first wake-up again", async () => {
  const [stand, denied] = await inVain();
  await stand.wait(denied, 50);
  const { clock } = stand.cluster;
  const second = await stand.attempt();
  clock.setTimer(() => stand.wake(2), 100);
  assertEquals(await stand.wait(second), 100);
  assertEquals(stand.cluster.claims, ["last", "last", "last"]);
});

Deno.test("QueuedWaiter that was woken in vain knows it where the round was decided early, too", async () => {
  const [stand] = await inVain(4, 0);
  const { clock, nodes } = stand.cluster;
  for (const node of nodes.slice(2)) node.replyMs = 1;
  stand.waiter.priority = "woken";
  const denied = await stand.attempt();
  clock.setTimer(() => stand.wake(0), 100);
  assertEquals(await stand.wait(denied), 102);
});

for (const numbers of [[0], [0, 1]]) {
  Deno.test(`QueuedWaiter that ${numbers.length} of 3 nodes woke during its attempt asks again at once`, async () => {
    const stand = await standing();
    for (const node of stand.cluster.nodes) node.replyMs = 10;
    const denied = stand.begin();
    await stand.cluster.clock.advance(5);
    stand.wake(...numbers);
    await stand.cluster.clock.advance(5);
    assertEquals([await stand.wait(denied), stand.waiter.woken], [0, true]);
  });
}

for (const [numbers, waitedMs] of [[[0], 10], [[0, 1], 0]] as const) {
  Deno.test(`QueuedWaiter that ${numbers.length} of 3 nodes woke during an attempt in vain asks again after ${waitedMs} ms`, async () => {
    const [stand, first] = await inVain();
    const { clock } = stand.cluster;
    clock.setTimer(() => stand.wake(0, 1), 20);
    await stand.wait(first);
    const denied = stand.begin();
    await clock.advance(5);
    stand.wake(...numbers);
    await clock.advance(5);
    assertEquals([await stand.wait(denied), stand.waiter.woken], [waitedMs, true]);
  });
}

Deno.test("QueuedWaiter counts no wake-up from before its last attempt", async () => {
  const stand = await standing();
  const { clock } = stand.cluster;
  const first = await stand.attempt();
  clock.setTimer(() => stand.wake(0), 20);
  await stand.wait(first);
  const second = await stand.attempt();
  clock.setTimer(() => stand.wake(1), 20);
  assertEquals([await stand.wait(second), stand.waiter.priority], [22, "woken"]);
  const third = await stand.attempt();
  assertEquals([await stand.wait(third), stand.waiter.priority], [60_000, "last"]);
  assertEquals(stand.cluster.claims, ["last", "last", "woken"]);
});

Deno.test("QueuedWaiter that was woken in vain goes to the front of the line", async () => {
  const stand = await standing();
  const { clock, nodes } = stand.cluster;
  const first = await stand.attempt();
  clock.setTimer(() => stand.wake(0, 1, 2), 20);
  await stand.wait(first);
  for (const node of nodes) {
    node.drop("a", stand.waiter.ticketId);
    node.enqueue("a", "other:1:9999999999999");
  }
  await stand.attempt();
  assertEquals(
    stand.cluster.lines,
    Array(3).fill([stand.waiter.ticketId, "other:1:9999999999999"]),
  );
});

// The end of a wait

Deno.test("QueuedWaiter waits no longer than it may, and asks as one who was not woken", async () => {
  const stand = await standing();
  const denied = await stand.attempt();
  assertEquals([await stand.wait(denied, 300), stand.waiter.priority], [300, "last"]);
  assertEquals([await stand.wait(denied, 0), stand.cluster.clock.timersAlive], [0, 0]);
});

Deno.test("QueuedWaiter waits until its signal aborts, and leaves no listener", async () => {
  const stand = await standing();
  const { clock } = stand.cluster;
  const denied = await stand.attempt();
  const controller = new AbortController();
  const listeners = countListeners(controller.signal);
  clock.setTimer(() => controller.abort(), 40);
  assertEquals(await stand.wait(denied, 1_000, controller.signal), 40);
  assertEquals([listeners(), clock.timersAlive], [0, 0]);
  assertEquals(await stand.wait(denied, 1_000, controller.signal), 0);
});

Deno.test("QueuedWaiter waits until the client closes, and polls no more then", async () => {
  for (const answers of [true, false]) {
    const stand = await standing();
    if (!answers) stand.cluster.set("fail", 0, 1);
    const denied = await stand.attempt();
    let over = false;
    stand.waiter.wait(0, Infinity, undefined, denied).then(() => over = true);
    await runMicrotasks();
    stand.notifications.close();
    assertEquals(stand.cluster.wheel.announceClose(), true);
    await runMicrotasks();
    assertEquals([over, stand.cluster.clock.timersAlive], [true, 0]);
  }
});

// Whose turn it is

Deno.test("QueuedWaiter at rest passes wake-ups on, node by node", async () => {
  const stand = await standing();
  await stand.attempt();
  stand.waiter.park();
  stand.wake(1);
  const { ticketId } = stand.waiter;
  assertEquals(stand.cluster.nodes.map(({ leaves }) => leaves), [[], [ticketId], []]);
});

Deno.test("QueuedWaiter that goes on after a rest lines up anew, and passes on what wakes it where it stood", async () => {
  const stand = await standing();
  const { waiter, cluster: { clock, nodes } } = stand;
  await stand.attempt();
  const before = waiter.ticketId;
  waiter.park();
  await clock.advance(50);
  waiter.requeue();
  assertNotEquals(waiter.ticketId, before);
  const denied = await stand.attempt();
  assertEquals(stand.cluster.lines, Array(3).fill([before, waiter.ticketId]));
  clock.setTimer(() => nodes.forEach((node) => node.wake(before)), 10);
  clock.setTimer(() => stand.wake(0, 1), 20);
  assertEquals([await stand.wait(denied), waiter.priority], [20, "woken"]);
  assertEquals(nodes.map(({ leaves }) => leaves), Array(3).fill([before]));
  assertEquals(stand.cluster.lines, Array(3).fill([waiter.ticketId]));
});

Deno.test("QueuedWaiter that goes on for another caller keeps its place, but not a wake-up", async () => {
  const stand = await standing();
  const { waiter, cluster: { clock } } = stand;
  const denied = await stand.attempt();
  clock.setTimer(() => stand.wake(0, 1, 2), 20);
  await stand.wait(denied);
  const before = waiter.ticketId;
  waiter.requeue();
  assertEquals([waiter.priority, waiter.woken, waiter.ticketId], ["last", false, before]);
});

Deno.test("QueuedWaiter that ends leaves the line on every node that may have put it there, or still will", async () => {
  const stand = await standing();
  const { waiter, cluster: { nodes } } = stand;
  nodes[1].replyMs = 1_000;
  nodes[2].deafen();
  await stand.attempt();
  waiter.leave();
  assertEquals(nodes.map(({ leaves }) => leaves), Array(3).fill([waiter.ticketId]));
  assertEquals(stand.cluster.lines, [[], [], []]);
  stand.wake(0); // nobody's any more
  assertEquals(nodes[0].leaves.length, 2);
});

Deno.test("QueuedWaiter that ends at rest, or before it was in line, leaves nowhere", async () => {
  const stand = await standing();
  await stand.attempt();
  stand.waiter.park();
  stand.waiter.leave();
  const other = await standing();
  other.waiter.leave();
  for (const { cluster: { nodes } } of [stand, other]) {
    assertEquals(nodes.flatMap(({ leaves }) => leaves), []);
  }
});

Deno.test("QueuedWaiter that ends lets the nodes tell no longer after a while", async () => {
  const stand = await standing();
  stand.waiter.leave();
  await stand.cluster.clock.advance(30_000);
  assertEquals(stand.cluster.nodes.map(({ unlistened }) => unlistened), [1, 1, 1]);
});
