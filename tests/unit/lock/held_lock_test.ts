import { assertEquals, assertInstanceOf, assertStrictEquals, assertThrows } from "@std/assert";
import { LockLostError } from "../../../src/errors.ts";
import { Cluster, locked, test, TTL_MS, VALIDITY_MS } from "../../support/cluster.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";

// Its validity, by the clocks

test.locked("Lock.held and remainingMs() are read from the clock at the moment of asking", ({ cluster, lock }) => {
  assertEquals([lock.held, lock.remainingMs()], [true, VALIDITY_MS]);
  cluster.clock.block(500.5);
  assertEquals([lock.held, lock.remainingMs()], [true, VALIDITY_MS - 500.5]);
  cluster.clock.block(487.4);
  assertEquals(lock.held, true);
  cluster.clock.block(0.1);
  assertEquals([lock.held, lock.remainingMs()], [false, 0]);
  cluster.clock.block(5_000);
  assertEquals([lock.held, lock.remainingMs()], [false, 0]);
});

for (const [ttlMs, endMs] of [[10, 5], [100, 93], [500, 469], [1_000, 963], [60_000, 59_373]]) {
  Deno.test(`Lock of ${ttlMs} ms aborts its signal ${endMs} ms after it began, and takes its keys back when its TTL is over`, async () => {
    const { cluster, lock } = await locked(3, { ttlMs });
    const { signal } = lock;
    await cluster.advance(endMs - 1);
    assertEquals([signal.aborted, lock.held], [false, true]);
    await cluster.advance(1);
    assertEquals([signal.aborted, lock.held], [true, false]);
    assertInstanceOf(signal.reason, LockLostError);
    assertEquals(signal.reason.message, 'Cannot keep lock "a": its validity has ended');
    assertEquals([signal.reason.code, signal.reason.resources], ["LOCK_LOST", ["a"]]);
    assertEquals((signal.reason.cause as Error).message, "its validity has ended");
    await cluster.advance(ttlMs - endMs - 1);
    assertEquals(cluster.asked("release"), [0, 0, 0]);
    await cluster.advance(1);
    assertEquals([cluster.asked("release"), cluster.wheel.size], [[1, 1, 1], 0]);
  });
}

test.locked("a lock whose loss is noticed only when its TTL is over is taken back at once, ahead of its client's next call", ({ cluster, lock }) => {
  cluster.clock.block(TTL_MS);
  assertEquals([lock.signal.aborted, cluster.asked("release")], [true, [1, 1, 1]]);
});

// Its signal

const READS: Record<string, (signal: AbortSignal) => unknown> = {
  aborted: (signal) => signal.aborted,
  reason: (signal) => signal.reason !== undefined,
  throwIfAborted: (signal) => {
    try {
      signal.throwIfAborted();
      return false;
    } catch (error) {
      assertStrictEquals(error, signal.reason);
      return true;
    }
  },
};

for (const [member, read] of Object.entries(READS)) {
  test.locked(`Lock.signal.${member} looks at the clock, before any timer has run`, async ({ cluster, lock }) => {
    const { signal } = lock;
    let aborts = 0;
    signal.addEventListener("abort", () => aborts += lock.held ? 100 : 1);
    cluster.clock.block(VALIDITY_MS - 1);
    assertEquals(read(signal), false);
    cluster.clock.block(1);
    assertEquals(read(signal), true);
    assertInstanceOf(signal.reason, LockLostError);
    assertEquals(aborts, 1);
    await runMicrotasks();
    assertEquals(cluster.eventTypes, ["attempt", "acquired", "lost"]);
    await cluster.advance(TTL_MS);
    assertEquals([aborts, cluster.eventTypes.length], [1, 3]); // the timer adds nothing
  });
}

test.locked("Lock.signal needs no weak references, which Workers may be without", async ({ cluster, lock }) => {
  const { WeakRef } = globalThis;
  Reflect.deleteProperty(globalThis, "WeakRef");
  try {
    const { signal } = lock;
    await cluster.advance(TTL_MS);
    assertEquals(signal.aborted, true);
  } finally {
    Object.assign(globalThis, { WeakRef });
  }
});

