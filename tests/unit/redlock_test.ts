import {
  assert,
  assertEquals,
  assertGreater,
  assertInstanceOf,
  assertLessOrEqual,
  assertRejects,
  assertStrictEquals,
  assertThrows,
} from "@std/assert";
import { LockHeldError, LockLostError, QuorumError, RedlockError } from "../../src/errors.ts";
import type { Lock } from "../../src/lock.ts";
import type { LockNode } from "../../src/node.ts";
import { NODES_MAX, Redlock } from "../../src/redlock.ts";
import { advanceUntil, runMicrotasks } from "../support/fake_clock.ts";
import { countListeners, FakeCluster, FakeNode } from "../support/fake_nodes.ts";

const TTL = { ttlMs: 1_000 };
/** TTL less 1 % less 2 ms. */
const VALIDITY_MS = 988;
/** The default for a TTL of a second. */
const NODE_TIMEOUT_MS = 50;
const REASON = new Error("changed my mind");

/** Settles `promise` on the cluster's time. */
function settle<T>(cluster: FakeCluster, promise: Promise<T>, limitMs?: number): Promise<T> {
  return advanceUntil(cluster.clock, promise, limitMs, 1);
}

/** What `promise` rejects with, on the cluster's time. */
async function rejection(cluster: FakeCluster, promise: Promise<unknown>): Promise<Error> {
  const rejected = assertRejects(() => promise) as Promise<Error>;
  return await settle(cluster, rejected);
}

async function close(cluster: FakeCluster): Promise<void> {
  await settle(cluster, cluster.redlock.close());
}

// Construction

Deno.test("Redlock refuses to be made without nodes", () => {
  for (const nodes of [[], "n", undefined]) {
    assertEquals(
      assertThrows(() => new Redlock(nodes as LockNode[]), TypeError).message,
      "Cannot create lock client as 'nodes' must be an array of at least one node",
    );
  }
});

Deno.test("Redlock refuses one node twice", () => {
  const [node] = new FakeCluster(1).nodes;
  assertEquals(
    assertThrows(() => new Redlock([node, node]), TypeError).message,
    "Cannot create lock client as node node0 is named twice",
  );
});

Deno.test("Redlock refuses what is no node", () => {
  for (const node of [{}, null, undefined, "redis://h", { name: "n" }]) {
    assertEquals(
      assertThrows(() => new Redlock([node as LockNode]), TypeError).message,
      "Cannot create lock client as a node does not implement LockNode",
    );
  }
});

Deno.test("Redlock refuses more nodes than it has seats for", () => {
  const { clock } = new FakeCluster(1);
  const nodes = Array.from({ length: NODES_MAX + 1 }, (_, seat) => new FakeNode(`${seat}`, clock));
  assertEquals(
    assertThrows(() => new Redlock(nodes), RangeError).message,
    "Cannot create lock client as there must be at most 31 nodes",
  );
});

Deno.test("Redlock refuses options at once, under its own heading", () => {
  assertEquals(
    assertThrows(() => new Redlock(new FakeCluster(1).nodes, { ttlMs: 1 }), RangeError).message,
    "Cannot create lock client as 'ttlMs' must be from 10 to 86400000: current value is 1",
  );
});

Deno.test("Redlock keeps its own copy of nodes and options", async () => {
  const cluster = new FakeCluster(1);
  const options = { ttlMs: 1_000 };
  const redlock = new Redlock(cluster.nodes, options);
  options.ttlMs = 2_000;
  cluster.nodes.length = 0;
  const lock = await redlock.acquire("a");
  assertLessOrEqual(lock.remainingMs(), VALIDITY_MS);
  await redlock.close();
});

// Acquiring

Deno.test("Redlock.acquire() sets the key on every node, to a value and a TTL", async () => {
  const cluster = new FakeCluster(5);
  const lock = await settle(cluster, cluster.redlock.acquire("a", TTL));
  assertEquals(cluster.holders("a"), Array(5).fill(lock.value));
  assertEquals(lock.resources, ["a"]);
  for (const { calls } of cluster.nodes) {
    assertEquals(calls.map(({ operation, ttlMs }) => [operation, ttlMs]), [["acquire", 1_000]]);
  }
  await close(cluster);
});

