import { assert, assertEquals, assertGreater } from "@std/assert";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { QUEUE_LEAD_MS } from "../../../src/quorum/queue_ticket.ts";
import { blocked, Callers, held } from "../../support/callers.ts";
import { test } from "../../support/cluster.ts";
import type { KeyspaceNode } from "../../support/keyspace_node.ts";

// Its ticket

Deno.test("a call asks without a ticket while fewer than a quorum of nodes can notify it, and else with one of its client's", async () => {
  const slow = (nodes: KeyspaceNode[]) => nodes.forEach((node) => node.subscribeMs = Infinity);
  const callers = await blocked(["first"], {}, 3, slow);
  assert(callers.priorities.every((priority) => priority === "none"));
  callers.nodes[0].confirm();
  await callers.advance(10_000);
  assertEquals([callers.priorities.at(-1), callers.queueLengths], ["none", [0, 0, 0]]);
  callers.nodes[1].confirm();
  await callers.advance(10_000);
  assertEquals([callers.priorities.at(-1), callers.queueLengths], ["in-order", [1, 1, 0]]);
  const [id, number] = callers.ticket.split(":");
  assertEquals([id.length, number], [16, "1"]);
  assert(callers.values.some((value) => value.startsWith(id)));
  callers.nodes[1].cut();
  const asked = callers.priorities.length;
  await callers.advance(10_000);
  assertGreater(callers.priorities.length, asked);
  assertEquals(new Set(callers.priorities.slice(asked)), new Set(["none"]));
  assertEquals(callers.queueLengths, [0, 0, 0]);
  assertEquals(callers.nodes.map(({ leaves }) => leaves.length), [1, 1, 0]);
});

Deno.test("a ticket has as its score when its call joined, by the median of the nodes' clocks, and keeps it", async () => {
  const callers = new Callers({}, 3, (nodes) => {
    nodes.forEach((node, index) => node.aheadMs = [60_000, 5_000, -3_600_000][index]);
  });
  callers.occupy();
  callers.call("first");
  const joinedMs = callers.clock.wallMs() + 5_000;
  await callers.advance(1_000);
  await callers.asksAfter(() => callers.notify(callers.nodes));
  assertEquals(callers.nodes[1].score(callers.ticket), joinedMs * 1_000);
});

Deno.test("a ticket keeps its position if the nodes' clocks are set ahead, one loses it, and its client is stopped after that", async () => {
  const callers = await blocked();
  const { ticket, nodes } = callers;
  for (const node of nodes) {
    node.aheadMs = 100_000;
    node.enqueue("a", "other:1");
    node.raise("a", "other:1", node.score(ticket) + 50_000_000);
  }
  await callers.asksAfter(() => callers.notify(nodes));
  nodes[2].drop("a", ticket);
  await callers.asksAfter(() => callers.notify(nodes.slice(0, 2)));
  callers.clock.block(2_000);
  await callers.asksAfter(() => callers.notify(nodes));
  await callers.asksAfter(() => callers.notify(nodes));
  for (const node of nodes) assertEquals(node.queue(), [ticket, "other:1"]);
});

Deno.test("a ticket keeps its score if that was early, but no more than nodes take of a new one", async () => {
  const callers = await blocked(["first"], { waitMs: 500 });
  for (const node of callers.nodes) node.aheadMs = QUEUE_LEAD_MS - 50;
  const joinedMs = callers.clock.wallMs();
  callers.call("second", { waitMs: 50_000 });
  await callers.advance(100);
  await callers.asksAfter(() => callers.notify(callers.nodes));
  assertEquals(callers.nodes[1].score(callers.ticket), joinedMs * 1_000);
});

Deno.test("a ticket whose score a quorum of nodes did not take asks with one that they have the next time", async () => {
  const callers = new Callers({}, 5);
  const { nodes } = callers;
  callers.occupy();
  const lateUs = (callers.clock.wallMs() + 1_000) * 1_000; // too late to be passed by a new ticket
  nodes.slice(2).forEach((node, index) => {
    node.enqueue("a", "other:1");
    node.raise("a", "other:1", lateUs + index);
  });
  callers.call("first");
  await callers.advance(10);
  const scores = () => nodes.map((node) => node.score(callers.ticket));
  assertEquals(new Set(scores()).size, 4); // one of two nodes, three of three
  await callers.advance(1_000); // no node takes a score that is far ahead of its clock
  await callers.asksAfter(() => callers.notify(nodes));
  const [first, second, third, , fifth] = scores();
  assertEquals([first, second, third], Array(3).fill(lateUs + 1));
  assertGreater(fifth, third);
});

