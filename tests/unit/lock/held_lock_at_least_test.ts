import { assert, assertEquals } from "@std/assert";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { Cluster, OTHER_VALUE, REASON } from "../../support/cluster.ts";
import { testOf } from "../../support/test_of.ts";

const AT_LEAST_MS = 5_000;
const TTL_MS = 20_000;

const test = testOf(() => new Cluster(3, { ttlMs: TTL_MS, atLeastMs: AT_LEAST_MS }));

function lives(cluster: Cluster): number[] {
  return cluster.nodes.map((node) => node.lifeMs("a"));
}

for (const mode of ["exclusive", "shared"] as const) {
  Deno.test(`a release before atLeastMs ends the lock, and its keys live on for the rest, in ${mode} mode`, async () => {
    const cluster = new Cluster(3, { ttlMs: TTL_MS, atLeastMs: AT_LEAST_MS, mode });
    const lock = (await cluster.settle(cluster.redlock.tryAcquire("a")))!;
    await cluster.advance(300);
    assertEquals(await cluster.settle(lock.release()), true);
    assertEquals([lock.held, lock.remainingMs(), lock.signal.aborted], [false, 0, false]);
    assertEquals(lives(cluster), [4_700, 4_700, 4_700]);
    const released = cluster.events.find((event) => event.type === "released")!;
    assertEquals([released.confirmed, released.keptMs], [true, 4_700]);
    await cluster.advance(4_600);
    const writer = cluster.peer();
    assertEquals(await cluster.settle(writer.tryAcquire("a")), undefined);
    await cluster.advance(200);
    assert(await cluster.settle(writer.tryAcquire("a")));
  });
}

for (const mode of ["exclusive", "shared"] as const) {
  Deno.test(`a release before atLeastMs keeps no key for longer because another has another value, in ${mode} mode`, async () => {
    const cluster = new Cluster(3, { ttlMs: TTL_MS, atLeastMs: AT_LEAST_MS, mode });
    const lock = (await cluster.settle(cluster.redlock.tryAcquire(["a", "b"])))!;
    for (const node of cluster.nodes) node.set("b", OTHER_VALUE, TTL_MS);
    assertEquals(await cluster.settle(lock.release()), false);
    assertEquals(lives(cluster), [AT_LEAST_MS, AT_LEAST_MS, AT_LEAST_MS]);
    assertEquals(cluster.holders("b"), Array(3).fill(OTHER_VALUE));
    const released = cluster.events.find((event) => event.type === "released")!;
    assertEquals([released.confirmed, released.keptMs], [false, 0]);
  });
}

test("a wall clock that steps ahead does not shorten atLeastMs", async (cluster) => {
  for (const node of cluster.nodes) node.replyMs = 10;
  const call = cluster.redlock.tryAcquire("a");
  await runMicrotasks();
  cluster.clock.stepWall(4_000);
  const lock = (await cluster.settle(call))!;
  assert(await cluster.settle(lock.release()));
  const released = cluster.events.find((event) => event.type === "released")!;
  assertEquals(released.keptMs, AT_LEAST_MS - 10);
});

Deno.test("a listener that closes the client while a lock is reported has its keys deleted, not kept", async () => {
  const cluster: Cluster = new Cluster(3, {
    ttlMs: TTL_MS,
    atLeastMs: AT_LEAST_MS,
    onEvent: ({ type }) => void (type === "acquired" && cluster.redlock.close()),
  });
  await cluster.rejection(cluster.redlock.acquire("a"));
  await cluster.advance(0);
  assertEquals(cluster.holders(), [undefined, undefined, undefined]);
});

test("a release after atLeastMs deletes the keys", async (cluster) => {
  const lock = (await cluster.settle(cluster.redlock.tryAcquire("a")))!;
  await cluster.advance(AT_LEAST_MS + 1);
  assertEquals(await cluster.settle(lock.release()), true);
  assertEquals(cluster.holders(), [undefined, undefined, undefined]);
  assertEquals(cluster.events.find((event) => event.type === "released")!.keptMs, 0);
});

test("a release before atLeastMs touches no key of another, and brings none back", async (cluster) => {
  const lock = (await cluster.settle(cluster.redlock.tryAcquire("a")))!;
  cluster.forget(0);
  for (const node of cluster.nodes.slice(1)) node.set("a", OTHER_VALUE, 60_000);
  assertEquals(await cluster.settle(lock.release()), false);
  assertEquals(cluster.holders(), [undefined, OTHER_VALUE, OTHER_VALUE]);
  assertEquals(lives(cluster).slice(1), [60_000, 60_000]);
});

test("a lock that was waited for leaves the queue of a node that denied at once if its keys may live on", async (cluster) => {
  cluster.occupy("a", 400);
  cluster.nodes[2].set("a", OTHER_VALUE, 60_000);
  const lock = await cluster.settle(cluster.redlock.acquire("a"));
  assertEquals(cluster.nodes.map((node) => node.queue()), [[], [], []]);
  await cluster.settle(lock.release());
  const [first, second, third] = lives(cluster);
  assert([first, second].every((lifeMs) => lifeMs > 0 && lifeMs <= AT_LEAST_MS));
  assert(third > AT_LEAST_MS);
});

test("using() with atLeastMs keeps the keys also if its routine throws", async (cluster) => {
  const using = cluster.redlock.using("a", () => {
    throw REASON;
  });
  assertEquals(await cluster.rejection(using), REASON);
  assertEquals(lives(cluster), [AT_LEAST_MS, AT_LEAST_MS, AT_LEAST_MS]);
});

test("one that runs between a stopped first and last in the queue asks when the keys that live on expire", async (cluster) => {
  const lock = await cluster.settle(cluster.redlock.acquire("a"));
  for (const node of cluster.nodes) node.enqueue("a", "first:1:50");
  const waiting = cluster.peer().acquire("a", { waitMs: 60_000, retryDelayMaxMs: 60_000 });
  await cluster.advance(50);
  for (const node of cluster.nodes) node.enqueue("a", "last:1:50");
  await cluster.settle(lock.release());
  assertEquals((await cluster.settle(waiting, AT_LEAST_MS + 500)).held, true);
});
