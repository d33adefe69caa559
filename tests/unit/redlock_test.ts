import {
  assert,
  assertEquals,
  assertGreater,
  assertLessOrEqual,
  assertRejects,
  assertThrows,
} from "@std/assert";
import type { LockNode } from "../../src/quorum/lock_node.ts";
import { NODES_MAX, Redlock } from "../../src/redlock.ts";
import { close, REASON, rejection, settle, TTL, VALIDITY_MS } from "../support/cluster_calls.ts";
import { FakeCluster, FakeNode } from "../support/fake_nodes.ts";

// Construction

Deno.test("Redlock refuses to be made without nodes", () => {
  for (const nodes of [[], "n", undefined]) {
    assertEquals(
      assertThrows(() => new Redlock(nodes as LockNode[]), TypeError).message,
      "Cannot create lock client as 'nodes' must be a non-empty array",
    );
  }
});

Deno.test("Redlock refuses one node twice", () => {
  const [node] = new FakeCluster(1).nodes;
  assertEquals(
    assertThrows(() => new Redlock([node, node]), TypeError).message,
    "Cannot create lock client as two nodes have the name node0",
  );
});

Deno.test("Redlock refuses what is no node", () => {
  for (const node of [{}, null, undefined, "redis://h", { name: "n" }]) {
    assertEquals(
      assertThrows(() => new Redlock([node as LockNode]), TypeError).message,
      "Cannot create lock client as 'nodes' must contain only objects that implement LockNode",
    );
  }
});

Deno.test("Redlock refuses more nodes than it has seats for", () => {
  const { clock } = new FakeCluster(1);
  const nodes = Array.from(
    { length: NODES_MAX + 1 },
    (_, nodeIndex) => new FakeNode(`${nodeIndex}`, clock),
  );
  assertEquals(
    assertThrows(() => new Redlock(nodes), RangeError).message,
    "Cannot create lock client as 'nodes' must have at most 31 elements: current value is 32",
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

Deno.test("Redlock runs on the runtime's own clock without leaving a timer", async () => {
  const redlock = new Redlock(new FakeCluster().nodes, { ttlMs: 1_000 });
  assertEquals(await redlock.using("a", () => Promise.resolve(1)), 1);
  await redlock.close();
});

// Arguments of the calls

Deno.test("Redlock.acquire(), tryAcquire(), using() and inspect() refuse a resource that is none", async () => {
  const cluster = new FakeCluster();
  const { redlock } = cluster;
  for (const call of [redlock.acquire, redlock.tryAcquire]) {
    const error = await assertRejects(() => call.call(redlock, []), TypeError);
    assertEquals(error.message, "Cannot acquire lock as 'resource' must not be an empty array");
  }
  const using = await assertRejects(() => redlock.using("", () => {}), TypeError);
  assertEquals(
    using.message,
    "Cannot acquire lock as 'resource' must be a non-empty string or an array of non-empty strings",
  );
  for (const resource of ["", ["a"], undefined]) {
    const error = await assertRejects(() => redlock.inspect(resource as string), TypeError);
    assertEquals(
      error.message,
      "Cannot inspect lock as 'resource' must be a non-empty string",
    );
  }
  assertEquals(cluster.nodes.flatMap(({ calls }) => calls), []);
  await close(cluster);
});

Deno.test("Redlock.acquire() refuses an unknown option", async () => {
  const cluster = new FakeCluster();
  const options = { ttl: 5 } as object;
  const error = await assertRejects(() => cluster.redlock.acquire("a", options), TypeError);
  assert(
    error.message.startsWith(
      "Cannot acquire lock as option 'ttl' is unknown: valid options are ttlMs, ",
    ),
  );
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