Deno.test("Redlock.acquire() names the key by the prefix and the resource alone", async () => {
  const cluster = new FakeCluster(1, { keyPrefix: "app:" });
  await settle(cluster, cluster.redlock.acquire(["a", "b"]));
  await settle(cluster, cluster.redlock.acquire("c", { keyPrefix: "" }));
  assertEquals(Object.keys(cluster.nodes[0].keys), ["app:a", "app:b", "c"]);
  await close(cluster);
});

for (const nodeCount of [1, 2, 3, 4, 5, 6, 7]) {
  const quorum = Math.floor(nodeCount / 2) + 1;
  for (const mode of ["fail", "hang", "throw"] as const) {
    Deno.test(`Redlock.acquire() wins with a bare quorum of ${nodeCount} while the others ${mode}`, async () => {
      const cluster = new FakeCluster(nodeCount);
      cluster.set(mode, ...Array.from({ length: nodeCount - quorum }, (_, index) => index));
      const startMs = cluster.clock.monotonicMs();
      const lock = await settle(cluster, cluster.redlock.acquire("a", TTL));
      assert(lock.held);
      assertEquals(cluster.clock.monotonicMs() - startMs, 0); // the others cost nothing
      await close(cluster);
    });

    Deno.test(`Redlock.tryAcquire() has no quorum of ${nodeCount} once one more does ${mode}`, async () => {
      const cluster = new FakeCluster(nodeCount);
      cluster.set(mode, ...Array.from({ length: nodeCount - quorum + 1 }, (_, index) => index));
      const startMs = cluster.clock.monotonicMs();
      const error = await rejection(cluster, cluster.redlock.tryAcquire("a", TTL));
      assertInstanceOf(error, QuorumError);
      assertLessOrEqual(cluster.clock.monotonicMs() - startMs, NODE_TIMEOUT_MS + 1);
      const failed = nodeCount - quorum + 1;
      const granted = mode === "hang" ? quorum - 1 : 0; // else it was decided before they answered
      const what = mode === "hang" ? "timed out" : "failed";
      assertEquals(
        error.message,
        `Cannot acquire lock "a": ${granted} of ${nodeCount} nodes granted it, ${failed} ${what}, ${quorum} are needed`,
      );
      for (const node of cluster.nodes) node.resume();
      await runMicrotasks();
      assertEquals(cluster.holders("a"), Array(nodeCount).fill(undefined));
      await close(cluster);
    });
  }

  Deno.test(`Redlock.tryAcquire() settles every split of ${nodeCount} nodes between two clients`, async () => {
    for (let split = 0; split <= nodeCount; split++) {
      const cluster = new FakeCluster(nodeCount);
      cluster.nodes.forEach((node, index) => index < split && node.set("a", "other"));
      const lock = await settle(cluster, cluster.redlock.tryAcquire("a", TTL));
      assertEquals(lock !== undefined, nodeCount - split >= quorum);
      if (!lock) {
        await runMicrotasks();
        const others = cluster.nodes.map((_, index) => index < split ? "other" : undefined);
        assertEquals(cluster.holders("a"), others);
      }
      await close(cluster);
    }
  });
}

Deno.test("Redlock.tryAcquire() is undefined where others hold it, and touches nothing of theirs", async () => {
  const cluster = new FakeCluster();
  const other = await settle(cluster, cluster.contender().acquire("a"));
  assertEquals(await settle(cluster, cluster.redlock.tryAcquire("a")), undefined);
  assertEquals(cluster.holders("a"), Array(3).fill(other.value));
  await other.release();
  await close(cluster);
});

Deno.test("Redlock.acquire() with waitMs: 0 makes one attempt and says who holds it", async () => {
  const cluster = new FakeCluster();
  for (const node of cluster.nodes) node.set("a", "other");
  const error = await rejection(cluster, cluster.redlock.acquire("a", { ...TTL, waitMs: 0 }));
  assertInstanceOf(error, LockHeldError);
  assertEquals([error.code, error.resources], ["LOCK_HELD", ["a"]]);
  assertEquals(
    error.message,
    'Cannot acquire lock "a": 0 of 3 nodes granted it, 3 denied, 2 are needed',
  );
  assertEquals(error.votes.map(({ node, outcome }) => [node, outcome]), [
    ["node0", "denied"],
    ["node1", "denied"],
    ["node2", "denied"],
  ]);
  assertEquals(cluster.nodes[0].asked("acquire").length, 1);
  await close(cluster);
});