Deno.test("a client whose clock is behind does not pass those in a queue that its call for several comes to later", async () => {
  const callers = new Callers();
  callers.occupy();
  callers.call("first");
  await callers.advance(1_000); // now it knows the nodes' clocks
  callers.free();
  await callers.advance(1_000);
  await callers.release("first");
  const fastMs = 600_000;
  callers.occupy();
  for (const node of callers.nodes) {
    node.aheadMs = fastMs;
    node.enqueue("b", "other:1");
    node.raise("b", "other:1", (callers.clock.wallMs() + fastMs - 50_000) * 1_000);
  }
  callers.call("second", {}, ["a", "b"]);
  await callers.advance(100);
  callers.occupy("b");
  callers.free();
  await callers.advance(100);
  for (const node of callers.nodes) {
    assertEquals(node.queue("b").map((ticket) => ticket.startsWith("other")), [true, false]);
  }
});

/**
 * A call whose ticket is the first on one of two nodes, and behind another's on the other, which is
 * stuck.
 *
 * @param free Whether the key is free on the one node when the ticket joins.
 */
async function split(free = false): Promise<Callers> {
  const callers = new Callers({}, 2);
  const [one, other] = callers.nodes;
  callers.occupy();
  if (free) one.delete("a");
  other.enqueue("a", "other:1");
  other.raise("a", "other:1", (callers.clock.wallMs() + 300) * 1_000); // too late to be passed
  callers.call("first");
  await callers.advance(100);
  return callers;
}

Deno.test("a ticket that is the first on some nodes alone agrees with them on a score, even if they grant", async () => {
  for (const free of [false, true]) {
    const callers = await split(free);
    const { ticket, nodes: [one, other] } = callers;
    callers.notify([one]);
    await callers.advance(40);
    assertEquals([callers.won, callers.queueLengths], [[], [1, 2]]);
    assertEquals(one.score(ticket), other.score(ticket));
  }
});

Deno.test("a ticket that is the first on some nodes alone overtakes a first that is stuck, although one node's grants come late", async () => {
  const callers = await split();
  const [one, other] = callers.nodes;
  for (const node of callers.nodes) node.delete("a");
  one.replyMs = 20; // the denial of the other decides
  callers.notify([other]);
  await callers.advance(5_000);
  assertEquals([callers.won, callers.priorities.at(-1)], [["first"], "in-order"]);
});

Deno.test("a ticket says when the wait of its caller ends, and the next caller of the client goes on in its place with a later end", async () => {
  const callers = new Callers({ waitMs: 5_000 });
  const endsIn = () => Number(callers.ticket.split(":")[3]) * 1_000 - callers.clock.wallMs();
  callers.occupy();
  callers.call("first");
  callers.call("second", { waitMs: 60_000 });
  await callers.advance(1_000);
  const { ticket } = callers;
  assert(endsIn() > 4_000 && endsIn() <= 5_500, `its wait ends in ${endsIn()} ms`);
  const [node] = callers.nodes;
  const score = node.score(ticket);
  for (const node of callers.nodes) node.enqueue("a", "other:1");
  await callers.advance(5_000);
  assertEquals(callers.errors.size, 1);
  assert(endsIn() > 54_000 && endsIn() <= 55_500, `its wait ends in ${endsIn()} ms`);
  assertEquals(node.score(callers.ticket), score);
  assertEquals(node.queue(), [callers.ticket, "other:1"]);
});

for (const waitMs of [Infinity, Number.MAX_VALUE]) {
  Deno.test(`a ticket whose wait of ${waitMs} ms ends beyond all numbers of scripts says no end, and is notified`, async () => {
    const callers = await blocked(["first"], { waitMs });
    assertEquals(callers.ticket.split(":").length, 3);
    await callers.asksAfter(() => callers.nodes.forEach((node) => node.free()));
    assertEquals(callers.won, ["first"]);
  });
}

