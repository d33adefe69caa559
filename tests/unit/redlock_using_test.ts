import { assertEquals, assertInstanceOf, assertStrictEquals } from "@std/assert";
import { LockLostError } from "../../src/errors.ts";
import type { Lock } from "../../src/lock/lock.ts";
import { Cluster, REASON } from "../support/cluster.ts";
import type { KeyspaceNode } from "../support/keyspace_node.ts";

Deno.test("using() keeps the process alive while its routine runs, and no longer", async () => {
  const cluster = new Cluster();
  let finish = () => {};
  const using = cluster.redlock.using("a", () => new Promise<void>((end) => finish = end));
  await cluster.advance(700);
  assertEquals(cluster.clock.timersAlive, 1);
  finish();
  await cluster.settle(using);
  assertEquals(cluster.timers, [0, 0]);
  const failing = cluster.redlock.using("a", () => Promise.reject(REASON));
  assertStrictEquals(await cluster.rejection(failing), REASON);
  assertEquals(cluster.timers, [0, 0]);
});

for (const mode of ["fail", "hang", "throw"] as const) {
  Deno.test(`using() ends as its routine does although the nodes ${mode} at the release, which an event reports`, async () => {
    const prepare = (nodes: KeyspaceNode[]) => nodes.forEach(({ modes }) => modes.release = mode);
    const resolving = new Cluster(3, {}, prepare);
    assertEquals(await resolving.settle(resolving.redlock.using("a", () => 42)), 42);
    const rejecting = new Cluster(3, {}, prepare);
    const using = rejecting.redlock.using("a", () => Promise.reject(REASON));
    assertStrictEquals(await rejecting.rejection(using), REASON);
    for (const { eventTypes } of [resolving, rejecting]) {
      assertEquals(eventTypes.at(-1), "release-failed");
    }
  });
}

Deno.test("using() rejects with the lock's loss, unless the routine has an error of its own", async () => {
  const cluster = new Cluster();
  let reason: unknown;
  const stall = (lock: Lock) => {
    cluster.clock.block(2_000); // before any timer could end the lock
    reason = lock.signal.reason;
  };
  assertStrictEquals(await cluster.rejection(cluster.redlock.using("a", stall)), reason);
  assertInstanceOf(reason, LockLostError);
  const failing = cluster.redlock.using("b", (lock) => {
    stall(lock);
    throw REASON;
  });
  assertStrictEquals(await cluster.rejection(failing), REASON);
});

Deno.test("using() has its signal abort lock.signal, whenever that is first read; the reason stays, and the lock", async () => {
  const cluster = new Cluster();
  const controller = new AbortController();
  const { signal } = controller;
  const using = cluster.redlock.using("a", { signal, autoExtend: false }, async (lock) => {
    controller.abort(REASON); // before anybody has read lock.signal
    assertStrictEquals(lock.signal.reason, REASON);
    assertEquals([lock.held, cluster.eventTypes.includes("lost")], [true, false]);
    await cluster.advance(2_000);
    assertStrictEquals(lock.signal.reason, REASON);
  });
  assertInstanceOf(await cluster.rejection(using), LockLostError); // which it then was
  assertEquals(cluster.eventTypes.filter((type) => type === "lost"), ["lost"]);
});

Deno.test("using() hands on an abort at any moment between the winning of the lock and the routine, and none after it", async () => {
  for (let turns = 0; turns < 12; turns++) {
    const cluster = new Cluster();
    const controller = new AbortController();
    const { signal } = controller;
    const abortIn = (left: number) => {
      if (left === 0) controller.abort(REASON);
      else queueMicrotask(() => abortIn(left - 1));
    };
    const using = cluster.redlock.using("a", {
      signal,
      onEvent: ({ type }) => type === "acquired" && abortIn(turns),
    }, async (lock) => {
      await cluster.advance(0);
      return lock.signal.reason;
    });
    // Either the call ends with the reason, or the routine gets it.
    assertStrictEquals(await cluster.settle(using.catch((error) => error)), REASON);
  }
  const cluster = new Cluster();
  const controller = new AbortController();
  const using = cluster.redlock.using("a", { signal: controller.signal }, (lock) => lock.signal);
  const lockSignal = await cluster.settle(using);
  controller.abort(REASON);
  assertEquals(lockSignal.aborted, false);
});