Deno.test("Redlock.acquire() says held, not no quorum, where a quorum answered", async () => {
  const cluster = new FakeCluster();
  cluster.nodes[0].set("a", "other");
  cluster.set("fail", 1);
  const error = await rejection(cluster, cluster.redlock.acquire("a", { ...TTL, waitMs: 0 }));
  assertInstanceOf(error, LockHeldError);
  assertEquals(
    error.message,
    'Cannot acquire lock "a": 1 of 3 nodes granted it, 1 denied, 1 failed, 2 are needed',
  );
  await close(cluster);
});

Deno.test("Redlock.acquire() gives the nodes' own errors as the cause", async () => {
  const cluster = new FakeCluster();
  cluster.set("fail", 0, 2);
  const error = await rejection(
    cluster,
    cluster.redlock.acquire(["a", "b"], { ...TTL, waitMs: 0 }),
  );
  assertInstanceOf(error, QuorumError);
  assertEquals(error.code, "NO_QUORUM");
  assert(error.message.startsWith('Cannot acquire locks "a", "b": '));
  assertInstanceOf(error.cause, AggregateError);
  assertEquals(error.cause.message, "node0: node0 is down; node2: node2 is down");
  await close(cluster);
});

Deno.test("Redlock.acquire() tries again until the lock is free, with a fresh value each time", async () => {
  const cluster = new FakeCluster();
  for (const node of cluster.nodes) node.set("a", "other", 2_000);
  const lock = await settle(cluster, cluster.redlock.acquire("a", TTL));
  const tried = cluster.nodes[0].asked("acquire").map(({ value }) => value);
  assertGreater(tried.length, 3);
  assertEquals(new Set(tried).size, tried.length);
  assertEquals(lock.value, tried.at(-1));
  await close(cluster);
});

Deno.test("Redlock.acquire() undoes each attempt under its own value before the next", async () => {
  const cluster = new FakeCluster();
  for (const node of cluster.nodes.slice(0, 2)) node.set("a", "other", 2_000);
  const lock = await settle(cluster, cluster.redlock.acquire("a", TTL));
  for (const { calls } of cluster.nodes) {
    const steps = calls.map(({ operation, value }) => `${operation} ${value}`);
    const expected = cluster.values.flatMap((value) => [`acquire ${value}`, `release ${value}`]);
    assertEquals(steps, expected.slice(0, -1));
  }
  assertEquals(cluster.holders("a"), Array(3).fill(lock.value));
  await close(cluster);
});

Deno.test("Redlock.acquire() gives up when waitMs is over, and no sooner", async () => {
  const cluster = new FakeCluster();
  for (const node of cluster.nodes) node.set("a", "other");
  const startMs = cluster.clock.monotonicMs();
  const error = await rejection(cluster, cluster.redlock.acquire("a", { waitMs: 3_000 }));
  assertInstanceOf(error, LockHeldError);
  const waitedMs = cluster.clock.monotonicMs() - startMs;
  assert(waitedMs >= 3_000 && waitedMs <= 3_010, `${waitedMs}`);
  await close(cluster);
});

Deno.test("Redlock.acquire() takes a lock that becomes free at the very end of the wait", async () => {
  const cluster = new FakeCluster(3, { retryDelayMs: 400, retryDelayMaxMs: 100_000 });
  cluster.fraction = 0.999;
  for (const node of cluster.nodes) node.set("a", "other", 2_990);
  const lock = await settle(cluster, cluster.redlock.acquire("a", { waitMs: 3_000 }));
  assert(lock.held);
  await close(cluster);
});

