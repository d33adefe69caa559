import { assert, assertEquals, assertLessOrEqual, assertNotEquals } from "@std/assert";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { WaiterBench as Bench } from "../../support/waiter_bench.ts";
import type { WaitingCluster } from "../../support/waiting_nodes.ts";

const RECOVERY_MS = 50;

/** A waiter whose nodes are subscribed, for a lock that somebody else has for ever. */
async function denied(nodeCount = 3, prepare?: (cluster: WaitingCluster) => void) {
  const bench = new Bench(nodeCount, prepare);
  await bench.cluster.clock.advance(100);
  bench.cluster.occupy();
  return bench;
}

/** Whether a wait after `round` is over. */
function waiting(bench: Bench, round = bench.latest!): { over: boolean } {
  const wait = { over: false };
  bench.waiter.wait(0, Infinity, undefined, round).then(() => wait.over = true);
  return wait;
}

// Nodes that come and go

Deno.test("QueuedWaiter does not ask when a node comes and goes, while a quorum with its ticket can notify it", async () => {
  const bench = await denied();
  await bench.attempt();
  const wait = waiting(bench);
  for (let flaps = 0; flaps < 20; flaps++) {
    bench.cluster.nodes[1].cut();
    await bench.cluster.clock.advance(50);
    bench.cluster.nodes[1].confirm();
    await bench.cluster.clock.advance(50);
  }
  assertEquals(wait.over, false);
});

Deno.test("QueuedWaiter asks soon when nodes are back after a quorum could no longer notify it", async () => {
  const bench = await denied();
  await bench.attempt();
  for (let times = 0; times < 3; times++) {
    const wait = waiting(bench);
    for (const node of bench.cluster.nodes.slice(0, 2)) node.cut();
    await bench.cluster.clock.advance(10);
    for (const node of bench.cluster.nodes.slice(0, 2)) node.confirm();
    await bench.cluster.clock.advance(RECOVERY_MS * 2 ** times);
    assertEquals(wait.over, true);
    await bench.attempt();
    assertEquals(bench.cluster.queues.map(({ length }) => length), [1, 1, 1]);
  }
});

Deno.test("QueuedWaiter asks when nodes have come and gone one after the other, once they are a quorum", async () => {
  const bench = await denied(5);
  await bench.attempt();
  const wait = waiting(bench);
  for (const [index, node] of bench.cluster.nodes.slice(0, 3).entries()) {
    assertEquals(wait.over, false);
    node.cut();
    node.drop("a", bench.waiter.ticketId);
    await bench.cluster.clock.advance(10);
    node.confirm();
    await bench.cluster.clock.advance(RECOVERY_MS);
    assertEquals(wait.over, index === 2);
  }
});

Deno.test("QueuedWaiter polls by its settings while too few nodes can notify it", async () => {
  const bench = await denied();
  await bench.attempt();
  const wait = waiting(bench);
  for (const node of bench.cluster.nodes.slice(1)) node.cut();
  await bench.cluster.clock.advance(200);
  assertEquals(wait.over, true);
  for (let attempt = 0; attempt < 4; attempt++) {
    const round = await bench.attempt();
    assertLessOrEqual(await bench.wait(round, 60_000, undefined, attempt), 200 * 2 ** attempt);
  }
});

Deno.test("QueuedWaiter polls if too few nodes answered to know how long to wait", async () => {
  const bench = await denied();
  bench.cluster.set("fail", 0, 1);
  for (let attempt = 0; attempt < 4; attempt++) {
    const round = await bench.attempt();
    const waitedMs = await bench.wait(round, 60_000, undefined, attempt);
    assertLessOrEqual(waitedMs, 200 * 2 ** attempt + 5);
  }
});

Deno.test("QueuedWaiter learns how long to wait from nodes that answer after the round was decided", async () => {
  const bench = await denied(4);
  for (const [index, node] of bench.cluster.nodes.entries()) {
    node.set("a", "other", 20_000);
    node.replyMs = [1, 1, 40, 40][index];
  }
  const round = await bench.attempt(); // refused by two of four
  const waitedMs = await bench.wait(round);
  assert(waitedMs > 15_000 && waitedMs <= 20_050, `${waitedMs}`);
});

// Whose turn it is

Deno.test("QueuedWaiter takes no notice of notifications while its client has the lock", async () => {
  const bench = await denied();
  await bench.attempt();
  bench.waiter.park();
  bench.notify(0, 1, 2);
  bench.cluster.nodes[0].notify(bench.waiter.ticketId, "next");
  await bench.cluster.clock.advance(1_000);
  assertEquals(bench.cluster.nodes.map(({ leaves }) => leaves), [[], [], []]);
});

Deno.test("QueuedWaiter that goes on after its client had the lock has a new ticket, behind all who wait", async () => {
  const bench = await denied();
  const { waiter, cluster: { clock, nodes } } = bench;
  await bench.attempt();
  const { ticketId, score } = waiter;
  waiter.park();
  await clock.advance(50);
  waiter.requeue();
  assertNotEquals(waiter.ticketId, ticketId);
  const round = await bench.attempt();
  assert(waiter.score > score);
  const wait = waiting(bench, round);
  for (const node of nodes) node.notify(ticketId); // of the ticket that it had
  await clock.advance(100);
  assertEquals(wait.over, false);
  bench.notify(0);
  await runMicrotasks();
  assertEquals(wait.over, true);
});

Deno.test("QueuedWaiter that goes on for another caller keeps its place, but not a notification", async () => {
  const bench = await denied();
  const round = await bench.attempt();
  bench.cluster.clock.setTimer(() => bench.notify(0, 1, 2), 20);
  await bench.wait(round);
  const { ticketId, score } = bench.waiter;
  bench.waiter.requeue();
  assertEquals([bench.waiter.notified, bench.waiter.ticketId], [false, ticketId]);
  assertEquals(bench.waiter.score, score);
});

Deno.test("QueuedWaiter that ends leaves the queues on every node that may have put it there, or still will", async () => {
  const bench = await denied();
  const { waiter, cluster: { nodes } } = bench;
  nodes[1].replyMs = 1_000;
  nodes[2].cut();
  await bench.attempt();
  waiter.leave();
  assertEquals(nodes.map(({ leaves }) => leaves), Array(3).fill([waiter.ticketId]));
  assertEquals(bench.cluster.queues, [[], [], []]);
});

Deno.test("QueuedWaiter that was in no queue, or whose client has the lock, leaves none", async () => {
  const bench = await denied();
  bench.waiter.leave();
  const other = await denied();
  await other.attempt();
  other.waiter.park();
  other.waiter.leave();
  for (const { cluster: { nodes } } of [bench, other]) {
    assertEquals(nodes.map(({ leaves }) => leaves), [[], [], []]);
  }
});

Deno.test("QueuedWaiter is content with nodes that know no leaving", async () => {
  const bench = await denied();
  await bench.attempt();
  for (const node of bench.cluster.nodes) Object.assign(node, { leaveQueue: undefined });
  bench.waiter.leave();
});