// Before and after the lock

Deno.test("a call joins the queues with its first attempt if others wait at its client's release, and the next call does not", async () => {
  for (const notified of [true, false]) {
    const callers = await held();
    callers.call("second", { notify: notified });
    callers.call("third");
    for (const node of callers.nodes) node.enqueue("a", "other:1");
    await callers.advance(0);
    await callers.release("first");
    for (const node of callers.nodes) assertEquals(node.messages[0], "other:1");
    await callers.advance(1_000); // the other one is notified, and does not use its turn
    assertEquals(callers.won, ["first", "second"]);
    assertEquals(callers.priorities[1], notified ? "in-order" : "none");
    for (const node of callers.nodes) node.drop("a", "other:1");
    await callers.release("second");
    assertEquals([callers.won.at(-1), callers.priorities.at(-1)], ["third", "none"]);
  }
});

Deno.test("a call for one of several keys joins its queue if others wait for that at its client's release of them", async () => {
  for (const resource of ["a", ["c", "a"]]) {
    const callers = new Callers();
    callers.call("first", {}, ["a", "b"]);
    await callers.advance(0);
    for (const node of callers.nodes) node.enqueue("a", "other:1");
    await callers.release("first");
    callers.call("second", {}, resource); // but it is the other's turn
    await callers.advance(0);
    assertEquals([callers.won, callers.priorities[0]], [["first"], "none"]);
  }
});

/**
 * A client whose first call has won on two nodes, and is in the queue on the third, where somebody
 * else has the key.
 */
async function queuedOnOne(): Promise<Callers> {
  const callers = await blocked(["first"]);
  for (const node of callers.nodes.slice(0, 2)) node.free();
  await callers.advance(0);
  assertEquals([callers.won, callers.queueLengths], [["first"], [0, 0, 1]]);
  return callers;
}

Deno.test("a client that has the lock takes no notice of a late notification, nor of subscriptions that end, and its release notifies the next", async () => {
  const callers = await queuedOnOne();
  const [, , node] = callers.nodes;
  node.enqueue("a", "other:1");
  const { ticket } = callers;
  const asked = callers.asked();
  node.free();
  await callers.advance(10_000);
  assertEquals([node.leaves, node.messages], [[], [ticket, "other:1+50"]]);
  for (const node of callers.nodes.slice(0, 2)) node.cut();
  assertEquals([callers.asked(), node.queue()], [asked, [ticket, "other:1"]]);
  await callers.release("first");
  assertEquals([node.queue(), node.messages.at(-1)], [["other:1"], "other:1"]);
  assertEquals(node.leaves, []); // the release has taken the ticket out
});

Deno.test("a lock keeps nothing alive of the attempts that failed before it", async () => {
  const errors: WeakRef<Error>[] = [];
  const callers = new Callers({
    onEvent: (event) => {
      if (event.type !== "attempt" || event.granted) return;
      errors.push(new WeakRef(event.votes[0].error!));
    },
  });
  callers.occupy();
  callers.nodes[0].mode = "fail";
  callers.call("first");
  await callers.advance(0);
  await callers.asksAfter(() => callers.free());
  await new Promise((resolve) => setTimeout(resolve)); // until then a WeakRef keeps its object
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  assertEquals([callers.won, errors.length], [["first"], 2]);
  assert(errors.every((error) => !error.deref()));
});

Deno.test("a client leaves the queues with its lock where it still was, and its next call joins behind all who wait", async () => {
  const callers = await queuedOnOne();
  const [, , node] = callers.nodes;
  const { ticket } = callers;
  const score = node.score(ticket);
  for (const node of callers.nodes) node.enqueue("a", "other:1");
  callers.call("second");
  await callers.release("first");
  const [first, second, ...rest] = node.queue();
  assertEquals([first, second === ticket, rest], ["other:1", false, []]);
  assertGreater(node.score(second), score);
});