Deno.test("Redlock.acquire() lets jitter spread its attempts, up to retryDelayMaxMs", async () => {
  const cluster = new FakeCluster(1, { retryDelayMs: 10, retryDelayMaxMs: 40, waitMs: 300 });
  cluster.nodes[0].set("a", "other");
  const startMs = cluster.clock.monotonicMs();
  await rejection(cluster, cluster.redlock.acquire("a"));
  const times = cluster.nodes[0].asked("acquire").map(({ atMs }) => atMs - startMs);
  assertEquals(times.slice(0, 6), [0, 5, 15, 35, 55, 75]);
  await close(cluster);
});

Deno.test("Redlock.acquire() does not hang with a retryDelayMs of 0, however often it tries", async () => {
  const cluster = new FakeCluster(1);
  cluster.nodes[0].set("a", "other", 1_500);
  cluster.nodes[0].replyMs = 1;
  const options = { retryDelayMs: 0, retryDelayMaxMs: 1 };
  const lock = await settle(cluster, cluster.redlock.acquire("a", options), 3_000);
  assert(lock.held);
  await close(cluster);
});

Deno.test("Redlock.acquire() counts validity from before the first byte", async () => {
  const cluster = new FakeCluster();
  for (const node of cluster.nodes) {
    node.requestMs = 10;
    node.replyMs = 15;
  }
  const lock = await settle(cluster, cluster.redlock.acquire("a", TTL));
  assertEquals(lock.remainingMs(), VALIDITY_MS - 25);
  assertEquals(lock.votes.map(({ elapsedMs }) => elapsedMs).slice(0, 2), [25, 25]);
  await close(cluster);
});

Deno.test("Redlock.acquire() charges a long wait to no validity", async () => {
  const cluster = new FakeCluster();
  for (const node of cluster.nodes) node.set("a", "other", 5_000);
  const lock = await settle(cluster, cluster.redlock.acquire("a", TTL));
  assertEquals(lock.remainingMs(), VALIDITY_MS);
  await close(cluster);
});

Deno.test("Redlock.acquire() refuses grants that come when the validity is over, and takes them back", async () => {
  const cluster = new FakeCluster();
  for (const node of cluster.nodes) node.replyMs = 20;
  const trying = cluster.redlock.tryAcquire("a", TTL);
  await runMicrotasks();
  cluster.clock.block(1_000); // the event loop was busy; the answers are there, and so is the end
  const error = await rejection(cluster, trying);
  assertInstanceOf(error, QuorumError);
  assertEquals(
    error.message,
    'Cannot acquire lock "a": 2 of 3 nodes granted it, 2 are needed, too late for its validity',
  );
  assertEquals(cluster.nodes.map(({ calls }) => calls.at(-1)?.operation), Array(3).fill("release"));
  await close(cluster);
});

for (
  const [what, sleep] of [
    ["the wall clock steps ahead", (cluster: FakeCluster) => cluster.clock.stepWall(1_000)],
    ["the machine sleeps", (cluster: FakeCluster) => {
      cluster.clock.stepWall(60_000);
    }],
  ] as const
) {
  Deno.test(`Redlock.acquire() refuses a lock where ${what} in the meantime`, async () => {
    const cluster = new FakeCluster();
    for (const node of cluster.nodes) node.replyMs = 20;
    const trying = cluster.redlock.tryAcquire("a", TTL);
    await runMicrotasks();
    sleep(cluster);
    assertInstanceOf(await rejection(cluster, trying), QuorumError);
    await runMicrotasks();
    assertEquals(cluster.holders("a"), Array(3).fill(undefined));
    await close(cluster);
  });
}

Deno.test("Redlock.acquire() is not misled by a wall clock that steps back", async () => {
  const cluster = new FakeCluster();
  for (const node of cluster.nodes) node.replyMs = 20;
  const acquiring = cluster.redlock.acquire("a", TTL);
  await runMicrotasks();
  cluster.clock.stepWall(-60_000);
  assertEquals((await settle(cluster, acquiring)).remainingMs(), VALIDITY_MS - 20);
  await close(cluster);
});

Deno.test("Redlock.acquire() waits for a node no longer than nodeTimeoutMs", async () => {
  const cluster = new FakeCluster();
  cluster.set("hang", 0, 1);
  const startMs = cluster.clock.monotonicMs();
  await rejection(cluster, cluster.redlock.tryAcquire("a", { ...TTL, nodeTimeoutMs: 30 }));
  assertEquals(cluster.clock.monotonicMs() - startMs, 30);
  await close(cluster);
});

