import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertRejects,
  assertStrictEquals,
} from "@std/assert";
import { LockLostError, RedlockError } from "../../src/errors.ts";
import type { RedlockOptions } from "../../src/options.ts";
import type { Redlock } from "../../src/redlock.ts";
import { close, REASON, rejection, settle, TTL } from "../support/cluster_calls.ts";
import { runMicrotasks } from "../support/fake_clock.ts";
import { FakeCluster } from "../support/fake_nodes.ts";

Deno.test("Redlock.close() is idempotent, closes each node once and leaves no timer", async () => {
  const cluster = new FakeCluster();
  await settle(cluster, cluster.redlock.acquire("a"));
  const closing = cluster.redlock.close();
  assertStrictEquals(cluster.redlock.close(), closing);
  await settle(cluster, closing);
  await cluster.redlock[Symbol.asyncDispose]();
  assertEquals(cluster.nodes.map(({ closed }) => closed), [1, 1, 1]);
  assertEquals([cluster.clock.timers, cluster.wheel.size], [0, 0]);
});

for (
  const [what, fail] of [
    ["rejects", () => Promise.reject(REASON)],
    ["throws", () => {
      throw REASON;
    }],
  ] as const
) {
  Deno.test(`Redlock.close() settles though a node's close ${what}`, async () => {
    const cluster = new FakeCluster(2);
    cluster.nodes[0].close = fail;
    await close(cluster);
    assertEquals(cluster.nodes[1].closed, 1);
    assertEquals(cluster.clock.timers, 0);
  });
}

Deno.test("Redlock.close() has held locks count as lost, and releases them", async () => {
  const cluster = new FakeCluster();
  const lock = await settle(cluster, cluster.redlock.acquire("a"));
  const { signal } = lock;
  const closing = cluster.redlock.close();
  assertEquals([lock.held, signal.aborted], [false, true]);
  assertInstanceOf(signal.reason, LockLostError);
  assertEquals(signal.reason.message, 'Cannot keep lock "a": the lock client was closed');
  await settle(cluster, closing);
  assertEquals(cluster.holders("a"), Array(3).fill(undefined));
});

for (
  const [call, start] of [
    ["acquire() in an attempt", (redlock: Redlock) => redlock.acquire("hung")],
    ["tryAcquire()", (redlock: Redlock) => redlock.tryAcquire("hung")],
    ["using()", (redlock: Redlock) => redlock.using("hung", () => assert(false))],
    ["inspect()", (redlock: Redlock) => redlock.inspect("hung")],
  ] as const
) {
  Deno.test(`Redlock.close() rejects a pending ${call}`, async () => {
    const cluster = new FakeCluster();
    cluster.set("hang", 0, 1, 2);
    const pending = start(cluster.redlock);
    const rejected = assertRejects(() => pending, RedlockError);
    await runMicrotasks();
    await close(cluster);
    const error = await settle(cluster, rejected, 100);
    assertEquals(error.resources, ["hung"]);
    assertEquals(cluster.clock.timers, 0);
    for (const node of cluster.nodes) node.resume();
    await runMicrotasks();
    assertEquals(cluster.holders("hung"), Array(3).fill(undefined));
  });
}

Deno.test("Redlock.close() rejects an acquire() that waits between two attempts", async () => {
  const cluster = new FakeCluster();
  for (const node of cluster.nodes) node.set("a", "other");
  const acquiring = cluster.redlock.acquire("a", { waitMs: Infinity });
  const rejected = assertRejects(() => acquiring, RedlockError);
  await cluster.clock.advance(500);
  const asked = cluster.nodes[0].asked("acquire").length;
  await close(cluster);
  const error = await rejected;
  assertEquals(error.code, "CLOSED");
  assertEquals(error.message, 'Cannot acquire lock "a": the lock client is closed');
  assertEquals(cluster.nodes[0].asked("acquire").length, asked);
  assertEquals(cluster.clock.timers, 0);
});

Deno.test("Redlock refuses every call once it is closed", async () => {
  const cluster = new FakeCluster();
  await close(cluster);
  const { redlock } = cluster;
  for (
    const call of [
      () => redlock.acquire("a"),
      () => redlock.tryAcquire("a"),
      () => redlock.using("a", () => {}),
      () => redlock.inspect("a"),
    ]
  ) {
    const error = await assertRejects(call, RedlockError);
    assertEquals([error.code, error.resources], ["CLOSED", ["a"]]);
  }
  assertEquals(cluster.clock.timers, 0);
});

Deno.test("Redlock.close() lets a routine end, whose release then sets no timer", async () => {
  const cluster = new FakeCluster();
  const routine = Promise.withResolvers<void>();
  const using = cluster.redlock.using("a", TTL, () => routine.promise);
  await runMicrotasks();
  await close(cluster);
  routine.resolve();
  assertInstanceOf(await rejection(cluster, using), LockLostError);
  assertEquals(cluster.clock.timers, 0);
});

Deno.test("Lock.release() after Redlock.close() settles and sets no timer", async () => {
  const cluster = new FakeCluster();
  const lock = await settle(cluster, cluster.redlock.acquire("a"));
  await close(cluster);
  assertEquals(await lock.release(), false);
  assertEquals(cluster.clock.timers, 0);
});

/** A lock that a jump of the wall clock ends, with two that it does not, and a call that waits. */
async function beforeJump(options: RedlockOptions = {}) {
  const cluster = new FakeCluster(3, { ttlMs: 60_000, waitMs: Infinity });
  const { redlock } = cluster;
  for (const node of cluster.nodes) node.set("theirs", "other");
  const short = await settle(cluster, redlock.acquire("a", { ...options, ...TTL }));
  const long = await settle(
    cluster,
    Promise.all([redlock.acquire("b"), redlock.acquire("c", { autoExtend: true })]),
  );
  const waiting = rejection(cluster, redlock.acquire("theirs"));
  const holding = redlock.using(
    "d",
    ({ signal }) =>
      new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve())),
  );
  const using = rejection(cluster, holding);
  await runMicrotasks();
  const signals = long.map(({ signal }) => signal);
  return { cluster, short, signals, waiting, using };
}

for (const [what, listens] of [["a signal's", false], ["an event's", true]] as const) {
  Deno.test(`Redlock.close() from ${what} listener in a wake-up of the timer ends every lock and every call`, async () => {
    let closing: Promise<void> | undefined;
    const act = () => closing ??= cluster.redlock.close();
    const onEvent = ({ type }: { type: string }) => void (type === "lost" && act());
    const { cluster, short, signals, waiting, using } = await beforeJump(
      listens ? { onEvent } : {},
    );
    if (!listens) short.signal.addEventListener("abort", act);
    cluster.clock.stepWall(1_000); // the next wake-up takes out every entry
    await cluster.clock.advance(250);
    assert(closing !== undefined);
    await settle(cluster, closing);
    assertEquals(signals.map(({ aborted }) => aborted), [true, true]);
    assertInstanceOf(await waiting, RedlockError);
    assertInstanceOf(await using, LockLostError);
    assertEquals(["a", "b", "c", "d"].flatMap((name) => cluster.holders(name).filter(Boolean)), []);
    assertEquals([cluster.clock.timers, cluster.wheel.size], [0, 0]);
  });
}
