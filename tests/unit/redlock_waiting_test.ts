import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertLess,
  assertStrictEquals,
} from "@std/assert";
import { LockHeldError } from "../../src/errors.ts";
import type { RedlockOptions } from "../../src/options.ts";
import { close, REASON, settle } from "../support/cluster_calls.ts";
import { runMicrotasks } from "../support/fake_clock.ts";
import { countListeners } from "../support/fake_nodes.ts";
import { blocked, Callers, held, TTL_MS } from "../support/waiting_calls.ts";

// In one process

Deno.test("Redlock.acquire() is first in, first out, and asks the nodes once for each call", async () => {
  const bench = await held("second", "third", "fourth");
  for (const who of ["first", "second", "third", "fourth"]) {
    await bench.advance(1_000);
    assertEquals(bench.won.at(-1), who);
    await bench.release(who);
  }
  assertEquals([bench.won.length, bench.asked], [4, [4, 4, 4]]);
  assertEquals(bench.cluster.priorities, Array(4).fill("none"));
  await close(bench.cluster);
});

Deno.test("Redlock.acquire() asks no node while its client has the lock, however long", async () => {
  const bench = await held("second", "third");
  await bench.advance(500_000);
  assertEquals([bench.asked, bench.won], [[1, 1, 1], ["first"]]);
  assertEquals(bench.cluster.nodes.map(({ subscribes }) => subscribes), [0, 0, 0]);
  await close(bench.cluster);
});

Deno.test("Redlock.acquire() asks in the same tick in which the client's lock was released", async () => {
  const bench = await held("second");
  const startMs = bench.cluster.clock.monotonicMs();
  bench.locks.get("first")!.release();
  await runMicrotasks();
  assertEquals(bench.won, ["first", "second"]);
  assertEquals(bench.cluster.nodes[0].asked("acquire").at(-1)?.atMs, startMs);
  await close(bench.cluster);
});

Deno.test("Redlock.acquire() waits for the release to be answered by a quorum, and no longer", async () => {
  const bench = await held("second");
  bench.cluster.nodes[2].modes.release = "hang";
  for (const node of bench.cluster.nodes) node.replyMs = 10;
  bench.locks.get("first")!.release();
  await bench.advance(9);
  assertEquals(bench.asked, [1, 1, 1]);
  await bench.advance(1);
  assertEquals(bench.asked, [2, 2, 2]);
  await bench.advance(10);
  assertEquals(bench.won, ["first", "second"]);
  await close(bench.cluster);
});

Deno.test("Redlock.acquire() has the first call alone ask while others hold the lock", async () => {
  const bench = await blocked("first", "second", "third");
  assertEquals([bench.asked, bench.cluster.priorities], [[2, 2, 2], ["none", "in-order"]]);
  await bench.advance(25_000);
  assertEquals(bench.asked, [2, 2, 2]);
  assertEquals(bench.cluster.queues.map(({ length }) => length), [1, 1, 1]);
  bench.cluster.free();
  await bench.advance(0);
  assertEquals([bench.won, bench.cluster.priorities], [["first"], [
    "none",
    "in-order",
    "in-order",
  ]]);
  for (const who of ["first", "second", "third"]) await bench.release(who);
  assertEquals(bench.won, ["first", "second", "third"]);
  await close(bench.cluster);
});

Deno.test("Redlock.acquire() takes different sets of resources for different locks, in any order of names", async () => {
  const bench = new Callers();
  bench.call("a and b", {}, ["a", "b"]);
  await bench.advance(0);
  bench.call("c", {}, "c");
  bench.call("b and a", {}, ["b", "a"]);
  bench.call("with a prefix", { keyPrefix: "p:" }, ["a", "b"]);
  await bench.advance(1_000);
  assertEquals(bench.won, ["a and b", "c", "with a prefix"]);
  assertEquals(bench.asked, [3, 3, 3]);
  bench.call("a", {}, "a"); // has a line of its own, and hears from the nodes that it is held
  await bench.advance(1_000);
  assertEquals(bench.asked, [5, 5, 5]);
  await bench.release("a and b");
  assertEquals(bench.won.slice(3).toSorted(), ["a"]);
  await bench.release("a");
  await bench.advance(1_000);
  assertEquals(bench.won.slice(3), ["a", "b and a"]);
  await close(bench.cluster);
});