Deno.test("Redlock.acquire() waits for a node no longer than the validity", async () => {
  const cluster = new FakeCluster();
  cluster.set("hang", 0, 1);
  const startMs = cluster.clock.monotonicMs();
  await rejection(cluster, cluster.redlock.tryAcquire("a", { ttlMs: 100, nodeTimeoutMs: 5_000 }));
  assertLessOrEqual(cluster.clock.monotonicMs() - startMs, 100);
  await close(cluster);
});

for (const mode of ["fail", "hang", "lose-reply", "throw"] as const) {
  Deno.test(`Redlock.tryAcquire() leaves no key behind where a majority does ${mode}`, async () => {
    const cluster = new FakeCluster(5);
    cluster.nodes.slice(1, 4).forEach((node) => node.modes.acquire = mode);
    await rejection(cluster, cluster.redlock.tryAcquire("a", TTL));
    for (const node of cluster.nodes) node.resume();
    await cluster.clock.advance(10);
    assertEquals(cluster.holders("a"), Array(5).fill(undefined));
    for (const { calls } of cluster.nodes) {
      const [acquire, release] = calls;
      assertEquals([acquire.operation, release.operation], ["acquire", "release"]);
      assertEquals(release.value, acquire.value);
    }
    await close(cluster);
  });
}

Deno.test("Redlock.acquire() locks all of several resources, or none", async () => {
  const cluster = new FakeCluster();
  for (const node of cluster.nodes) node.set("b", "other", 3_000);
  assertEquals(await settle(cluster, cluster.redlock.tryAcquire(["a", "b"], TTL)), undefined);
  assertEquals(cluster.holders("a"), Array(3).fill(undefined));
  const lock = await settle(cluster, cluster.redlock.acquire(["a", "b"], TTL));
  assertEquals(lock.resources, ["a", "b"]);
  for (const key of ["a", "b"]) assertEquals(cluster.holders(key), Array(3).fill(lock.value));
  assertEquals(await settle(cluster, lock.release()), true);
  for (const key of ["a", "b"]) assertEquals(cluster.holders(key), Array(3).fill(undefined));
  await close(cluster);
});

Deno.test("Redlock.acquire(), tryAcquire(), using() and inspect() refuse a resource that is none", async () => {
  const cluster = new FakeCluster();
  const { redlock } = cluster;
  for (const call of [redlock.acquire, redlock.tryAcquire]) {
    const error = await assertRejects(() => call.call(redlock, []), TypeError);
    assertEquals(error.message, "Cannot acquire lock as no resource is named");
  }
  const using = await assertRejects(() => redlock.using("", () => {}), TypeError);
  assertEquals(
    using.message,
    "Cannot acquire lock as a resource must be a string that is not empty",
  );
  for (const resource of ["", ["a"], undefined]) {
    const error = await assertRejects(() => redlock.inspect(resource as string), TypeError);
    assertEquals(
      error.message,
      "Cannot inspect lock as a resource must be a string that is not empty",
    );
  }
  assertEquals(cluster.nodes.flatMap(({ calls }) => calls), []);
  await close(cluster);
});

Deno.test("Redlock.acquire() refuses an unknown option", async () => {
  const cluster = new FakeCluster();
  const options = { ttl: 5 } as object;
  const error = await assertRejects(() => cluster.redlock.acquire("a", options), TypeError);
  assert(error.message.startsWith("Cannot acquire lock as there is no option 'ttl': there are "));
  await close(cluster);
});

Deno.test("Redlock.acquire() sees options that were changed between two calls", async () => {
  const cluster = new FakeCluster();
  const options = { ttlMs: 1_000 };
  for (const ttlMs of [1_000, 2_000, 3_000]) {
    options.ttlMs = ttlMs;
    await settle(cluster, cluster.redlock.acquire(`${ttlMs}`, options));
    assertEquals(cluster.nodes[0].calls.at(-1)?.ttlMs, ttlMs);
  }
  options.ttlMs = 1;
  await assertRejects(() => cluster.redlock.acquire("bad", options), RangeError);
  await assertRejects(() => cluster.redlock.acquire("bad", options), RangeError);
  await close(cluster);
});

