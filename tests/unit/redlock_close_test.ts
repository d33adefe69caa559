import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertRejects,
  assertStrictEquals,
} from "@std/assert";
import { LockLostError, RedlockError } from "../../src/errors.ts";
import type { RedlockEvent } from "../../src/events.ts";
import { handOverToken } from "../../src/lock/hand_over_token.ts";
import { ROUNDS_MAX } from "../../src/quorum/round.ts";
import type { Redlock } from "../../src/redlock.ts";
import { Cluster, locked, OTHER_VALUE, REASON, test, TTL_MS } from "../support/cluster.ts";
import { runMicrotasks } from "../support/fake_clock.ts";

Deno.test("close() is idempotent, closes each node once, asks none of them afterwards and leaves no timer", async () => {
  const { cluster, lock } = await locked(3, { driftFactor: 0.5 });
  await cluster.advance(TTL_MS / 2); // it is lost, and its keys are left to the end of their TTL
  const closing = cluster.redlock.close();
  assertStrictEquals(cluster.redlock.close(), closing);
  await cluster.settle(closing);
  await cluster.redlock[Symbol.asyncDispose]();
  assertEquals([await lock.release(), ...cluster.asked("release")], [false, 1, 1, 1]);
  assertEquals(cluster.nodes.map(({ closed }) => closed), [1, 1, 1]);
  assertEquals([cluster.clock.timers, cluster.wheel.size], [0, 0]);
});

test("close() waits for the answers to releases, in a crowd too", async (cluster) => {
  const acquire = (_: unknown, index: number) => cluster.redlock.acquire(`lock ${index}`);
  const locks = await cluster.settle(Promise.all(Array.from({ length: ROUNDS_MAX + 2 }, acquire)));
  for (const node of cluster.nodes) node.replyMs = 10;
  const releasing = Promise.all(locks.map((lock) => lock.release()));
  await cluster.settle(Promise.all([cluster.redlock.close(), releasing]), 20);
  assertEquals(new Set(await releasing), new Set([true]));
  assertEquals(cluster.clock.timers, 0);
});

Deno.test("close() settles although a node's own rejects or throws", async () => {
  const throws = () => {
    throw REASON;
  };
  for (const fail of [throws, () => Promise.reject(REASON)]) {
    const cluster = new Cluster(2);
    cluster.nodes[0].close = fail;
    await cluster.close();
    assertEquals([cluster.nodes[1].closed, cluster.clock.timers], [1, 0]);
  }
});

const CALLS: Record<string, (redlock: Redlock) => Promise<unknown>> = {
  "acquire()": (redlock) => redlock.acquire("hung"),
  "acquire() that polls": (redlock) => redlock.acquire("hung", { notify: false }),
  "tryAcquire()": (redlock) => redlock.tryAcquire("hung"),
  "using()": (redlock) => redlock.using("hung", () => assert(false)),
  "inspect()": (redlock) => redlock.inspect("hung"),
};

for (const [name, call] of Object.entries(CALLS)) {
  test(`close() rejects a pending ${name} with the votes so far, and takes back what it set`, async (cluster) => {
    cluster.set("hang", 1, 2);
    const pending = call(cluster.redlock);
    const rejected = assertRejects(() => pending, RedlockError);
    await runMicrotasks();
    const { nowMs } = cluster;
    await cluster.close();
    const error = await rejected;
    assertEquals([error.code, error.resources, cluster.nowMs], ["CLOSED", ["hung"], nowMs]);
    const outcomes = error.votes.map(({ outcome }) => outcome);
    assertEquals(outcomes, name === "inspect()" ? ["free", "failed", "failed"] : ["granted"]);
    assertEquals(cluster.clock.timers, 0);
    cluster.resume();
    await runMicrotasks();
    assertEquals(cluster.holders("hung"), Array(3).fill(undefined));
  });
}

test("close() ends an adoption that asks who has the keys, without a pause for the next attempt", async (cluster) => {
  cluster.nodes.forEach((node, index) => {
    node.set("a", index === 0 ? OTHER_VALUE : `${index}`); // a vote that is split
    node.modes.inspect = "hang";
  });
  const given = { value: OTHER_VALUE, ttlMs: 1_000, keptMs: 0, resources: ["a"] };
  const adopting = cluster.redlock.adopt(handOverToken(given));
  const ended = assertRejects(() => adopting, RedlockError, "the lock client is closed");
  await cluster.advance(1);
  const { nowMs } = cluster;
  await cluster.close();
  await ended;
  assertEquals(cluster.nowMs, nowMs);
});

for (const type of ["attempt", "acquired"]) {
  test(`close() by a listener of ${type} leaves a lock that is being adopted to be adopted`, async (cluster) => {
    const token = (await cluster.settle(cluster.peer().acquire("a"))).handOver();
    const events: string[] = [];
    const onEvent = (event: RedlockEvent) => {
      events.push(event.type);
      if (event.type === type) cluster.redlock.close();
    };
    const error = await cluster.rejection(cluster.redlock.adopt(token, { onEvent }));
    assertInstanceOf(error, RedlockError);
    assertEquals(error.message, 'Cannot adopt lock "a": the lock client is closed');
    assertEquals(events, ["attempt", "acquired", "handed-over"]);
    assert((await cluster.settle(cluster.peer().adopt(token))).held);
    await cluster.close();
  });
}

test.locked("close() lets a routine end; no release after it sets a timer", async ({ cluster, lock }) => {
  const routine = Promise.withResolvers<void>();
  const using = cluster.redlock.using("b", () => routine.promise);
  await runMicrotasks();
  await cluster.close();
  routine.resolve();
  assertInstanceOf(await cluster.rejection(using), LockLostError);
  assertEquals(await lock.release(), false);
  assertEquals(cluster.clock.timers, 0);
});
