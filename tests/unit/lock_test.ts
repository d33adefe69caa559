import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertLess,
  assertRejects,
  assertStrictEquals,
} from "@std/assert";
import { LockLostError, QuorumError } from "../../src/errors.ts";
import type { Lock } from "../../src/lock.ts";
import type { RedlockOptions } from "../../src/options.ts";
import { advanceUntil, runMicrotasks } from "../support/fake_clock.ts";
import { FakeCluster } from "../support/fake_nodes.ts";

const TTL = { ttlMs: 1_000 };
/** TTL less 1 % less 2 ms. */
const VALIDITY_MS = 988;
/** How long before the end of that validity the holder is told. */
const MARGIN_MS = 25;

function settle<T>(cluster: FakeCluster, promise: Promise<T>, limitMs?: number): Promise<T> {
  return advanceUntil(cluster.clock, promise, limitMs, 1);
}

async function close(cluster: FakeCluster): Promise<void> {
  await settle(cluster, cluster.redlock.close());
}

/** A lock on "a" for a second, and the nodes it is on. */
async function locked(
  nodeCount = 3,
  options: RedlockOptions = {},
): Promise<{ cluster: FakeCluster; lock: Lock }> {
  const cluster = new FakeCluster(nodeCount, { ...TTL, ...options });
  return { cluster, lock: await settle(cluster, cluster.redlock.acquire("a")) };
}

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

