import { assert, assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import { close, REASON, rejection, settle, TTL } from "../support/cluster_calls.ts";
import { runMicrotasks } from "../support/fake_clock.ts";
import { countListeners, FakeCluster } from "../support/fake_nodes.ts";

Deno.test("Redlock.acquire() with a signal that was aborted before asks nobody", async () => {
  const cluster = new FakeCluster();
  const signal = AbortSignal.abort(REASON);
  for (
    const call of [
      () => cluster.redlock.acquire("a", { signal }),
      () => cluster.redlock.tryAcquire("a", { signal }),
      () => cluster.redlock.using("a", { signal }, () => assert(false)),
    ]
  ) {
    assertStrictEquals(await assertRejects(call), REASON);
  }
  assertEquals(cluster.nodes.flatMap(({ calls }) => calls), []);
  await close(cluster);
});

Deno.test("Redlock.acquire() aborted while nodes are asked takes back what was set", async () => {
  const cluster = new FakeCluster();
  cluster.set("hang", 1, 2);
  const controller = new AbortController();
  const listeners = countListeners(controller.signal);
  const acquiring = cluster.redlock.acquire("a", { ...TTL, signal: controller.signal });
  await runMicrotasks();
  assertEquals(cluster.nodes[0].holder("a"), cluster.values[0]);
  controller.abort(REASON);
  assertStrictEquals(await rejection(cluster, acquiring), REASON);
  for (const node of cluster.nodes) node.resume();
  await runMicrotasks();
  assertEquals(cluster.holders("a"), [undefined, undefined, undefined]);
  assertEquals([listeners(), cluster.clock.timersAlive], [0, 0]);
  await close(cluster);
});

Deno.test("Redlock.acquire() aborted in the tick in which the quorum is won gives the lock back", async () => {
  const cluster = new FakeCluster();
  const controller = new AbortController();
  for (const node of cluster.nodes) node.replyMs = 5;
  const acquiring = cluster.redlock.acquire("a", { ...TTL, signal: controller.signal });
  cluster.clock.setTimer(() => controller.abort(REASON), 5);
  assertStrictEquals(await rejection(cluster, acquiring), REASON);
  await runMicrotasks();
  assertEquals(cluster.holders("a"), [undefined, undefined, undefined]);
  await close(cluster);
});

Deno.test("Redlock.acquire() aborted by its own listener gives the lock back", async () => {
  const cluster = new FakeCluster();
  const controller = new AbortController();
  const onEvent = () => controller.abort(REASON);
  const options = { ...TTL, signal: controller.signal, onEvent };
  assertStrictEquals(await rejection(cluster, cluster.redlock.acquire("a", options)), REASON);
  await runMicrotasks();
  assertEquals(cluster.holders("a"), [undefined, undefined, undefined]);
  await close(cluster);
});

Deno.test("Redlock.acquire() aborted between two attempts rejects at once", async () => {
  const cluster = new FakeCluster();
  for (const node of cluster.nodes) node.set("a", "other");
  const controller = new AbortController();
  const listeners = countListeners(controller.signal);
  const options = { waitMs: Infinity, signal: controller.signal, retryDelayMs: 1_000 };
  const acquiring = cluster.redlock.acquire("a", options);
  const rejected = assertRejects(() => acquiring);
  await cluster.clock.advance(100);
  const asked = cluster.nodes[0].asked("acquire").length;
  controller.abort(REASON);
  assertStrictEquals(await rejected, REASON);
  assertEquals(cluster.nodes[0].asked("acquire").length, asked);
  assertEquals([listeners(), cluster.clock.timersAlive, cluster.wheel.size], [0, 0, 0]);
  await close(cluster);
});

Deno.test("Redlock.acquire() that won ignores a later abort", async () => {
  const cluster = new FakeCluster();
  const controller = new AbortController();
  const options = { ...TTL, signal: controller.signal };
  const lock = await settle(cluster, cluster.redlock.acquire("a", options));
  controller.abort(REASON);
  assertEquals([lock.held, lock.signal.aborted], [true, false]);
  await close(cluster);
});

Deno.test("Redlock leaves no listener on a long-lived signal, whatever comes of the calls", async () => {
  const cluster = new FakeCluster(3, { ...TTL, waitMs: 200 });
  const { redlock, clock } = cluster;
  const { signal } = new AbortController();
  const listeners = countListeners(signal);
  for (let times = 0; times < 3; times++) {
    const lock = await settle(cluster, redlock.acquire("a", { signal }));
    await settle(cluster, redlock.acquire("a", { signal }).catch(() => {}));
    await settle(cluster, redlock.tryAcquire("a", { signal }));
    await settle(cluster, lock.extend({ signal }));
    await settle(cluster, lock.release());
    await settle(cluster, redlock.using("a", { signal }, () => clock.advance(1_500)));
    await settle(
      cluster,
      redlock.using("a", { signal }, () => Promise.reject(REASON)).catch(() => {}),
    );
    cluster.set("hang", 0, 1, 2);
    await settle(cluster, redlock.tryAcquire("a", { signal }).catch(() => {}));
    for (const node of cluster.nodes) node.resume();
    await clock.advance(10);
  }
  assertEquals(listeners(), 0);
  await close(cluster);
});
