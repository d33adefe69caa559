import { assert, assertEquals, assertGreater, assertInstanceOf } from "@std/assert";
import { LockHeldError } from "../../src/errors.ts";
import { close, rejection, settle, TTL } from "../support/cluster_calls.ts";
import { FakeCluster } from "../support/fake_nodes.ts";

Deno.test("Redlock.acquire() tries again until the lock is free, with a fresh value each time", async () => {
  const cluster = new FakeCluster();
  for (const node of cluster.nodes) node.set("a", "other", 2_000);
  const lock = await settle(cluster, cluster.redlock.acquire("a", TTL));
  const tried = cluster.nodes[0].asked("acquire").map(({ value }) => value);
  assertGreater(tried.length, 3);
  assertEquals(new Set(tried).size, tried.length);
  assertEquals(lock.value, tried.at(-1));
  await close(cluster);
});

Deno.test("Redlock.acquire() undoes each attempt under its own value before the next", async () => {
  const cluster = new FakeCluster();
  for (const node of cluster.nodes.slice(0, 2)) node.set("a", "other", 2_000);
  const lock = await settle(cluster, cluster.redlock.acquire("a", TTL));
  const [denying, , granting] = cluster.nodes.map(({ calls }) => {
    return calls.map(({ operation, value }) => `${operation} ${value}`);
  });
  assertEquals(denying, cluster.values.map((value) => `acquire ${value}`));
  const expected = cluster.values.flatMap((value) => [`acquire ${value}`, `release ${value}`]);
  assertEquals(granting, expected.slice(0, -1));
  assertEquals(cluster.holders("a"), Array(3).fill(lock.value));
  await close(cluster);
});

Deno.test("Redlock.acquire() gives up when waitMs is over, and no sooner", async () => {
  const cluster = new FakeCluster();
  for (const node of cluster.nodes) node.set("a", "other");
  const startMs = cluster.clock.monotonicMs();
  const error = await rejection(cluster, cluster.redlock.acquire("a", { waitMs: 3_000 }));
  assertInstanceOf(error, LockHeldError);
  const waitedMs = cluster.clock.monotonicMs() - startMs;
  assert(waitedMs >= 3_000 && waitedMs <= 3_010, `${waitedMs}`);
  await close(cluster);
});

Deno.test("Redlock.acquire() takes a lock that becomes free at the very end of the wait", async () => {
  const cluster = new FakeCluster(3, { retryDelayMs: 400, retryDelayMaxMs: 100_000 });
  cluster.fraction = 0.999;
  for (const node of cluster.nodes) node.set("a", "other", 2_990);
  const lock = await settle(cluster, cluster.redlock.acquire("a", { waitMs: 3_000 }));
  assert(lock.held);
  await close(cluster);
});

Deno.test("Redlock.acquire() lets jitter spread its attempts, up to retryDelayMaxMs", async () => {
  const cluster = new FakeCluster(1, { retryDelayMs: 10, retryDelayMaxMs: 40, waitMs: 300 });
  cluster.nodes[0].set("a", "other");
  const startMs = cluster.clock.monotonicMs();
  await rejection(cluster, cluster.redlock.acquire("a"));
  const times = cluster.nodes[0].asked("acquire").map(({ atMs }) => atMs - startMs);
  assertEquals(times.slice(0, 6), [0, 5, 15, 35, 55, 75]);
  await close(cluster);
});

Deno.test("Redlock.acquire() does not hang with a retryDelayMs of 0, however often it tries", async () => {
  const cluster = new FakeCluster(1);
  cluster.nodes[0].set("a", "other", 1_500);
  cluster.nodes[0].replyMs = 1;
  const options = { retryDelayMs: 0, retryDelayMaxMs: 1 };
  const lock = await settle(cluster, cluster.redlock.acquire("a", options), 3_000);
  assert(lock.held);
  await close(cluster);
});