Deno.test("Lock that ran out leaves its keys to their TTL", async () => {
  const { cluster } = await locked();
  await cluster.clock.advance(5_000);
  assertEquals(cluster.nodes.map(({ calls }) => calls.length), [1, 1, 1]);
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

// Extending

Deno.test("Lock.extend() gives a new validity, counted from before its first byte", async () => {
  const { cluster, lock } = await locked();
  await cluster.clock.advance(500);
  for (const node of cluster.nodes) node.replyMs = 10;
  await settle(cluster, lock.extend());
  assertEquals([lock.remainingMs(), lock.extensions], [VALIDITY_MS - 10, 1]);
  for (const node of cluster.nodes) {
    assertEquals(node.keys.a, { value: lock.value, remainingMs: 990 });
  }
  const event = cluster.events.at(-1);
  assert(event?.type === "extended");
  assertEquals(
    [event.extensions, event.elapsedMs, event.remainingMs],
    [1, 10, VALIDITY_MS - 10],
  );
  await cluster.clock.advance(900);
  assertEquals([lock.held, lock.signal.aborted], [true, false]);
  await close(cluster);
});

Deno.test("Lock.extend() takes a longer TTL", async () => {
  const { cluster, lock } = await locked();
  await settle(cluster, lock.extend({ ttlMs: 10_000 }));
  assertEquals(lock.remainingMs(), 9_898);
  await cluster.clock.advance(9_000);
  assert(lock.held);
  await close(cluster);
});

Deno.test("Lock.extend() never shortens what is left", async () => {
  const { cluster, lock } = await locked(3, { ttlMs: 10_000 });
  await settle(cluster, lock.extend({ ttlMs: 100 }));
  assertEquals([lock.remainingMs(), lock.extensions], [9_898, 1]);
  for (const node of cluster.nodes) assertEquals(node.keys.a.remainingMs, 10_000);
  await cluster.clock.advance(5_000);
  assert(lock.held);
  await close(cluster);
});

for (
  const [options, message] of [
    [{ ttlMs: 0 }, "'ttlMs' must be a positive safe integer: current value is 0"],
    [{ ttlMs: 5 }, "'ttlMs' must be from 10 to 86400000: current value is 5"],
  ] as const
) {
  Deno.test(`Lock.extend() refuses ${Deno.inspect(options)}`, async () => {
    const { cluster, lock } = await locked();
    const error = await assertRejects(() => lock.extend(options), RangeError);
    assertEquals(error.message, `Cannot extend lock as ${message}`);
    assertEquals([lock.held, lock.remainingMs()], [true, VALIDITY_MS]);
    await close(cluster);
  });
}

Deno.test("Lock.extend() tries again within the validity after a try failed", async () => {
  const { cluster, lock } = await locked();
  cluster.set("fail", 0, 1);
  const extending = lock.extend();
  await cluster.clock.advance(300);
  assertEquals([lock.extensions, lock.remainingMs()], [0, VALIDITY_MS - 300]);
  assertLess(2, cluster.nodes[0].asked("extend").length);
  cluster.set("answer", 0, 1);
  await settle(cluster, extending, 200);
  assertEquals(lock.extensions, 1);
  await close(cluster);
});

for (const mode of ["fail", "hang"] as const) {
  Deno.test(`Lock.extend() rejects when the validity is over and nodes ${mode}`, async () => {
    const { cluster, lock } = await locked();
    cluster.set(mode, 0, 1);
    const error = await settle(cluster, assertRejects(() => lock.extend(), LockLostError), 1_100);
    const failed = mode === "fail" ? ", 2 failed" : ""; // what hangs had not had its time
    assertEquals(
      error.message,
      `Cannot keep lock "a": its validity has ended before an extension succeeded: 1 of 3 nodes granted it${failed}, 2 are needed`,
    );
    assertEquals(lock.held, false);
    assertStrictEquals(lock.signal.reason, error);
    await close(cluster);
  });
}

Deno.test("Lock.extend() takes back what a try that failed may have prolonged, once the lock is lost", async () => {
  const { cluster, lock } = await locked();
  cluster.set("hang", 0, 1);
  await settle(cluster, assertRejects(() => lock.extend({ ttlMs: 60_000 }), LockLostError));
  for (const node of cluster.nodes) node.resume();
  await cluster.clock.advance(10);
  assertEquals(cluster.holders("a"), [undefined, undefined, undefined]);
  await close(cluster);
});

Deno.test("Lock.extend() refuses grants that come when the old validity is over", async () => {
  const { cluster, lock } = await locked();
  for (const node of cluster.nodes) node.replyMs = 20;
  const rejected = assertRejects(() => lock.extend(), LockLostError);
  await runMicrotasks();
  cluster.clock.block(1_000);
  const error = await settle(cluster, rejected);
  assert(error.message.startsWith('Cannot keep lock "a": its validity has ended before an ext'));
  assertEquals([lock.held, lock.extensions], [false, 0]);
  await close(cluster);
});

Deno.test("Lock.extend() does not bring back a lock whose validity ended before its grants came", async () => {
  const { cluster, lock } = await locked();
  await cluster.clock.advance(500);
  for (const node of cluster.nodes) node.replyMs = 20;
  const rejected = assertRejects(() => lock.extend({ ttlMs: 10_000 }), LockLostError);
  await runMicrotasks();
  cluster.clock.block(600); // the old validity is over, the new one would not be
  await settle(cluster, rejected);
  assertEquals([lock.held, lock.extensions, lock.signal.aborted], [false, 0, true]);
  await cluster.clock.advance(10);
  assertEquals(cluster.holders("a"), [undefined, undefined, undefined]);
  await close(cluster);
});

Deno.test("Lock.extend() of a lock that ran out is refused without asking anybody", async () => {
  const { cluster, lock } = await locked();
  await cluster.clock.advance(1_000);
  await assertRejects(() => lock.extend(), LockLostError);
  cluster.clock.block(1_000);
  await assertRejects(() => lock.extend(), LockLostError);
  assertEquals(cluster.nodes[0].asked("extend"), []);
  await close(cluster);
});

Deno.test("Lock.extend() of a lock that was released is refused without asking anybody", async () => {
  const { cluster, lock } = await locked();
  await settle(cluster, lock.release());
  const error = await assertRejects(() => lock.extend(), LockLostError);
  assertEquals(error.message, 'Cannot extend lock "a": it was released');
  assertEquals(cluster.nodes[0].asked("extend"), []);
  await close(cluster);
});

Deno.test("Lock.extend() loses a lock that is gone on a majority, at once, and takes back the rest", async () => {
  const { cluster, lock } = await locked();
  const { signal } = lock;
  cluster.nodes[0].set("a", "other", 5_000);
  cluster.nodes[1].forget();
  const error = await settle(cluster, assertRejects(() => lock.extend(), LockLostError), 5);
  assertEquals(
    error.message,
    'Cannot keep lock "a": a majority of the nodes no longer holds it',
  );
  assertStrictEquals(signal.reason, error);
  assertEquals(lock.held, false);
  await runMicrotasks();
  assertEquals(cluster.holders("a"), ["other", undefined, undefined]);
  assertEquals(cluster.eventTypes.slice(2), ["extend-failed", "lost"]);
  await close(cluster);
});

Deno.test("Lock.extend() counts a node that was filled in again from the next extension on", async () => {
  const { cluster, lock } = await locked();
  cluster.nodes[0].forget();
  await settle(cluster, lock.extend());
  assertEquals(cluster.holders("a"), Array(3).fill(lock.value));
  cluster.nodes[1].forget();
  cluster.set("fail", 2);
  const extending = lock.extend();
  await runMicrotasks();
  assertEquals(lock.extensions, 1); // nodes 0 and 2 would be the quorum
  await settle(cluster, extending, 100); // by now node 1 is filled in
  assertEquals(lock.extensions, 2);
  await close(cluster);
});

Deno.test("Lock.extend() is given up by its signal; the lock stays as it is", async () => {
  const { cluster, lock } = await locked();
  cluster.set("hang", 0, 1);
  const reason = new Error("changed my mind");
  const controller = new AbortController();
  const rejected = assertRejects(() => lock.extend({ signal: controller.signal }));
  await cluster.clock.advance(100);
  controller.abort(reason);
  assertStrictEquals(await rejected, reason);
  assertEquals([lock.held, lock.remainingMs()], [true, VALIDITY_MS - 100]);
  assertEquals(lock.signal.aborted, false);
  await close(cluster);
});

Deno.test("Lock.extend() with a signal that was aborted before asks nobody", async () => {
  const { cluster, lock } = await locked();
  const reason = new Error("changed my mind");
  const signal = AbortSignal.abort(reason);
  assertStrictEquals(await assertRejects(() => lock.extend({ signal })), reason);
  assertEquals(cluster.nodes[0].asked("extend"), []);
  await close(cluster);
});

Deno.test("Lock.extend() is refused beyond extensionsMax; the lock stands until its validity ends", async () => {
  const { cluster, lock } = await locked(3, { extensionsMax: 2 });
  await settle(cluster, lock.extend());
  await settle(cluster, lock.extend());
  const error = await assertRejects(() => lock.extend(), LockLostError);
  assertEquals(
    error.message,
    `Cannot extend lock "a": it was extended 2 times, the most that 'extensionsMax' allows`,
  );
  assertEquals([lock.held, lock.signal.aborted, lock.extensions], [true, false, 2]);
  assertEquals(cluster.nodes[0].asked("extend").length, 2);
  await cluster.clock.advance(1_000);
  assertEquals([lock.held, lock.signal.aborted], [false, true]);
  await close(cluster);
});

Deno.test("Lock.extend() that a release overtakes revives no key", async () => {
  const { cluster, lock } = await locked();
  for (const node of cluster.nodes) node.requestMs = 10;
  const rejected = assertRejects(() => lock.extend(), LockLostError);
  const releasing = lock.release();
  assertEquals(await settle(cluster, releasing), true);
  assertEquals((await rejected).message, 'Cannot extend lock "a": it was released');
  await cluster.clock.advance(500);
  assertEquals(cluster.holders("a"), [undefined, undefined, undefined]);
  await close(cluster);
});

// Releasing

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
  const contender = cluster.contender();
  assertEquals(await settle(cluster, contender.tryAcquire("a")), undefined);
  await settle(cluster, lock.release());
  const next = await settle(cluster, contender.tryAcquire("a"));
  assert(next?.held);
  await settle(cluster, contender.close());
  await close(cluster);
});
