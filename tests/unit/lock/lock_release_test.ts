import { assert, assertEquals, assertRejects } from "@std/assert";
import { QuorumError } from "../../../src/errors.ts";
import { close, locked, settle, TTL } from "../../support/cluster_calls.ts";
import { FakeCluster } from "../../support/fake_nodes.ts";

Deno.test("Lock.release() deletes the keys and is true", async () => {
  const { cluster, lock } = await locked(5);
  assertEquals(await settle(cluster, lock.release()), true);
  assertEquals([lock.held, lock.remainingMs()], [false, 0]);
  assertEquals(cluster.holders("a"), Array(5).fill(undefined));
  assertEquals([cluster.wheel.size, cluster.clock.timersAlive], [0, 0]);
  await close(cluster);
});

Deno.test("Lock.release() is told to every node, whether or not it granted", async () => {
  const cluster = new FakeCluster(5);
  cluster.nodes[0].set("a", "other");
  cluster.nodes[1].modes.acquire = "lose-reply";
  const lock = await settle(cluster, cluster.redlock.acquire("a", TTL));
  assertEquals(await settle(cluster, lock.release()), true);
  assertEquals(cluster.holders("a"), ["other", ...Array(4).fill(undefined)]);
  assertEquals(cluster.nodes.map((node) => node.asked("release").length), Array(5).fill(1));
  await close(cluster);
});

Deno.test("Lock.release() a second time gives the first one's result and sends nothing", async () => {
  const { cluster, lock } = await locked();
  const first = lock.release();
  const second = lock.release();
  assertEquals(await settle(cluster, Promise.all([first, second])), [true, true]);
  assertEquals(await settle(cluster, lock.release()), true);
  assertEquals(cluster.nodes[0].asked("release").length, 1);
  await close(cluster);
});

Deno.test("Lock.release() settles at a quorum", async () => {
  const { cluster, lock } = await locked(5);
  cluster.set("hang", 0, 1);
  const startMs = cluster.clock.monotonicMs();
  assertEquals(await settle(cluster, lock.release()), true);
  assertEquals(cluster.clock.monotonicMs(), startMs);
  await close(cluster);
});

Deno.test("Lock.release() is false where the lock was gone already, and spares its successor", async () => {
  const { cluster, lock } = await locked();
  for (const node of cluster.nodes) node.set("a", "other");
  assertEquals(await settle(cluster, lock.release()), false);
  assertEquals(cluster.holders("a"), ["other", "other", "other"]);
  const released = cluster.events.at(-1);
  assert(released?.type === "released" && !released.confirmed);
  await close(cluster);
});

Deno.test("Lock.release() of a lock that ran out is false, and spares its successor", async () => {
  const { cluster, lock } = await locked();
  await cluster.clock.advance(1_100);
  const successor = await settle(cluster, cluster.redlock.acquire("a"));
  assertEquals(await settle(cluster, lock.release()), false);
  assertEquals(cluster.holders("a"), Array(3).fill(successor.value));
  assert(successor.held);
  await close(cluster);
});

for (const mode of ["fail", "hang", "throw"] as const) {
  Deno.test(`Lock.release() rejects where a majority does ${mode}, within nodeTimeoutMs and without retries`, async () => {
    const { cluster, lock } = await locked();
    cluster.set(mode, 0, 1);
    const startMs = cluster.clock.monotonicMs();
    const error = await settle(cluster, assertRejects(() => lock.release(), QuorumError));
    const what = mode === "hang" ? "timed out" : "failed";
    assert(error.message.startsWith('Cannot release lock "a": '));
    assert(error.message.includes(`2 ${what}, 2 are needed`));
    assertEquals(cluster.clock.monotonicMs() - startMs, mode === "hang" ? 50 : 0);
    assertEquals(cluster.nodes[0].asked("release").length, 1);
    assertEquals(lock.held, false);
    assertEquals(cluster.eventTypes.at(-1), "release-failed");
    await close(cluster);
  });

  Deno.test(`Lock.release() never throws for a lock that ran out, where a majority does ${mode}`, async () => {
    const { cluster, lock } = await locked();
    await cluster.clock.advance(1_100);
    cluster.set(mode, 0, 1);
    assertEquals(await settle(cluster, lock.release()), false);
    await close(cluster);
  });

  Deno.test(`Lock[Symbol.asyncDispose]() throws nothing where a majority does ${mode}`, async () => {
    const { cluster, lock } = await locked();
    cluster.set(mode, 0, 1);
    assertEquals(await settle(cluster, lock[Symbol.asyncDispose]()), undefined);
    assertEquals(cluster.eventTypes.at(-1), "release-failed");
    await close(cluster);
  });
}

for (const nodeCount of [2, 4, 6]) {
  Deno.test(`Lock.release() of ${nodeCount} nodes settles where half of them lost the key`, async () => {
    const { cluster, lock } = await locked(nodeCount);
    cluster.nodes.slice(nodeCount / 2).forEach((node) => node.forget());
    assertEquals(await settle(cluster, lock.release(), 100), false);
    assertEquals(cluster.holders("a"), Array(nodeCount).fill(undefined));
    await close(cluster);
  });
}

Deno.test("Lock is released at the end of await using", async () => {
  const { cluster, lock } = await locked();
  {
    await using held = lock;
    assert(held.held);
  }
  assertEquals(cluster.holders("a"), [undefined, undefined, undefined]);
  await close(cluster);
});

Deno.test("Lock that was released lets the next client in at once", async () => {
  const { cluster, lock } = await locked();
  const waiter = cluster.contender();
  assertEquals(await settle(cluster, waiter.tryAcquire("a")), undefined);
  await settle(cluster, lock.release());
  const next = await settle(cluster, waiter.tryAcquire("a"));
  assert(next?.held);
  await settle(cluster, waiter.close());
  await close(cluster);
});
