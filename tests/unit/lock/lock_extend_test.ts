import { assert, assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import { FAILED } from "../../../src/quorum/outcome.ts";
import { LockLostError, QuorumError } from "../../../src/errors.ts";
import type { ExtendOptions } from "../../../src/lock/lock.ts";
import { Cluster, locked, test, TTL_MS, VALIDITY_MS } from "../../support/cluster.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";

test.locked("Lock.extend() gives a new validity, counted from before its first byte", async ({ cluster, lock }) => {
  await cluster.advance(500);
  for (const node of cluster.nodes) node.replyMs = 10;
  await cluster.settle(lock.extend());
  assertEquals([lock.remainingMs(), lock.extensions], [VALIDITY_MS - 10, 1]);
  assertEquals(cluster.holders(), Array(3).fill(lock.value));
  assertEquals(cluster.nodes.map((node) => node.lifeMs()), [990, 990, 990]);
  const event = cluster.events.at(-1);
  assert(event?.type === "extended");
  const { extensions, elapsedMs, remainingMs } = event;
  assertEquals([extensions, elapsedMs, remainingMs], [1, 10, VALIDITY_MS - 10]);
  await cluster.advance(900);
  assertEquals([lock.held, lock.signal.aborted], [true, false]);
});

Deno.test("Lock.extend() reads the clocks when it is called, before its first byte, and after the answers", async () => {
  const cluster = new Cluster(3, { onEvent: undefined });
  const lock = await cluster.lock();
  let readings = 0;
  const wallMs = cluster.clock.wallMs.bind(cluster.clock);
  cluster.clock.wallMs = () => {
    readings++;
    return wallMs();
  };
  await cluster.settle(lock.extend());
  assertEquals([readings, lock.extensions], [3, 1]);
});

test.locked("Lock.extend() refuses options of a wrong type or out of range, and leaves the lock as it is", async ({ lock }) => {
  for (
    const [options, Class, message] of [
      [
        { ttlMs: 5 },
        RangeError,
        "'ttlMs' must be an integer from 10 to 86400000: current value is 5",
      ],
      [{ ttlMs: "5" }, TypeError, "'ttlMs' must be a number: current type is 'string'"],
      [
        5_000,
        TypeError,
        "'options' must be an object: current type is 'number', pass { ttlMs: 5000 } for a TTL",
      ],
      [null, TypeError, "'options' must be an object: current type is 'null'"],
      [{ ttl: 5_000 }, TypeError, "option 'ttl' is unknown: valid options are ttlMs, signal"],
      [{ signal: {} }, TypeError, "'signal' must be an AbortSignal: current type is 'Object'"],
    ] as const
  ) {
    const error = await assertRejects(() => lock.extend(options as ExtendOptions));
    assertInstanceOf(error, Class);
    assertEquals(error.message, `Cannot extend lock as ${message}`);
  }
  assertEquals([lock.held, lock.remainingMs(), lock.extensions], [true, VALIDITY_MS, 0]);
});

test.locked("Lock.extend() does not bring back a lock whose validity ended before its grants came", async ({ cluster, lock }) => {
  await cluster.advance(500);
  for (const node of cluster.nodes) node.replyMs = 20;
  const rejected = assertRejects(() => lock.extend({ ttlMs: 10_000 }), LockLostError);
  await runMicrotasks();
  cluster.clock.block(600); // the old validity is over, the new one would not be
  await cluster.settle(rejected);
  assertEquals([lock.held, lock.extensions, lock.signal.aborted], [false, 0, true]);
  await cluster.advance(10);
  assertEquals(cluster.holders(), [undefined, undefined, undefined]);
});

test.locked("Lock.extend() that is granted when the lock was released meanwhile rejects, and counts for nothing", async ({ cluster, lock }) => {
  for (const node of cluster.nodes) node.replyMs = 20;
  const rejected = assertRejects(() => lock.extend(), LockLostError);
  await runMicrotasks();
  const releasing = lock.release();
  assertEquals((await cluster.settle(rejected)).reason, "released");
  await cluster.settle(releasing);
  assertEquals([lock.extensions, cluster.eventTypes.slice(-2)], [0, ["acquired", "released"]]);
});

test.locked("Lock.extend() that is granted after a longer one does not shorten the validity", async ({ cluster, lock }) => {
  for (const node of cluster.nodes) node.replyMs = 50;
  const shorter = lock.extend();
  await runMicrotasks();
  for (const node of cluster.nodes) node.replyMs = 10;
  await cluster.settle(Promise.all([lock.extend({ ttlMs: 5 * TTL_MS }), shorter]));
  assertEquals([lock.extensions, lock.remainingMs() > 4 * TTL_MS], [2, true]);
});

Deno.test("Lock.extend() that never succeeds settles, even if the lock extends itself all the while", async () => {
  const { cluster, lock } = await locked(3, { autoExtend: true });
  for (const node of cluster.nodes) {
    node.instead.extend = (request, nodeIndex) => {
      if (request.ttlMs !== 5_000) node.take("extend", request, nodeIndex);
      else request.answer(nodeIndex, FAILED, new Error("no"));
    };
  }
  const startMs = cluster.nowMs;
  const extending = assertRejects(() => lock.extend({ ttlMs: 5_000 }), QuorumError);
  const error = await cluster.settle(extending);
  assertEquals(
    error.message,
    'Cannot extend lock "a": 0 of 3 nodes extended it, 3 failed, 2 are needed; first error: node0: no',
  );
  assertEquals([lock.held, cluster.nowMs - startMs <= 2 * VALIDITY_MS], [true, true]);
});

test.locked("Lock.extend() fails at once if more than N - quorum nodes refuse for good, and the lock is held on", async ({ cluster, lock }) => {
  for (const [index, node] of cluster.nodes.entries()) {
    const error = Object.assign(new Error("no right"), { permanent: index > 0 });
    node.instead.extend = (request, nodeIndex) => request.answer(nodeIndex, FAILED, error);
  }
  const { message } = await assertRejects(() => lock.extend(), QuorumError);
  assertEquals(
    [message, lock.remainingMs()],
    [
      'Cannot extend lock "a": 0 of 3 nodes extended it, 3 failed, 2 are needed; permanent error: node1: no right',
      VALIDITY_MS,
    ],
  );
});

for (const mode of ["hang", "fail"] as const) {
  Deno.test(`an attempt and extensions wait no longer than the lock can be valid if nodes ${mode}`, async () => {
    const cluster = new Cluster(3, { nodeTimeoutMs: 5_000, waitMs: 0, autoExtend: false });
    const lock = await cluster.lock();
    cluster.set(mode);
    const attempting = cluster.redlock.acquire("b").catch((error) => error);
    assertInstanceOf(await cluster.rejection(lock.extend(), VALIDITY_MS), LockLostError);
    assertInstanceOf(await cluster.settle(attempting, 1), QuorumError);
  });
}

test.locked("Lock.extend() asks for keys that live as long as it claims after a longer extension", async ({ cluster, lock }) => {
  await cluster.settle(lock.extend({ ttlMs: 10 * TTL_MS }));
  await cluster.settle(lock.extend());
  const [{ ttlMs }] = cluster.nodes[0].asked("extend").slice(-1);
  assert(ttlMs > 9 * TTL_MS, `${ttlMs}`);
});
