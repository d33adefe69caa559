import { assert, assertEquals, assertRejects } from "@std/assert";
import { LockLostError } from "../../../src/errors.ts";
import { fillIn } from "../../../src/lock/fill_in.ts";
import { close, locked, settle } from "../../support/cluster_calls.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { FencingCluster } from "../../support/fencing_nodes.ts";
import { locked as lockedBelow } from "../../support/hold_bench.ts";

Deno.test("Lock.extend() that nobody heard does not bring a lost lock back", async () => {
  const { cluster, lock } = await locked();
  const { signal } = lock;
  cluster.nodes[0].forget();
  cluster.nodes[1].forget();
  const other = cluster.contender();
  const theirs = await settle(cluster, other.acquire("a", { waitMs: 0 }));
  await settle(cluster, theirs.release());
  cluster.set("lose-reply", 0, 1, 2);
  const lost = assertRejects(() => lock.extend(), LockLostError);
  await cluster.clock.advance(100);
  cluster.set("answer", 0, 1, 2);
  await settle(cluster, lost);
  assertEquals([lock.extensions, lock.held, signal.aborted], [0, false, true]);
  await settle(cluster, other.close());
  await close(cluster);
});

Deno.test("Lock.extend() fills in a node that lost the key, and whose answer comes after the decision", async () => {
  const { cluster, lock } = await locked(5);
  cluster.nodes[4].forget();
  cluster.nodes[4].replyMs = 40;
  await settle(cluster, lock.extend());
  assertEquals(cluster.nodes[4].holder("a"), undefined);
  await cluster.clock.advance(40);
  assertEquals(cluster.nodes[4].holder("a"), lock.value);
  await close(cluster);
});

Deno.test("Lock.extend() fills in nothing once the lock was released", async () => {
  const { cluster, lock } = await locked(5);
  cluster.nodes[4].forget();
  cluster.nodes[4].replyMs = 40;
  await settle(cluster, lock.extend());
  await settle(cluster, lock.release());
  await cluster.clock.advance(500);
  assertEquals(cluster.nodes[4].asked("acquire").length, 1);
  await close(cluster);
});

Deno.test("Lock.extend() leaves a node alone where another has the key", async () => {
  const { cluster, lock } = await locked();
  cluster.nodes[0].set("a", "other", 5_000);
  await settle(cluster, lock.extend());
  await runMicrotasks();
  assertEquals(cluster.nodes[0].asked("acquire").length, 1);
  assertEquals(cluster.holders("a"), ["other", lock.value, lock.value]);
  await close(cluster);
});

Deno.test("Lock.extend() succeeds although a node throws when it is filled in", async () => {
  const { cluster, lock } = await locked();
  cluster.nodes[0].forget();
  cluster.nodes[0].modes.acquire = "throw";
  await settle(cluster, lock.extend());
  assertEquals(lock.extensions, 1);
  await close(cluster);
});

Deno.test("Lock.release() deletes the key on a node that had denied it and was filled in", async () => {
  const { cluster } = await locked();
  cluster.nodes[0].set("b", "other", 100);
  const lock = await settle(cluster, cluster.redlock.acquire("b"));
  await cluster.clock.advance(100);
  await settle(cluster, lock.extend());
  assertEquals(cluster.holders("b"), Array(3).fill(lock.value));
  cluster.nodes[1].forget();
  cluster.nodes[2].forget();
  await settle(cluster, assertRejects(() => lock.extend(), LockLostError));
  await runMicrotasks();
  assertEquals(cluster.holders("b"), [undefined, undefined, undefined]);
  await close(cluster);
});

Deno.test("Lock.extend() raises the counter of a node that it fills in to the lock's token", async () => {
  const cluster = new FencingCluster(3, { fencing: true, ttlMs: 1_000 });
  const lock = await cluster.settle(cluster.redlock.acquire("a"));
  const [node] = cluster.nodes;
  node.holders.clear();
  node.counters.clear();
  await cluster.settle(lock.extend());
  assertEquals(node.steps, ["acquire", "extend", "acquire", "raiseCounters"]);
  assertEquals(node.asked("acquire")[1].counterFloor, undefined); // it does not count
  assertEquals([node.holders.get("a"), node.counters.get("a")], [lock.value, lock.fencingToken]);
});

Deno.test("fillIn() keeps the mark of a node that denies, as the key there may be the lock's own", async () => {
  const { cluster, held } = await lockedBelow();
  fillIn(held.round, 1_000, 0);
  await runMicrotasks();
  assertEquals(cluster.nodes[0].asked("acquire").length, 2);
  assert(held.round.maybeSet & 1);
});
