import { assert, assertEquals, assertInstanceOf, assertStrictEquals } from "@std/assert";
import { LockLostError } from "../../../src/errors.ts";
import { close, locked, settle, TTL, VALIDITY_MS } from "../../support/cluster_calls.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { FakeCluster } from "../../support/fake_nodes.ts";

/** How long before the end of the validity the holder is told. */
const MARGIN_MS = 25;

// What it says of itself

Deno.test("Lock.held and remainingMs() are read from the clock at the moment of asking", async () => {
  const { cluster, lock } = await locked();
  assertEquals([lock.held, lock.remainingMs()], [true, VALIDITY_MS]);
  cluster.clock.block(500.5);
  assertEquals([lock.held, lock.remainingMs()], [true, VALIDITY_MS - 500.5]);
  cluster.clock.block(487.4);
  assertEquals(lock.held, true);
  cluster.clock.block(0.1);
  assertEquals([lock.held, lock.remainingMs()], [false, 0]);
  cluster.clock.block(5_000);
  assertEquals([lock.held, lock.remainingMs()], [false, 0]);
  await close(cluster);
});

Deno.test("Lock.held is false once the wall clock stepped ahead past the validity", async () => {
  const { cluster, lock } = await locked();
  cluster.clock.stepWall(600);
  assertEquals([lock.held, lock.remainingMs()], [true, VALIDITY_MS - 600]);
  cluster.clock.stepWall(400);
  assertEquals([lock.held, lock.remainingMs()], [false, 0]);
  await close(cluster);
});

Deno.test("Lock.held does not believe a wall clock that stepped back", async () => {
  const { cluster, lock } = await locked();
  cluster.clock.stepWall(-60_000);
  assertEquals(lock.remainingMs(), VALIDITY_MS);
  cluster.clock.block(VALIDITY_MS);
  assertEquals(lock.held, false);
  await close(cluster);
});

Deno.test("Lock knows its resources, its value, its votes and that it was never extended", async () => {
  const { cluster, lock } = await locked();
  assertEquals([lock.resources, lock.value, lock.extensions], [["a"], cluster.values[0], 0]);
  assertEquals(
    lock.votes,
    ["node0", "node1", "node2"].map((node) => {
      return { node, outcome: "granted", elapsedMs: 0 };
    }),
  );
  await close(cluster);
});

Deno.test("Lock.votes takes in votes that come after the lock was won", async () => {
  const cluster = new FakeCluster();
  cluster.nodes[2].set("a", "other");
  cluster.nodes[2].replyMs = 20;
  const lock = await settle(cluster, cluster.redlock.acquire("a", TTL));
  assertEquals(lock.votes.length, 2);
  await cluster.clock.advance(30);
  assertEquals(lock.votes[2], { node: "node2", outcome: "denied", elapsedMs: 20 });
  await close(cluster);
});

// Its signal

Deno.test("Lock.signal aborts a little before the validity ends, with the reason", async () => {
  const { cluster, lock } = await locked();
  const { signal } = lock;
  await cluster.clock.advance(VALIDITY_MS - MARGIN_MS - 1);
  assertEquals([signal.aborted, lock.held], [false, true]);
  await cluster.clock.advance(1);
  assertEquals([signal.aborted, lock.held], [true, false]);
  assertInstanceOf(signal.reason, LockLostError);
  assertEquals(signal.reason.message, 'Cannot keep lock "a": its validity has ended');
  assertEquals([signal.reason.code, signal.reason.resources], ["LOCK_LOST", ["a"]]);
  assertEquals((signal.reason.cause as Error).message, "its validity has ended");
  await close(cluster);
});

Deno.test("Lock.signal is the same one each time, also when it is first asked for after the end", async () => {
  const { cluster, lock } = await locked();
  await cluster.clock.advance(2_000);
  assertInstanceOf(lock.signal.reason, LockLostError);
  assertStrictEquals(lock.signal, lock.signal);
  await close(cluster);
});

for (const mode of ["hang", "fail", "throw"] as const) {
  Deno.test(`Lock.signal aborts in time while every node does ${mode}`, async () => {
    const { cluster, lock } = await locked(3, { autoExtend: true });
    const { signal } = lock;
    cluster.set(mode, 0, 1, 2);
    for (let passedMs = 0; passedMs < 1_100; passedMs++) {
      await cluster.clock.advance(1);
      assert(lock.held || signal.aborted);
    }
    assertEquals(signal.aborted, true);
    await close(cluster);
  });
}

for (const stepMs of [3, 10, 26, 45, 60, 400]) {
  Deno.test(`Lock.signal is aborted whenever the lock is not held, though the wall clock steps ahead by ${stepMs} ms`, async () => {
    const { cluster, lock } = await locked();
    const { signal } = lock;
    await cluster.clock.advance(300);
    cluster.clock.stepWall(stepMs);
    while (!signal.aborted) {
      assert(lock.held);
      await cluster.clock.advance(1);
    }
    assert(!lock.held);
    await close(cluster);
  });
}

Deno.test("Lock.signal aborts within a quarter of a second of a wake-up from sleep", async () => {
  const { cluster, lock } = await locked(3, { ttlMs: 60_000 });
  await cluster.clock.advance(10_000);
  cluster.clock.stepWall(120_000); // the monotonic clock stood still
  assertEquals(lock.held, false);
  await cluster.clock.advance(250);
  assertEquals(lock.signal.aborted, true);
  await close(cluster);
});

Deno.test("Lock that ran out asks each node once more, when its TTL is over", async () => {
  const { cluster } = await locked();
  await cluster.clock.advance(5_000);
  assertEquals(
    cluster.nodes.map(({ calls }) => calls.map(({ operation }) => operation)),
    Array(3).fill(["acquire", "release"]),
  );
  assertEquals(cluster.eventTypes, ["attempt", "acquired", "lost"]);
  await close(cluster);
});

Deno.test("Lock that ran out leaves nothing on a node that had not answered", async () => {
  const cluster = new FakeCluster(3, TTL);
  cluster.set("hang", 2);
  await settle(cluster, cluster.redlock.acquire("a"));
  await cluster.clock.advance(1_100);
  cluster.nodes[2].resume(); // it sets the key only now
  await runMicrotasks();
  assertEquals(cluster.holders("a"), [undefined, undefined, undefined]);
  await close(cluster);
});

Deno.test("Lock.signal does not abort on release, nor later", async () => {
  const { cluster, lock } = await locked();
  const { signal } = lock;
  await settle(cluster, lock.release());
  await cluster.clock.advance(5_000);
  assertEquals([signal.aborted, lock.held], [false, false]);
  await close(cluster);
});
