import { assert, assertEquals, assertInstanceOf, assertLess, assertLessOrEqual } from "@std/assert";
import { LockHeldError, QuorumError } from "../../src/errors.ts";
import { close, rejection, settle, TTL, VALIDITY_MS } from "../support/cluster_calls.ts";
import { runMicrotasks } from "../support/fake_clock.ts";
import { FakeCluster } from "../support/fake_nodes.ts";

/** The default for a TTL of a second. */
const NODE_TIMEOUT_MS = 50;

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
      const what = mode === "hang" ? "timed out" : "failed";
      const nodes = `${nodeCount} ${nodeCount === 1 ? "node" : "nodes"}`;
      const needed = `${quorum} ${quorum === 1 ? "is" : "are"} needed`;
      const first = {
        fail: "; first error: node0 is down",
        throw: "; first error: node0 threw",
        hang: "",
      };
      // How many granted before it was decided is a matter of time.
      const granted = error.message.slice('Cannot acquire lock "a": '.length).split(" ", 1)[0];
      assertLess(Number(granted), quorum);
      assertEquals(
        error.message,
        `Cannot acquire lock "a": ${granted} of ${nodes} granted it, ${failed} ${what}, ${needed}${
          first[mode]
        }`,
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
  for (const node of cluster.nodes) node.set("a", "other", 700);
  const error = await rejection(cluster, cluster.redlock.acquire("a", { ...TTL, waitMs: 0 }));
  assertInstanceOf(error, LockHeldError);
  assertEquals([error.code, error.resources], ["LOCK_HELD", ["a"]]);
  assertEquals(error.remainingMs, 700);
  assertEquals(
    error.message,
    'Cannot acquire lock "a": someone else holds it; its key expires in 700 ms unless it is extended; 0 of 3 nodes granted it, 3 denied, 2 are needed',
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
  cluster.nodes[0].set("a", "other", 700);
  cluster.set("fail", 1);
  const error = await rejection(cluster, cluster.redlock.acquire("a", { ...TTL, waitMs: 0 }));
  assertInstanceOf(error, LockHeldError);
  assertEquals(
    error.message,
    'Cannot acquire lock "a": others hold it or compete for it; its key expires in 700 ms unless it is extended; 1 of 3 nodes granted it, 1 denied, 1 failed, 2 are needed',
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
    'Cannot acquire lock "a": 2 of 3 nodes granted it, 2 are needed, but too late for its validity',
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
