/** Readers that wait: who notifies them, whatever became of those ahead. */
import { assert, assertEquals, assertInstanceOf, assertLess } from "@std/assert";
import { LockHeldError } from "../../../src/errors.ts";
import type { Lock } from "../../../src/lock/lock.ts";
import type { RedlockOptions } from "../../../src/options.ts";
import { type Cluster, test } from "../../support/cluster.ts";

const WAIT: RedlockOptions = { waitMs: 50_000, ttlMs: 20_000 };
const READ = { ...WAIT, mode: "shared" } as const;
const BOTH = ["a", "b"];

/** Another client's lock. */
function locked(cluster: Cluster, resource: string, options: RedlockOptions): Promise<Lock> {
  return cluster.settle(cluster.peer().acquire(resource, options));
}

/** Another client's call for "a" in shared mode, which waits. */
async function reading(
  cluster: Cluster,
  options: RedlockOptions = {},
): Promise<{ call: Promise<Lock> }> {
  const call = cluster.peer().acquire("a", { ...READ, ...options });
  await cluster.advance(50);
  return { call };
}

for (const any of [false, true]) {
  const call = any ? "any" : "all";
  test(`a call for ${call} of several that gives up lets readers in behind it`, async (cluster) => {
    await locked(cluster, "a", READ);
    await locked(cluster, "b", WAIT);
    const waiting = cluster.rejection(cluster.peer().acquire(BOTH, { ...WAIT, any, waitMs: 200 }));
    await cluster.advance(50);
    const last = await reading(cluster);
    assertInstanceOf(await cluster.settle(waiting, 200), LockHeldError);
    assertEquals((await cluster.settle(last.call, 20)).held, true);
  });
}

test("a call for any of several that has one lets readers of the others in behind it", async (cluster) => {
  await locked(cluster, "a", READ);
  const other = await locked(cluster, "b", WAIT);
  const waiting = cluster.peer().acquire(BOTH, { ...WAIT, any: true });
  await cluster.advance(50);
  const last = await reading(cluster);
  await cluster.settle(other.release());
  assertEquals((await cluster.settle(waiting, 20)).resources, ["b"]);
  assertEquals((await cluster.settle(last.call, 20)).held, true);
});

for (const [any, others] of [[false, WAIT], [true, READ]] as const) {
  const call = any ? "any" : "all";
  test(`a call for ${call} of several does not poll for what readers hold`, async (cluster) => {
    await locked(cluster, "a", READ);
    await locked(cluster, "b", others);
    const waiting = cluster.rejection(
      cluster.redlock.acquire(BOTH, { ...WAIT, any, waitMs: 9_000 }),
    );
    await cluster.advance(8_000);
    for (const count of cluster.asked()) assertLess(count, 10);
    await cluster.settle(waiting, 2_000);
  });
}

test("a call for all of several in shared mode follows readers of one of them rarely while a writer has another, and the writer's release at once", async (cluster) => {
  await locked(cluster, "a", READ);
  const write = await locked(cluster, "b", WAIT);
  const waiting = cluster.redlock.acquire(BOTH, READ);
  await cluster.advance(50);
  const asked = cluster.asked()[0];
  for (let times = 0; times < 200; times++) {
    const read = await locked(cluster, "a", { ...READ, waitMs: 0 });
    await cluster.settle(read.release());
    await cluster.advance(5);
  }
  const asks = cluster.asked()[0] - asked;
  assert(asks >= 4 && asks <= 25, `${asks} asks in a second`);
  await cluster.settle(write.release());
  assertEquals((await cluster.settle(waiting, 2)).held, true);
});