Deno.test("a client leaves the queue where it still was if it closes, or its lock is lost or handed over", async () => {
  const closed = await queuedOnOne();
  await closed.close();
  assertEquals(closed.queueLengths, [0, 0, 0]);
  const waiting = await blocked();
  const startMs = waiting.nowMs;
  await waiting.close();
  assertEquals([waiting.nowMs - startMs, waiting.queueLengths], [0, [0, 0, 0]]);
  const lost = await queuedOnOne();
  lost.forget(0, 1);
  await lost.rejection(lost.locks.get("first")!.extend());
  assertEquals(lost.queueLengths, [0, 0, 0]);
  const handedOver = await queuedOnOne();
  handedOver.locks.get("first")!.handOver();
  assertEquals(handedOver.queueLengths, [0, 0, 0]);
});

Deno.test("a ticket leaves the queue of a node that cannot notify it: one that grants all the same, or has put it back", async () => {
  for (const wins of [true, false]) {
    const controller = new AbortController();
    const options = { atLeastMs: 1, signal: controller.signal };
    const callers = await blocked(["first"], options, 3, ([, , third]) => {
      if (!wins) third.subscribeMs = Infinity;
    });
    const [first, second, third] = callers.nodes;
    if (wins) third.cut();
    third.delete("a");
    if (wins) [first, second].forEach((node) => node.free());
    else callers.notify([first, second]);
    await callers.advance(1_000);
    if (!wins) assertEquals(callers.queueLengths, [1, 1, 1]);
    controller.abort();
    await callers.advance(0);
    assertEquals([callers.won.length, callers.queueLengths], [wins ? 1 : 0, [0, 0, 0]]);
  }
});

Deno.test("a call that polls takes the ticket of the call before it out of the queues", async () => {
  for (const mode of ["exclusive", "shared"] as const) {
    const callers = new Callers({ mode });
    callers.occupy();
    const controller = new AbortController();
    callers.call("first", { signal: controller.signal });
    callers.call("polls", { notify: false });
    await callers.advance(100);
    assertEquals(callers.queueLengths, [1, 1, 1]);
    controller.abort();
    await callers.advance(1_000);
    assertEquals([callers.errors.size, callers.queueLengths], [1, [0, 0, 0]]);
  }
});

Deno.test("the last call that gives up leaves the queues on those nodes that may have its ticket, and a call in none leaves none", async () => {
  for (const waits of ["first", "first and second"]) {
    const callers = new Callers({ waitMs: 500 }, 5, ([silent]) => silent.subscribeMs = Infinity);
    const [, , slow, cut, lacking] = callers.nodes;
    callers.occupy();
    Object.assign(lacking, { leaveQueue: undefined });
    callers.call("first");
    if (waits !== "first") callers.call("second", { waitMs: 5_000 });
    await callers.advance(100);
    const { ticket } = callers;
    slow.replyMs = 10_000;
    cut.cut();
    await callers.advance(3_000);
    const leaves = callers.nodes.map((node) => node.leaves);
    const left = [ticket];
    if (waits !== "first") {
      assertEquals([callers.errors.size, leaves], [1, [[], left, left, left, []]]);
      left.push(callers.ticket); // the second's wait ends later
    }
    await callers.advance(5_000);
    assertEquals(leaves, [[], left, left, left, []]);
    assertEquals(callers.queueLengths, [0, 0, 0, 0, left.length]);
  }
  const polling = await blocked(["first"], { waitMs: 500, notify: false });
  assertEquals(polling.errors.size, 1);
  assertEquals(polling.nodes.map(({ leaves }) => leaves), [[], [], []]);
});

Deno.test("a call whose lock keeps its keys for a while leaves the queue of a node that reports it late", async () => {
  const callers = await blocked(["first"], { atLeastMs: 10_000 });
  const [slow, ...others] = callers.nodes;
  slow.replyMs = 20; // there the key is held yet
  for (const node of others) node.delete("a");
  callers.notify(others);
  await callers.advance(10);
  assertEquals([callers.won, callers.queueLengths], [["first"], [1, 0, 0]]);
  await callers.advance(100);
  assertEquals(callers.queueLengths, [0, 0, 0]);
});

test("a call that may not wait asks without the ticket of one that waits", async (cluster) => {
  cluster.occupy();
  const waiting = cluster.refusal({ waitMs: 500 });
  await cluster.advance(100);
  assertEquals(await cluster.try(), undefined);
  const priorities = cluster.nodes[0].asked("acquire").map(({ priority }) => priority);
  assertEquals(priorities, [undefined, "in-order", undefined]);
  await waiting;
});
