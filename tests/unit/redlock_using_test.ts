import { assertEquals, assertInstanceOf, assertStrictEquals } from "@std/assert";
import { LockLostError } from "../../src/errors.ts";
import { REASON, test, VALIDITY_MS } from "../support/cluster.ts";

test("using() has its signal abort lock.signal, whenever that is first read; the reason stays, and the lock", async (cluster) => {
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

test("using() hands on no abort of its signal after the routine", async (cluster) => {
  const controller = new AbortController();
  const using = cluster.redlock.using("a", { signal: controller.signal }, (lock) => lock.signal);
  const lockSignal = await cluster.settle(using);
  controller.abort(REASON);
  assertEquals(lockSignal.aborted, false);
});

test("using() rejects if only the release shows that the lock is gone; what the routine throws comes first", async (cluster) => {
  const gone = cluster.redlock.using(["a", "b"], () => cluster.forget(0, 1));
  const error = await cluster.rejection(gone);
  assertInstanceOf(error, LockLostError);
  assertEquals(
    error.message,
    'Cannot keep locks "a", "b": one of its keys is gone, or somebody else has it, as its release ' +
      "has shown",
  );
  assertEquals([error.reason, ...cluster.eventTypes.slice(-2)], ["gone", "lost", "released"]);
  const failing = cluster.redlock.using("a", () => {
    cluster.forget(0, 1);
    throw REASON;
  });
  assertStrictEquals(await cluster.rejection(failing), REASON);
});

test("using() resolves if the keys expired only on the way of the release", async (cluster) => {
  const using = cluster.redlock.using("a", () => {
    cluster.clock.block(VALIDITY_MS - 5);
    cluster.forget();
    for (const node of cluster.nodes) node.replyMs = 10;
    return "done";
  });
  assertEquals(await cluster.settle(using), "done");
  assertEquals(cluster.eventTypes.slice(-2), ["acquired", "released"]);
});

test("using() has its signal abort lock.signal also after the routine has released the lock", async (cluster) => {
  const controller = new AbortController();
  const { signal } = controller;
  await cluster.settle(cluster.redlock.using("a", { signal }, async (lock) => {
    const { signal: lockSignal } = lock;
    await lock.release();
    controller.abort(REASON);
    assertStrictEquals(lockSignal.reason, REASON);
  }));
});