Deno.test("Redlock.acquire() does not confuse options that hold undefined with ones that don't", async () => {
  const cluster = new FakeCluster(1, { ttlMs: 1_000 });
  const given = [{ ttlMs: 2_000 }, { ttlMs: undefined }, {}, { waitMs: 1, ttlMs: 3_000 }, {
    waitMs: 1,
  }, undefined];
  for (const [index, options] of given.entries()) {
    await settle(cluster, cluster.redlock.acquire(`${index}`, options));
  }
  const ttls = cluster.nodes[0].calls.map(({ ttlMs }) => ttlMs);
  assertEquals(ttls, [2_000, 1_000, 1_000, 3_000, 1_000, 1_000]);
  await close(cluster);
});

// The caller's signal

Deno.test("Redlock.acquire() with a signal that was aborted before asks nobody", async () => {
  const cluster = new FakeCluster();
  const signal = AbortSignal.abort(REASON);
  for (
    const call of [
      () => cluster.redlock.acquire("a", { signal }),
      () => cluster.redlock.tryAcquire("a", { signal }),
      () => cluster.redlock.using("a", { signal }, () => assert(false)),
    ]
  ) {
    assertStrictEquals(await assertRejects(call), REASON);
  }
  assertEquals(cluster.nodes.flatMap(({ calls }) => calls), []);
  await close(cluster);
});

Deno.test("Redlock.acquire() aborted while nodes are asked takes back what was set", async () => {
  const cluster = new FakeCluster();
  cluster.set("hang", 1, 2);
  const controller = new AbortController();
  const listeners = countListeners(controller.signal);
  const acquiring = cluster.redlock.acquire("a", { ...TTL, signal: controller.signal });
  await runMicrotasks();
  assertEquals(cluster.nodes[0].holder("a"), cluster.values[0]);
  controller.abort(REASON);
  assertStrictEquals(await rejection(cluster, acquiring), REASON);
  for (const node of cluster.nodes) node.resume();
  await runMicrotasks();
  assertEquals(cluster.holders("a"), [undefined, undefined, undefined]);
  assertEquals([listeners(), cluster.clock.timersAlive], [0, 0]);
  await close(cluster);
});

Deno.test("Redlock.acquire() aborted in the tick in which the quorum is won gives the lock back", async () => {
  const cluster = new FakeCluster();
  const controller = new AbortController();
  for (const node of cluster.nodes) node.replyMs = 5;
  const acquiring = cluster.redlock.acquire("a", { ...TTL, signal: controller.signal });
  cluster.clock.setTimer(() => controller.abort(REASON), 5);
  assertStrictEquals(await rejection(cluster, acquiring), REASON);
  await runMicrotasks();
  assertEquals(cluster.holders("a"), [undefined, undefined, undefined]);
  await close(cluster);
});

Deno.test("Redlock.acquire() aborted by its own listener gives the lock back", async () => {
  const cluster = new FakeCluster();
  const controller = new AbortController();
  const onEvent = () => controller.abort(REASON);
  const options = { ...TTL, signal: controller.signal, onEvent };
  assertStrictEquals(await rejection(cluster, cluster.redlock.acquire("a", options)), REASON);
  await runMicrotasks();
  assertEquals(cluster.holders("a"), [undefined, undefined, undefined]);
  await close(cluster);
});

Deno.test("Redlock.acquire() aborted between two attempts rejects at once", async () => {
  const cluster = new FakeCluster();
  for (const node of cluster.nodes) node.set("a", "other");
  const controller = new AbortController();
  const listeners = countListeners(controller.signal);
  const options = { waitMs: Infinity, signal: controller.signal, retryDelayMs: 1_000 };
  const acquiring = cluster.redlock.acquire("a", options);
  const rejected = assertRejects(() => acquiring);
  await cluster.clock.advance(100);
  const asked = cluster.nodes[0].asked("acquire").length;
  controller.abort(REASON);
  assertStrictEquals(await rejected, REASON);
  assertEquals(cluster.nodes[0].asked("acquire").length, asked);
  assertEquals([listeners(), cluster.clock.timersAlive, cluster.wheel.size], [0, 0, 0]);
  await close(cluster);
});