test.locked("Lock.signal is one real signal, also if it is first asked for after the end", async ({ cluster, lock }) => {
  const late = await cluster.lock({}, "b");
  const { signal } = lock;
  const both = AbortSignal.any([signal]);
  await cluster.advance(TTL_MS);
  assertStrictEquals(both.reason, signal.reason);
  assertStrictEquals(lock.signal, signal);
  assertInstanceOf(AbortSignal.any([late.signal]).reason, LockLostError);
  assertStrictEquals(late.signal, late.signal);
});

// Losing it

Deno.test("a lock that is lost aborts its signal before the listener is called, both find it gone, and its end stays", async () => {
  const { cluster, lock } = await locked(3, {
    onEvent: (event) => {
      cluster?.events.push(event);
      if (event.type === "lost") order.push(["listener", lock.held, event.heldMs]);
    },
  });
  const order: unknown[] = [];
  const { signal, votes } = lock;
  signal.addEventListener("abort", () => order.push(["signal", lock.held, lock.remainingMs()]));
  await cluster.advance(100);
  cluster.wheel.announceClose();
  await runMicrotasks();
  assertEquals(order, [["signal", false, 0], ["listener", false, 100]]);
  const { reason } = signal;
  assertEquals(reason.message, 'Cannot keep lock "a": the lock client was closed');
  assertEquals([reason.cause.message, reason.votes], ["the lock client was closed", votes]);
  assertEquals(cluster.wheel.size, 0);
  await runMicrotasks();
  assertEquals(cluster.holders(), [undefined, undefined, undefined]);
  await cluster.advance(TTL_MS); // its validity ends as well
  assertStrictEquals(signal.reason, reason);
  assertEquals([cluster.eventTypes, cluster.asked("release")], [["lost"], [1, 1, 1]]);
});

// What is left on the nodes

test("a lock that ran out keeps others out until its TTL is over, and then asks each node once that did not deny it", async (cluster) => {
  cluster.nodes[0].set("a", "other", 500);
  const lock = await cluster.lock();
  await cluster.advance(VALIDITY_MS - 1);
  assertEquals([lock.held, cluster.asked("release")], [false, [0, 0, 0]]);
  assertEquals(cluster.holders(), [undefined, lock.value, lock.value]);
  await cluster.advance(TTL_MS - VALIDITY_MS + 1);
  assertEquals(cluster.asked("release"), [0, 1, 1]);
  assertEquals(cluster.timers, [0, 0]);
  await cluster.advance(5_000);
  assertEquals(cluster.steps, ["acquire", "acquire release", "acquire release"]);
});

// After an extension

Deno.test("a lock that is lost while an extension is on its way has that extension's votes in its error", async () => {
  const { cluster, lock } = await locked(3, { nodeTimeoutMs: 400 });
  await cluster.advance(800);
  cluster.set("fail", 0);
  cluster.set("hang", 1, 2);
  lock.extend().catch(() => {});
  await cluster.advance(200);
  const { reason } = lock.signal;
  assertInstanceOf(reason, LockLostError);
  assertEquals(
    reason.message,
    'Cannot keep lock "a": its validity has ended before an extension succeeded: 0 of 3 nodes extended it, 1 failed, 2 are needed; error: node0 is down',
  );
  assertEquals(reason.votes.map(({ node, outcome }) => [node, outcome]), [["node0", "failed"]]);
  assertInstanceOf((reason.cause as Error).cause, AggregateError);
});

Deno.test("Lock.resources cannot be changed, because the client extends and releases what it names", async () => {
  const lock = await new Cluster(3, { onEvent: undefined }).lock();
  assertThrows(() => (lock.resources as string[]).pop(), TypeError);
});

test.locked("a lock that is gone on a majority leaves its other keys to others at once", async ({ cluster, lock }) => {
  cluster.forget(0, 1);
  assertInstanceOf(await cluster.rejection(lock.extend()), LockLostError);
  assertEquals(cluster.holders(), [undefined, undefined, undefined]);
});