Deno.test("Redlock.using() stands in line like any other call", async () => {
  const bench = await held("second");
  const using = bench.cluster.redlock.using("a", () => bench.won.push("using"));
  bench.call("fourth");
  await bench.release("first");
  await bench.release("second");
  await settle(bench.cluster, using);
  await bench.advance(0);
  assertEquals(bench.won, ["first", "second", "using", "fourth"]);
  await close(bench.cluster);
});

// Others in line

Deno.test("Redlock.acquire() lines up behind others who wait at the release, once it hears of releases", async () => {
  const bench = await held("second");
  const { nodes } = bench.cluster;
  for (const node of nodes) {
    node.enqueue("a", "other:1");
    node.subscribeMs = 10;
  }
  await bench.release("first");
  await bench.advance(9);
  assertEquals([bench.asked, nodes[0].messages], [[1, 1, 1], ["other:1"]]);
  for (const node of nodes) { // who was notified takes it
    node.set("a", "theirs");
    node.drop("a", "other:1");
  }
  await bench.advance(1);
  assertEquals(bench.cluster.priorities, ["none", "in-order"]);
  assertEquals(bench.cluster.queues.map(({ length }) => length), [1, 1, 1]);
  await bench.advance(1_000);
  bench.cluster.free();
  await bench.advance(0);
  assertEquals([bench.won, bench.asked], [["first", "second"], [3, 3, 3]]);
  await close(bench.cluster);
});

Deno.test("Redlock.acquire() lines up with its first attempt where the lock was contended lately", async () => {
  const bench = await blocked("first");
  bench.cluster.free();
  await bench.advance(0);
  await bench.release("first");
  bench.call("second");
  await bench.advance(0);
  assertEquals(bench.cluster.priorities, ["none", "in-order", "in-order", "in-order"]);
  await bench.release("second");
  await bench.advance(30_000);
  bench.call("third");
  await bench.advance(0);
  assertEquals([bench.won, bench.cluster.priorities.at(-1)], [
    ["first", "second", "third"],
    "none",
  ]);
  await close(bench.cluster);
});

Deno.test("Redlock.acquire() leaves the lines on the nodes when its last call has given up", async () => {
  const bench = await blocked("first");
  bench.call("second", { waitMs: 500 });
  await bench.advance(500);
  assertEquals(bench.cluster.queues.map(({ length }) => length), [1, 1, 1]);
  const rejected = new AbortController();
  bench.call("third", { signal: rejected.signal });
  rejected.abort(REASON);
  await bench.advance(0);
  assertEquals(bench.cluster.queues.map(({ length }) => length), [1, 1, 1]);
  await close(bench.cluster);
  const alone = new Callers({ waitMs: 500 });
  alone.cluster.occupy();
  alone.call("first");
  await alone.advance(500);
  assertInstanceOf(alone.error("first"), LockHeldError);
  assertEquals(alone.cluster.queues, [[], [], []]);
  await close(alone.cluster);
});

Deno.test("Redlock.acquire() of two clients has the lock go from one to the other, in the order of coming", async () => {
  const bench = new Callers();
  const other = bench.cluster.contender({ ttlMs: TTL_MS, waitMs: Infinity });
  const call = (who: string) =>
    other.acquire("a").then((lock) => {
      bench.won.push(who);
      bench.locks.set(who, lock);
    });
  bench.call("1");
  await bench.advance(10);
  call("2");
  await bench.advance(10);
  bench.call("3");
  await bench.advance(10);
  call("4");
  await bench.advance(10);
  for (const who of ["1", "2", "3", "4"]) {
    await bench.advance(1_000);
    assertEquals(bench.won.at(-1), who);
    await bench.release(who);
  }
  const [node] = bench.cluster.nodes;
  assertEquals([node.queue(), node.holder("a")], [[], undefined]);
  assert(node.priorities.length <= 8, `${node.priorities}`);
  await settle(bench.cluster, other.close());
  await close(bench.cluster);
});

Deno.test("Redlock.acquire() that a minority grants does not wake itself, and asks ever more rarely", async () => {
  const callers = new Callers();
  for (const node of callers.cluster.nodes.slice(0, 2)) node.set("a", "other", 50_000);
  callers.call("first");
  await callers.advance(49_000);
  const { priorities } = callers.cluster;
  assertEquals(priorities, ["none", ...priorities.slice(1).fill("in-order")]);
  assertLess(priorities.length, 10);
  assertEquals(callers.cluster.queues.map(({ length }) => length), [1, 1, 1]);
  await callers.advance(1_002);
  assertEquals(callers.won, ["first"]);
  await close(callers.cluster);
});

