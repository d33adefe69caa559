import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertRejects,
  assertStrictEquals,
} from "@std/assert";
import { LockLostError } from "../../src/errors.ts";
import type { Lock } from "../../src/lock/lock.ts";
import { close, REASON, rejection, settle, TTL } from "../support/cluster_calls.ts";
import { runMicrotasks } from "../support/fake_clock.ts";
import { FakeCluster } from "../support/fake_nodes.ts";

Deno.test("Redlock.using() returns what the routine returns, and releases", async () => {
  const cluster = new FakeCluster();
  const result = await settle(
    cluster,
    cluster.redlock.using("a", TTL, (lock) => {
      assertEquals(cluster.holders("a"), Array(3).fill(lock.value));
      return 42;
    }),
  );
  assertEquals(result, 42);
  assertEquals(cluster.holders("a"), Array(3).fill(undefined));
  await close(cluster);
});

Deno.test("Redlock.using() keeps the process alive while its routine runs, and no longer", async () => {
  const cluster = new FakeCluster();
  const { clock } = cluster;
  let finish = () => {};
  const using = cluster.redlock.using("a", TTL, () => new Promise<void>((end) => finish = end));
  await clock.advance(700);
  assertEquals(clock.timersAlive, 1);
  finish();
  await settle(cluster, using);
  assertEquals(clock.timersAlive, 0);
  const failing = cluster.redlock.using("a", TTL, () => Promise.reject(REASON));
  assertStrictEquals(await rejection(cluster, failing), REASON);
  assertEquals(clock.timersAlive, 0);
  await close(cluster);
});

Deno.test("Redlock.using() takes the routine in place of the options", async () => {
  const cluster = new FakeCluster();
  assertEquals(await settle(cluster, cluster.redlock.using("a", () => "done")), "done");
  assertEquals(await settle(cluster, cluster.redlock.using("a", undefined, () => "done")), "done");
  await close(cluster);
});

Deno.test("Redlock.using() refuses a routine that is none before it locks anything", async () => {
  const cluster = new FakeCluster();
  const using = cluster.redlock.using as unknown as (...args: unknown[]) => Promise<unknown>;
  for (const args of [["a"], ["a", {}], ["a", {}, {}]]) {
    const error = await assertRejects(() => using.apply(cluster.redlock, args), TypeError);
    assertEquals(error.message, "Cannot acquire lock as 'routine' must be a function");
  }
  assertEquals(cluster.nodes[0].calls, []);
  await close(cluster);
});

Deno.test("Redlock.using() rejects with the routine's own error, thrown or rejected, and releases", async () => {
  const cluster = new FakeCluster();
  const throwing = cluster.redlock.using("a", TTL, () => {
    throw REASON;
  });
  assertStrictEquals(await rejection(cluster, throwing), REASON);
  const rejecting = cluster.redlock.using("a", TTL, () => Promise.reject(REASON));
  assertStrictEquals(await rejection(cluster, rejecting), REASON);
  assertEquals(cluster.holders("a"), Array(3).fill(undefined));
  await close(cluster);
});

for (const mode of ["fail", "hang", "throw"] as const) {
  Deno.test(`Redlock.using() lets the routine's result win over a release where nodes ${mode}`, async () => {
    const cluster = new FakeCluster();
    for (const node of cluster.nodes) node.modes.release = mode;
    assertEquals(await settle(cluster, cluster.redlock.using("a", TTL, () => 42)), 42);
    assertEquals(cluster.eventTypes.at(-1), "release-failed");
    await close(cluster);
  });

  Deno.test(`Redlock.using() lets the routine's error win over a release where nodes ${mode}`, async () => {
    const cluster = new FakeCluster();
    for (const node of cluster.nodes) node.modes.release = mode;
    const rejecting = cluster.redlock.using("a", TTL, () => Promise.reject(REASON));
    assertStrictEquals(await rejection(cluster, rejecting), REASON);
    assertEquals(cluster.eventTypes.at(-1), "release-failed");
    await close(cluster);
  });
}

Deno.test("Redlock.using() rejects with LockLostError where the lock was lost and the routine resolved", async () => {
  const cluster = new FakeCluster();
  let reason: unknown;
  const using = cluster.redlock.using("a", { ...TTL, autoExtend: false }, async (lock) => {
    await cluster.clock.advance(2_000);
    reason = lock.signal.reason;
    return 42;
  });
  const error = await rejection(cluster, using);
  assertInstanceOf(error, LockLostError);
  assertStrictEquals(reason, error);
  assertEquals(error.message, 'Cannot keep lock "a": its validity has ended');
  await close(cluster);
});