Deno.test("Redlock.acquire() that won ignores a later abort", async () => {
  const cluster = new FakeCluster();
  const controller = new AbortController();
  const options = { ...TTL, signal: controller.signal };
  const lock = await settle(cluster, cluster.redlock.acquire("a", options));
  controller.abort(REASON);
  assertEquals([lock.held, lock.signal.aborted], [true, false]);
  await close(cluster);
});

Deno.test("Redlock leaves no listener on a long-lived signal, whatever comes of the calls", async () => {
  const cluster = new FakeCluster(3, { ...TTL, waitMs: 200 });
  const { redlock, clock } = cluster;
  const { signal } = new AbortController();
  const listeners = countListeners(signal);
  for (let times = 0; times < 3; times++) {
    const lock = await settle(cluster, redlock.acquire("a", { signal }));
    await settle(cluster, redlock.acquire("a", { signal }).catch(() => {}));
    await settle(cluster, redlock.tryAcquire("a", { signal }));
    await settle(cluster, lock.extend({ signal }));
    await settle(cluster, lock.release());
    await settle(cluster, redlock.using("a", { signal }, () => clock.advance(1_500)));
    await settle(
      cluster,
      redlock.using("a", { signal }, () => Promise.reject(REASON)).catch(() => {}),
    );
    cluster.set("hang", 0, 1, 2);
    await settle(cluster, redlock.tryAcquire("a", { signal }).catch(() => {}));
    for (const node of cluster.nodes) node.resume();
    await clock.advance(10);
  }
  assertEquals(listeners(), 0);
  await close(cluster);
});

// using

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

Deno.test("Redlock runs on the runtime's own clock without leaving a timer", async () => {
  const redlock = new Redlock(new FakeCluster().nodes, { ttlMs: 1_000 });
  assertEquals(await redlock.using("a", () => Promise.resolve(1)), 1);
  await redlock.close();
});

// inspect

Deno.test("Redlock.inspect() says that nobody holds it", async () => {
  const cluster = new FakeCluster();
  const inspection = await settle(cluster, cluster.redlock.inspect("a"));
  assertEquals([inspection.held, inspection.remainingMs], [false, 0]);
  assertEquals(inspection.votes.map(({ outcome }) => outcome), ["granted", "granted", "granted"]);
  await close(cluster);
});

Deno.test("Redlock.inspect() says for how long a quorum of keys will live", async () => {
  const cluster = new FakeCluster(5);
  [100, 700, 300, 900].forEach((ttlMs, index) => cluster.nodes[index].set("a", "other", ttlMs));
  const inspection = await settle(cluster, cluster.redlock.inspect("a"));
  assertEquals([inspection.held, inspection.remainingMs], [true, 300]);
  assertEquals(inspection.votes.map(({ outcome }) => outcome), [
    ...Array(4).fill("denied"),
    "granted",
  ]);
  await close(cluster);
});

Deno.test("Redlock.inspect() counts keys of one value only", async () => {
  const cluster = new FakeCluster();
  cluster.nodes[0].set("a", "one");
  cluster.nodes[1].set("a", "two");
  assertEquals((await settle(cluster, cluster.redlock.inspect("a"))).held, false);
  await close(cluster);
});

for (const mode of ["fail", "hang", "throw"] as const) {
  Deno.test(`Redlock.inspect() never says free where too few can tell and nodes ${mode}`, async () => {
    const cluster = new FakeCluster();
    cluster.set(mode, 0, 1);
    const error = await rejection(cluster, cluster.redlock.inspect("a", TTL));
    assertInstanceOf(error, QuorumError);
    const what = mode === "hang" ? "timed out" : "failed";
    assertEquals(
      error.message,
      `Cannot inspect lock "a": 1 of 3 nodes granted it, 2 ${what}, 2 are needed`,
    );
    assertEquals(error.votes.length, 3);
    assertEquals([cluster.clock.timersAlive, cluster.wheel.size], [0, 0]);
    await close(cluster);
  });

  Deno.test(`Redlock.inspect() says held where a quorum says so and a node does ${mode}`, async () => {
    const cluster = new FakeCluster();
    for (const node of cluster.nodes) node.set("a", "other", 500);
    cluster.set(mode, 0);
    assertEquals((await settle(cluster, cluster.redlock.inspect("a", TTL))).held, true);
    await close(cluster);
  });
}

