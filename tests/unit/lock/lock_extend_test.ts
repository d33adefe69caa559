import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertLess,
  assertRejects,
  assertStrictEquals,
} from "@std/assert";
import { LockLostError } from "../../../src/errors.ts";
import type { ExtendOptions } from "../../../src/lock/lock.ts";
import { close, locked, settle, VALIDITY_MS } from "../../support/cluster_calls.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";

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
  const [options, Class, message] of [
    [{ ttlMs: 0 }, RangeError, "'ttlMs' must be a positive safe integer: current value is 0"],
    [{ ttlMs: 5 }, RangeError, "'ttlMs' must be from 10 to 86400000: current value is 5"],
    [{ ttlMs: "5" }, TypeError, "'ttlMs' must be a number: current type is 'string'"],
    [5_000, TypeError, "'options' must be an object: current type is 'number'"],
    [null, TypeError, "'options' must be an object: current value is null"],
    [{ ttl: 5_000 }, TypeError, "option 'ttl' is unknown: valid options are ttlMs, signal"],
    [{ signal: {} }, TypeError, "'signal' must be an AbortSignal"],
  ] as const
) {
  Deno.test(`Lock.extend() refuses ${Deno.inspect(options)}`, async () => {
    const { cluster, lock } = await locked();
    const error = await assertRejects(() => lock.extend(options as ExtendOptions));
    assertInstanceOf(error, Class);
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
    // What hangs had not had its time.
    const [failed, first] = mode === "fail"
      ? [", 2 failed", "; first error: node0 is down"]
      : ["", ""];
    assertEquals(
      error.message,
      `Cannot keep lock "a": its validity has ended before an extension succeeded: 1 of 3 nodes extended it${failed}, 2 are needed${first}`,
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
  await cluster.clock.advance(50); // margin and drift
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
  const failing = assertRejects(() => extending, LockLostError);
  await cluster.clock.advance(500);
  assertEquals(lock.extensions, 1); // node 0 alone
  assertEquals(cluster.holders("a"), [lock.value, undefined, lock.value]); // a failed round fills nothing in
  cluster.set("answer", 2);
  await settle(cluster, Promise.race([extending, failing]));
  assertEquals(lock.extensions, 2); // nodes 0 and 2: a quorum of which one was filled in
  await runMicrotasks();
  assertEquals(cluster.holders("a"), Array(3).fill(lock.value));
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