test("a writer whose process is stopped keeps readers out until its own wait is over, and no longer", async (cluster) => {
  await locked(cluster, "a", READ);
  const endS = cluster.clock.wallMs() / 1_000 + 3;
  for (const node of cluster.nodes) node.enqueue("a", `stopped:1:50:${endS}`);
  const patient = { retryDelayMaxMs: 60_000 };
  const readers = [await reading(cluster, patient), await reading(cluster, patient)];
  await cluster.advance(2_800);
  assertEquals(cluster.queueLengths, [3, 3, 3]);
  const locks = await cluster.settle(Promise.all(readers.map(({ call }) => call)), 300);
  assertEquals([locks.length, cluster.queueLengths], [2, [0, 0, 0]]);
});

/**
 * After how long readers are not waited for that do not use their turn, with some time for the
 * others.
 */
const PASSED_MS = 400;

for (const [ahead, count] of [[0, 4], [1, 4], [2, 4], [0, 9]]) {
  test(`${count} readers in a row that are stopped, behind ${ahead}, hold those behind them back for a moment`, async (cluster) => {
    const write = await locked(cluster, "a", WAIT);
    const calls: Promise<Lock>[] = [];
    const line = async (readers: number) => {
      for (let read = 0; read < readers; read++) calls.push((await reading(cluster)).call);
    };
    await line(ahead);
    const stopped = Array.from({ length: count }, (_, index) => `stopped${index}:R1:50`);
    for (const node of cluster.nodes) node.enqueue("a", ...stopped);
    await line(12);
    await cluster.settle(write.release());
    const locks = await cluster.settle(Promise.all(calls), PASSED_MS);
    assertEquals(locks.every(({ held }) => held), true);
    assertEquals(cluster.nodes.map((node) => node.queue()), Array(3).fill(stopped));
  });
}

test("a reader that enters first, behind many, lets in those ahead of it and those behind", async (cluster) => {
  const write = await locked(cluster, "a", WAIT);
  for (const node of cluster.nodes) node.enqueue("a", "stopped:R1:1000");
  const calls: Promise<Lock>[] = [];
  for (let read = 0; read < 8; read++) calls.push((await reading(cluster)).call);
  const [last, controller] = [cluster.peer(), new AbortController()];
  const aborted = cluster.rejection(last.acquire("a", { ...READ, signal: controller.signal }));
  await cluster.advance(50);
  calls.push(last.acquire("a", { ...READ, waitMs: 40_000 })); // with the ticket of that
  for (let read = 0; read < 2; read++) calls.push((await reading(cluster)).call);
  await cluster.settle(write.release());
  controller.abort(); // so the next call asks at once
  await cluster.settle(aborted);
  const locks = await cluster.settle(Promise.all(calls), PASSED_MS);
  assertEquals(locks.every(({ held }) => held), true);
});

test("readers that waited behind one of their client enter with it at once, past a writer that waits", async (cluster) => {
  const write = await locked(cluster, "a", WAIT);
  const reads = Array.from({ length: 6 }, () => cluster.redlock.acquire("a", READ));
  await cluster.advance(50);
  const next = cluster.peer().acquire("a", WAIT);
  await cluster.advance(50);
  for (const node of cluster.nodes) node.replyMs = 10;
  await cluster.settle(write.release());
  const locks = await cluster.settle(Promise.all(reads), 40);
  await cluster.settle(Promise.all(locks.map((lock) => lock.release())));
  assertEquals((await cluster.settle(next, 50)).held, true);
});

test("a reader that was denied where it was to enter passes nobody from then on", async (cluster) => {
  const [node] = cluster.nodes;
  const passes: unknown[] = [];
  const write = await locked(cluster, "a", WAIT);
  const reads = [1, 2].map(() => cluster.redlock.acquire("a", READ));
  await cluster.advance(50);
  node.instead.acquire = (request, nodeIndex) => {
    passes.push(request.entersAtOnce);
    if (request.entersAtOnce) cluster.occupy("a", 1_000);
    node.take("acquire", request, nodeIndex);
  };
  await cluster.settle(write.release());
  await cluster.settle(Promise.all(reads), 2_000);
  assertEquals(passes.filter(Boolean), [true]);
});
