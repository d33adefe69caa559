import { assertEquals, assertInstanceOf, assertRejects, assertStrictEquals } from "@std/assert";
import { LockHeldError, QuorumError } from "../../src/errors.ts";
import { close, REASON, rejection, settle, TTL } from "../support/cluster_calls.ts";
import { FakeCluster, type FakeNode } from "../support/fake_nodes.ts";

const DENIED = "0 of 3 nodes granted it, 3 denied, 2 are needed";

/** Has a node refuse every request with this error. */
function refuse(node: FakeNode, error: Error): void {
  node.acquire = (request, nodeIndex) => request.fail(nodeIndex, error);
}

/** An error that no later attempt can mend. */
function permanent(message: string): Error {
  return Object.assign(new Error(message), { permanent: true });
}

// What stands in the way

for (
  const [ttlMs, type, what] of [
    [700, undefined, "its key expires in 500 ms unless it is extended"],
    [Infinity, undefined, "its key has no TTL, so no lock library set it"],
    [Infinity, "list", "its key holds a list and has no TTL, so no lock library set it"],
  ] as const
) {
  Deno.test(`Redlock.acquire() says what stood in its way for the whole wait: ${what}`, async () => {
    const cluster = new FakeCluster(3, { notify: false });
    for (const node of cluster.nodes) node.set("a", "other", ttlMs, type);
    const error = await rejection(cluster, cluster.redlock.acquire("a", { ...TTL, waitMs: 200 }));
    assertInstanceOf(error, LockHeldError);
    assertEquals(
      error.message,
      `Cannot acquire lock "a": someone else holds it; waited 200 ms; ${what}; ${DENIED}`,
    );
    assertEquals(error.remainingMs, ttlMs - 200);
    await close(cluster);
  });
}

Deno.test("Redlock.acquire() of several resources names the one whose key stays longest", async () => {
  const cluster = new FakeCluster(3, { keyPrefix: "app:" });
  for (const node of cluster.nodes) {
    node.set("app:a", "other", 100);
    node.set("app:b", "other", Infinity, "hash");
    node.set("app:c", "other", 900);
  }
  const resources = ["a", "b", "c"];
  const error = await rejection(cluster, cluster.redlock.acquire(resources, { waitMs: 0 }));
  assertEquals(
    error.message,
    `Cannot acquire locks "a", "b", "c": someone else holds it; the key of "b" holds a hash and has no TTL, so no lock library set it; ${DENIED}`,
  );
  await close(cluster);
});

Deno.test("Redlock.acquire() says nothing of a key that is gone by the end of the wait", async () => {
  const cluster = new FakeCluster();
  for (const node of cluster.nodes) {
    node.set("a", "other");
    const { inspect } = node;
    node.inspect = (key) => {
      node.forget();
      return inspect.call(node, key);
    };
  }
  const error = await rejection(cluster, cluster.redlock.acquire("a", { ...TTL, waitMs: 0 }));
  assertInstanceOf(error, LockHeldError);
  assertEquals(error.message, `Cannot acquire lock "a": someone else holds it; ${DENIED}`);
  assertEquals(error.remainingMs, undefined);
  await close(cluster);
});

Deno.test("Redlock.acquire() asks one node that denied what stands in its way, for 100 ms at most", async () => {
  const cluster = new FakeCluster(3, { nodeTimeoutMs: 500 });
  cluster.nodes[0].mode = "fail";
  for (const node of cluster.nodes) {
    node.set("a", "other");
    node.modes.inspect = "hang";
  }
  const startMs = cluster.clock.monotonicMs();
  const error = await rejection(cluster, cluster.redlock.acquire("a", { waitMs: 0 }));
  assertInstanceOf(error, LockHeldError);
  assertEquals(cluster.clock.monotonicMs() - startMs, 100);
  assertEquals(cluster.nodes.map((node) => node.asked("inspect").length), [0, 1, 0]);
  await close(cluster);
});