Deno.test("Redlock.using() rejects with LockLostError where a busy event loop outlived the lock", async () => {
  const cluster = new FakeCluster();
  const using = cluster.redlock.using("a", TTL, () => cluster.clock.block(2_000));
  assertInstanceOf(await rejection(cluster, using), LockLostError);
  await close(cluster);
});

Deno.test("Redlock.using() rejects with the routine's error, though the lock was lost too", async () => {
  const cluster = new FakeCluster();
  const using = cluster.redlock.using("a", { ...TTL, autoExtend: false }, async () => {
    await cluster.clock.advance(2_000);
    throw REASON;
  });
  assertStrictEquals(await rejection(cluster, using), REASON);
  await close(cluster);
});

Deno.test("Redlock.using() extends for as long as the routine runs", async () => {
  const cluster = new FakeCluster();
  const extensions = await settle(
    cluster,
    cluster.redlock.using("a", TTL, async (lock) => {
      for (let times = 0; times < 100; times++) {
        await cluster.clock.advance(100);
        assert(lock.held);
      }
      return lock.extensions;
    }),
  );
  assert(extensions >= 25 && extensions <= 30, `${extensions}`);
  await cluster.clock.advance(10_000);
  assertEquals(cluster.nodes[0].calls.at(-1)?.operation, "release"); // and no longer
  await close(cluster);
});

Deno.test("Redlock.using() has its signal abort lock.signal while the routine runs; the lock stands", async () => {
  const cluster = new FakeCluster();
  const controller = new AbortController();
  const using = cluster.redlock.using("a", { ...TTL, signal: controller.signal }, (lock) => {
    assertEquals(lock.signal.aborted, false);
    controller.abort(REASON);
    assertStrictEquals(lock.signal.reason, REASON);
    assert(lock.held);
    return 42;
  });
  assertEquals(await settle(cluster, using), 42);
  await close(cluster);
});

Deno.test("Redlock.using() hands its signal's abort on to a routine that asks for lock.signal later", async () => {
  const cluster = new FakeCluster();
  const controller = new AbortController();
  const using = cluster.redlock.using("a", { ...TTL, signal: controller.signal }, (lock) => {
    controller.abort(REASON);
    return lock.signal.reason;
  });
  assertStrictEquals(await settle(cluster, using), REASON);
  await close(cluster);
});

Deno.test("Redlock.using() hands on an abort between the winning of the lock and the routine", async () => {
  for (let turns = 0; turns < 12; turns++) {
    const cluster = new FakeCluster();
    const controller = new AbortController();
    const abortLater = (left: number) => {
      if (left === 0) controller.abort(REASON);
      else queueMicrotask(() => abortLater(left - 1));
    };
    const using = cluster.redlock.using("a", {
      ...TTL,
      signal: controller.signal,
      onEvent: ({ type }) => type === "acquired" && abortLater(turns),
    }, async (lock) => {
      await runMicrotasks();
      return lock.signal.reason;
    });
    // Either the call ends with the reason, or the routine hears of it.
    assertStrictEquals(await settle(cluster, using.catch((error) => error)), REASON);
    await close(cluster);
  }
});

Deno.test("Redlock.using() takes its signal's abort after the routine for none of its business", async () => {
  const cluster = new FakeCluster();
  const controller = new AbortController();
  let kept: Lock | undefined;
  await settle(
    cluster,
    cluster.redlock.using("a", { ...TTL, signal: controller.signal }, (lock) => {
      kept = lock;
      assertEquals(lock.signal.aborted, false);
    }),
  );
  controller.abort(REASON);
  assertEquals(kept?.signal.aborted, false);
  await close(cluster);
});

Deno.test("Redlock.using() leaves no timer that keeps the process alive", async () => {
  const cluster = new FakeCluster();
  await settle(cluster, cluster.redlock.using("a", TTL, () => {}));
  assertEquals([cluster.clock.timersAlive, cluster.wheel.size], [0, 0]);
  await cluster.clock.advance(300);
  assertEquals(cluster.clock.timers, 0);
  await close(cluster);
});