/** A client whose first call has won on two nodes, and stands in line on the third, where somebody else is. */
async function inLineOnOne(): Promise<Callers> {
  const callers = await blocked("first");
  const { nodes } = callers.cluster;
  for (const node of nodes.slice(0, 2)) node.free("a");
  await callers.advance(0);
  assertEquals([callers.won, callers.cluster.queues.map(({ length }) => length)], [["first"], [
    0,
    0,
    1,
  ]]);
  return callers;
}

Deno.test("Redlock.acquire() that has the lock takes no notice of a late notification, and its release notifies the next", async () => {
  const callers = await inLineOnOne();
  const [, , node] = callers.cluster.nodes;
  node.enqueue("a", "other:1");
  const [ticket] = node.queue();
  const asked = callers.asked;
  node.free("a");
  await callers.advance(0);
  assertEquals([node.leaves, node.messages], [[], [ticket, "other:1+"]]);
  await callers.advance(10_000);
  assertEquals([callers.asked, node.queue()], [asked, [ticket, "other:1"]]);
  await callers.release("first");
  assertEquals([node.queue(), node.messages.at(-1)], [["other:1"], "other:1"]);
  await close(callers.cluster);
});

Deno.test("Redlock.acquire() leaves the line with its lock where it still stood, and the next lines up anew", async () => {
  const callers = await inLineOnOne();
  const [, , node] = callers.cluster.nodes;
  const [before] = node.queue();
  callers.call("second");
  await callers.release("first");
  assertEquals(callers.won, ["first", "second"]);
  assertEquals([node.queue().length, node.queue().includes(before)], [1, false]);
  await callers.release("second");
  assertEquals(callers.cluster.queues, [[], [], []]);
  await close(callers.cluster);
});

// Giving up

Deno.test("Redlock.acquire() that gives up in line leaves the others their places", async () => {
  const bench = await held("second");
  const controller = new AbortController();
  const listeners = countListeners(controller.signal);
  bench.call("third", { signal: controller.signal });
  bench.call("fourth", { waitMs: 100 });
  bench.call("fifth", { signal: AbortSignal.abort(REASON) });
  bench.call("sixth");
  await bench.advance(100);
  controller.abort(REASON);
  await bench.advance(0);
  assertStrictEquals(bench.error("third"), REASON);
  assertInstanceOf(bench.error("fourth"), LockHeldError);
  assertStrictEquals(bench.error("fifth"), REASON);
  assertEquals([bench.asked, listeners()], [[1, 1, 1], 0]);
  for (const who of ["first", "second", "sixth"]) await bench.release(who);
  assertEquals(bench.won, ["first", "second", "sixth"]);
  await close(bench.cluster);
});

for (const [how, options] of [["whose time is over", { waitMs: 1_500 }], ["that is aborted", {}]]) {
  Deno.test(`Redlock.acquire() ${how} at the head has the next go on in its place`, async () => {
    const controller = new AbortController();
    const bench = new Callers();
    bench.cluster.occupy();
    bench.call("first", { signal: controller.signal, ...options as RedlockOptions });
    bench.call("second");
    bench.call("third");
    await bench.advance(1_500);
    controller.abort(REASON);
    await bench.advance(0);
    assertEquals([...bench.errors.keys()], ["first"]);
    const { queues } = bench.cluster;
    assertEquals(queues.map(({ length }) => length), [1, 1, 1]);
    await bench.advance(1_000);
    assertEquals(bench.cluster.queues, queues);
    bench.cluster.free();
    await bench.advance(0);
    assertEquals(bench.won, ["second"]);
    await bench.release("second");
    assertEquals(bench.won, ["second", "third"]);
    await close(bench.cluster);
  });
}

Deno.test("Redlock.acquire() that is aborted in its attempt gives back what it won, and the next goes on", async () => {
  const bench = new Callers();
  const controller = new AbortController();
  for (const node of bench.cluster.nodes) node.replyMs = 10;
  bench.call("first", { signal: controller.signal });
  bench.call("second");
  await bench.advance(5);
  controller.abort(REASON);
  await bench.advance(20);
  assertEquals([bench.errors.get("first"), bench.won], [REASON, ["second"]]);
  await close(bench.cluster);
});

Deno.test("Redlock.acquire() that is first only when its time is over still asks once", async () => {
  const bench = await held();
  bench.call("second", { waitMs: 100 });
  const { clock } = bench.cluster;
  await bench.advance(0);
  clock.block(100);
  bench.locks.get("first")!.release();
  await bench.advance(0);
  assertEquals([bench.won, bench.asked], [["first", "second"], [2, 2, 2]]);
  await close(bench.cluster);
});