Deno.test("Redlock.acquire() ends at once if its signal aborts while it asks what stands in its way", async () => {
  const cluster = new FakeCluster();
  for (const node of cluster.nodes) {
    node.set("a", "other");
    node.modes.inspect = "hang";
  }
  const controller = new AbortController();
  const { signal } = controller;
  const rejected = assertRejects(() => cluster.redlock.acquire("a", { waitMs: 0, signal }));
  await cluster.clock.advance(10);
  controller.abort(REASON);
  assertStrictEquals(await rejected, REASON); // without any time passing
  await close(cluster);
});

Deno.test("Redlock.tryAcquire() does not ask what stands in its way", async () => {
  const cluster = new FakeCluster();
  for (const node of cluster.nodes) node.set("a", "other");
  assertEquals(await settle(cluster, cluster.redlock.tryAcquire("a")), undefined);
  assertEquals(cluster.nodes.flatMap((node) => node.asked("inspect")), []);
  await close(cluster);
});

// Locks of one's own

for (const waitMs of [0, 200]) {
  Deno.test(`Redlock.acquire() with waitMs: ${waitMs} says that its own client holds the lock, and for how long`, async () => {
    const cluster = new FakeCluster(3, { ttlMs: 10_000 });
    const lock = await settle(cluster, cluster.redlock.acquire("a"));
    await cluster.clock.advance(300);
    const error = await rejection(cluster, cluster.redlock.acquire("a", { waitMs }));
    assertInstanceOf(error, LockHeldError);
    const [heldMs, waited] = waitMs === 0 ? [300, `; ${DENIED}`] : [500, "; waited 200 ms"];
    assertEquals(
      error.message,
      `Cannot acquire lock "a": this client itself has held it for ${heldMs} ms, and locks are not reentrant${waited}`,
    );
    await settle(cluster, lock.release());
    await close(cluster);
  });
}

Deno.test("Redlock.acquire() says that its own client holds one of several resources", async () => {
  const cluster = new FakeCluster(3, { ttlMs: 10_000 });
  const lock = await settle(cluster, cluster.redlock.acquire(["a", "b"]));
  const error = await rejection(cluster, cluster.redlock.acquire(["b", "c"], { waitMs: 0 }));
  assertEquals(
    error.message,
    `Cannot acquire locks "b", "c": this client itself has held it for 0 ms, and locks are not reentrant; ${DENIED}`,
  );
  await settle(cluster, lock.release());
  await close(cluster);
});

// Refused for good

Deno.test("Redlock.acquire() fails at once if more than N - quorum nodes refuse for good", async () => {
  const cluster = new FakeCluster();
  refuse(cluster.nodes[0], new Error("not this one"));
  refuse(cluster.nodes[1], permanent("wrong password"));
  refuse(cluster.nodes[2], permanent("wrong password too"));
  const startMs = cluster.clock.monotonicMs();
  const error = await rejection(cluster, cluster.redlock.acquire("a", { waitMs: Infinity }));
  assertInstanceOf(error, QuorumError);
  assertEquals(
    error.message,
    'Cannot acquire lock "a": 0 of 3 nodes granted it, 3 failed, 2 are needed; permanent error: wrong password',
  );
  assertEquals(cluster.clock.monotonicMs() - startMs, 0);
  assertEquals(cluster.eventTypes, ["attempt", "denied"]);
  await close(cluster);
});

Deno.test("Redlock.acquire() waits if the nodes that refuse for good leave a quorum of others", async () => {
  const cluster = new FakeCluster();
  refuse(cluster.nodes[0], permanent("wrong password"));
  cluster.set("fail", 1);
  const acquiring = cluster.redlock.acquire("a");
  await cluster.clock.advance(300);
  cluster.set("answer", 1);
  const lock = await settle(cluster, acquiring);
  assertEquals(lock.held, true);
  await settle(cluster, lock.release());
  await close(cluster);
});