Deno.test("Redlock.inspect() can't tell where a failing node may make the quorum", async () => {
  const cluster = new FakeCluster();
  cluster.nodes[0].set("a", "other");
  cluster.set("fail", 1);
  assertInstanceOf(await rejection(cluster, cluster.redlock.inspect("a")), QuorumError);
  await close(cluster);
});

Deno.test("Redlock.inspect() asks for the key with its prefix", async () => {
  const cluster = new FakeCluster(1, { keyPrefix: "app:" });
  await settle(cluster, cluster.redlock.inspect("a"));
  assertEquals(cluster.nodes[0].calls[0].keys, ["app:a"]);
  await close(cluster);
});

// close

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

// Events

Deno.test("Redlock tells of attempts, of a lock and of its release", async () => {
  const cluster = new FakeCluster();
  const lock = await settle(cluster, cluster.redlock.acquire("a", TTL));
  await cluster.clock.advance(100);
  await settle(cluster, lock.release());
  assertEquals(cluster.eventTypes, ["attempt", "acquired", "released"]);
  const [attempt, acquired, released] = cluster.events;
  assert(attempt.type === "attempt" && acquired.type === "acquired");
  assertEquals([attempt.attempt, attempt.granted, attempt.resources], [1, true, ["a"]]);
  assertEquals([acquired.attempts, acquired.remainingMs], [1, VALIDITY_MS]);
  assert(released.type === "released");
  assertEquals([released.confirmed, released.heldMs], [true, 100]);
  await close(cluster);
});

Deno.test("Redlock tells why a call ended without a lock", async () => {
  const cluster = new FakeCluster();
  for (const node of cluster.nodes) node.set("a", "other");
  await settle(cluster, cluster.redlock.tryAcquire("a", TTL));
  cluster.set("fail", 0, 1);
  await rejection(cluster, cluster.redlock.acquire("a", { ...TTL, waitMs: 0 }));
  const denied = cluster.events.filter((event) => event.type === "denied");
  assertEquals(denied.map(({ reason, attempts }) => [reason, attempts]), [["held", 1], [
    "no-quorum",
    1,
  ]]);
  await close(cluster);
});

Deno.test("Redlock shows no value in errors and events", async () => {
  const cluster = new FakeCluster(3, TTL);
  const lock = await settle(cluster, cluster.redlock.acquire("a"));
  const error = await rejection(cluster, cluster.redlock.acquire("a", { waitMs: 0 }));
  cluster.set("fail", 0, 1, 2);
  await cluster.clock.advance(2_000);
  await settle(cluster, lock.release());
  assertGreater(cluster.values.length, 1);
  const shown = Deno.inspect([error, cluster.events, lock.signal.reason], { depth: 10 });
  assertEquals(cluster.values.filter((value) => shown.includes(value)), []);
  await close(cluster);
});

Deno.test("Redlock is not disturbed by a listener that throws or rejects", async () => {
  for (
    const fail of [() => Promise.reject(REASON), () => {
      throw REASON;
    }]
  ) {
    const cluster = new FakeCluster(3, { ...TTL, onEvent: fail as () => void });
    const lock = await settle(cluster, cluster.redlock.acquire("a", { autoExtend: true }));
    await cluster.clock.advance(2_000);
    assert(lock.held);
    assertEquals(await settle(cluster, lock.release()), true);
    cluster.nodes[0].set("a", "other");
    cluster.nodes[1].set("a", "other");
    assertEquals(await settle(cluster, cluster.redlock.tryAcquire("a")), undefined);
    await close(cluster);
  }
});

Deno.test("Redlock tells the call's listener in place of the client's own", async () => {
  const cluster = new FakeCluster();
  const heard: string[] = [];
  const onEvent = ({ type }: { type: string }) => void heard.push(type);
  await settle(cluster, cluster.redlock.acquire("a", { onEvent }));
  assertEquals(heard, ["attempt", "acquired"]);
  assertEquals(cluster.events, []);
  await close(cluster);
});
