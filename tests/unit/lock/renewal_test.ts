import { assert, assertEquals } from "@std/assert";
import { heldLock } from "../../../src/lock/lock.ts";
import type { RedlockOptions } from "../../../src/options.ts";
import { type Cluster, locked as lockedWith } from "../../support/cluster.ts";

const TTL_MS = 1_200;
/** TTL less 1 % less 2 ms. */
const VALIDITY_MS = 1_186;
/** The time after which a lock of that TTL is extended. */
const THIRD_MS = 400;

async function locked(nodeCount = 3, options: RedlockOptions = {}) {
  const bench = await lockedWith(nodeCount, { ttlMs: TTL_MS, autoExtend: true, ...options });
  return { ...bench, startMs: bench.cluster.nowMs };
}

/** When the first node was asked to extend, from `startMs`. */
function extendTimes(cluster: Cluster, startMs: number): number[] {
  return cluster.nodes[0].asked("extend").map(({ atMs }) => Math.round(atMs - startMs));
}

Deno.test("Renewal extends by the TTL whenever a third of it has passed since the last extension began", async () => {
  const { cluster, lock, startMs } = await locked();
  for (const node of cluster.nodes) node.replyMs = 40;
  cluster.clock.stepWall(-60_000); // which changes nothing
  await cluster.advance(2_030);
  assertEquals(extendTimes(cluster, startMs), [400, 800, 1_200, 1_600, 2_000]);
  for (const { ttlMs, keys } of cluster.nodes[0].asked("extend")) {
    assertEquals([ttlMs, keys], [TTL_MS, ["a"]]);
  }
  await cluster.advance(10);
  assertEquals([lock.held, lock.extensions], [true, 5]);
  assertEquals(lock.remainingMs(), VALIDITY_MS - 40);
  assertEquals(cluster.clock.timersAlive, 0); // it does not keep the process alive
});

Deno.test("Renewal that was under way when its lock was released leaves nothing to do", async () => {
  const { cluster, lock } = await locked();
  for (const node of cluster.nodes) node.replyMs = 40;
  await cluster.advance(THIRD_MS + 10);
  assertEquals(await cluster.settle(lock.release()), true);
  await cluster.advance(2 * TTL_MS);
  assertEquals([cluster.asked("extend"), cluster.asked("release")], [[1, 1, 1], [1, 1, 1]]);
});

Deno.test("Renewal comes a third of the TTL after an extension by the holder, too", async () => {
  const { cluster, lock, startMs } = await locked();
  await cluster.advance(300);
  await cluster.settle(lock.extend());
  await cluster.advance(THIRD_MS);
  assertEquals(extendTimes(cluster, startMs), [300, 300 + THIRD_MS]);
});

Deno.test("Renewal goes on after one that ends no later than an extension by the holder", async () => {
  const { cluster, lock } = await locked(3, { driftFactor: 0 });
  await cluster.settle(lock.extend({ ttlMs: 2 * TTL_MS }));
  await cluster.advance(10 * TTL_MS);
  assertEquals(lock.held, true);
});

Deno.test("Renewal is not put off by shorter extensions by the holder", async () => {
  const { cluster, lock } = await locked();
  for (let times = 0; times < 30; times++) {
    await cluster.advance(THIRD_MS / 4);
    await cluster.settle(lock.extend({ ttlMs: TTL_MS / 2 }));
    assert(lock.remainingMs() >= VALIDITY_MS - THIRD_MS, `${times}`);
  }
});

Deno.test("Renewal bounds each try by nodeTimeoutMs", async () => {
  const { cluster, lock, startMs } = await locked(3, { nodeTimeoutMs: 30 });
  cluster.set("hang", 0, 1);
  await cluster.advance(THIRD_MS + 120);
  const [first, second] = extendTimes(cluster, startMs);
  assertEquals(second - first, 30 + TTL_MS / 15);
  assert(lock.held); // here, because nothing extends a lock whose handle is garbage
});

Deno.test("Renewal that has failed goes ahead of a crowd that waits to extend", async () => {
  const { cluster, lock } = await locked(3, { nodeTimeoutMs: 30 });
  const { extensionGate } = heldLock(lock).client;
  cluster.set("hang", 0, 1);
  await cluster.advance(THIRD_MS + 40); // it has failed
  cluster.resume();
  while (extensionGate.enter());
  for (let place = 0; place < 3; place++) extensionGate.wait(Infinity);
  await cluster.advance(TTL_MS / 15);
  assertEquals(lock.extensions, 0); // there is no room
  extensionGate.leave();
  await cluster.advance(1);
  assertEquals(lock.extensions, 1);
});

Deno.test("extend() asks no node if the lock was handed over while it waited behind a crowd", async () => {
  const { cluster, lock } = await locked();
  const { extensionGate } = heldLock(lock).client;
  while (extensionGate.enter());
  const extending = cluster.rejection(lock.extend());
  await cluster.advance(1);
  lock.handOver();
  extensionGate.leave();
  assertEquals([(await extending).name, cluster.nodes[0].asked("extend")], ["LockLostError", []]);
  assertEquals(extensionGate.enter(), true); // it has left
});

Deno.test("Renewal fills nothing in while too few nodes grant", async () => {
  const { cluster, lock } = await locked();
  cluster.forget(0);
  cluster.set("fail", 1);
  await cluster.advance(2 * THIRD_MS);
  assertEquals(lock.extensions, 0); // node 2 alone
  assertEquals(cluster.nodes[0].holder(), undefined);
  cluster.set("answer", 1);
  await cluster.advance(TTL_MS / 15);
  assertEquals(lock.extensions, 1); // nodes 1 and 2
  assertEquals(cluster.nodes[0].holder(), lock.value);
});

Deno.test("extend() adds no more than extensionsMax extensions, also if it is called three times at once", async () => {
  const { cluster, lock } = await locked(3, { extensionsMax: 1 });
  const extending = [1, 2, 3].map(() => lock.extend().then(() => 1, ({ code }) => code));
  assertEquals(await cluster.settle(Promise.all(extending)), [1, "LOCK_LOST", "LOCK_LOST"]);
  assertEquals([lock.extensions, lock.held], [1, true]);
});

Deno.test("Renewal ends after extensionsMax extensions, and the lock with its validity", async () => {
  const { cluster, lock, startMs } = await locked(3, { extensionsMax: 2 });
  await cluster.advance(2 * THIRD_MS + TTL_MS);
  assertEquals([extendTimes(cluster, startMs), lock.signal.aborted], [[400, 800], true]);
  assertEquals(
    lock.signal.reason.message,
    `Cannot keep lock "a": it was extended 2 times, the most that 'extensionsMax' allows`,
  );
});
