import { assert, assertEquals, assertInstanceOf, assertStrictEquals } from "@std/assert";
import { LockHeldError, LockLostError, QuorumError, type RedlockError } from "../../src/errors.ts";
import type { Lock } from "../../src/lock/lock.ts";
import { FAILED, GRANTED } from "../../src/quorum/outcome.ts";
import type { RedlockOptions } from "../../src/options.ts";
import { Cluster, locked, MARGIN_MS, REASON, TTL_MS, VALIDITY_MS } from "../support/cluster.ts";

const COOLDOWN_MS = 5_000;
/** When the client notices that a lock ran out, after it was acquired. */
const NOTICED_MS = VALIDITY_MS - MARGIN_MS;

/** A client whose lock has run out without a release, a TTL after it was acquired. */
async function ranOut(
  options: RedlockOptions = {},
  resource: string | string[] = "a",
): Promise<Cluster> {
  const cluster = new Cluster(3, { cooldownMs: COOLDOWN_MS, ...options });
  await cluster.lock({}, resource);
  await cluster.advance(TTL_MS);
  assertEquals(cluster.eventTypes.at(-1), "lost");
  cluster.events.length = 0;
  for (const node of cluster.nodes) node.calls.length = 0;
  return cluster;
}

Deno.test("tryAcquire() after a lock ran out is undefined until the cooldown is over, and asks no node", async () => {
  const cluster = await ranOut();
  assertEquals([await cluster.try(), cluster.steps], [undefined, ["", "", ""]]);
  const [denied, ...others] = cluster.events;
  assertEquals(others, []);
  assert(denied.type === "denied");
  assertEquals([denied.reason, denied.attempts, denied.votes], ["held", 0, []]);
  await cluster.advance(NOTICED_MS + COOLDOWN_MS - TTL_MS);
  assert((await cluster.try())?.held);
});

Deno.test("acquire() and using() wait for the cooldown within waitMs", async () => {
  for (const how of ["exclusive", "shared", "using"] as const) {
    const cluster = await ranOut();
    const { redlock } = cluster;
    const startMs = cluster.nowMs;
    const acquiring = how === "using"
      ? redlock.using("a", (lock) => lock)
      : redlock.acquire("a", { mode: how });
    await cluster.settle(acquiring, 10_000);
    const waitedMs = cluster.nowMs - startMs;
    assert(Math.abs(waitedMs - (COOLDOWN_MS - TTL_MS + NOTICED_MS)) <= 20, `${waitedMs}`);
    assertEquals(cluster.asked(), [1, 1, 1]);
    assertEquals(cluster.eventTypes.slice(0, 2), ["attempt", "acquired"]);
  }
});

for (const [waitMs, leftMs, waited] of [[300, 4_663, "; waited 300 ms"], [0, 4_963, ""]] as const) {
  Deno.test(`acquire() with a waitMs of ${waitMs} during the cooldown rejects then, and says why`, async () => {
    const cluster = await ranOut();
    const startMs = cluster.nowMs;
    const error = await cluster.refusal({ waitMs });
    assertEquals(cluster.nowMs - startMs, waitMs);
    assertInstanceOf(error, LockHeldError);
    assertEquals(
      error.message,
      `Cannot acquire lock "a": it is in its cooldown ('cooldownMs') for another ${leftMs} ms${waited}`,
    );
    assertEquals([error.votes, cluster.asked()], [[], [0, 0, 0]]);
    const [denied] = cluster.events;
    assertEquals(cluster.eventTypes, ["denied"]);
    assert(denied.type === "denied" && denied.reason === "held" && denied.elapsedMs === waitMs);
  });
}

Deno.test("a call whose nodes refuse for good waits for a cooldown that began during its attempt", async () => {
  const cluster = new Cluster(3, { cooldownMs: COOLDOWN_MS });
  await cluster.lock();
  await cluster.advance(NOTICED_MS - 10);
  const error = Object.assign(new Error("wrong password"), { permanent: true });
  for (const node of cluster.nodes) {
    node.instead.acquire = (request, nodeIndex) => {
      cluster.clock.setTimer(() => request.answer(nodeIndex, FAILED, error), 20);
    };
  }
  const startMs = cluster.nowMs;
  assertInstanceOf(await cluster.refusal({ waitMs: 20_000 }, ["b", "a"]), QuorumError);
  assertEquals(cluster.nowMs - startMs, 10 + COOLDOWN_MS + 20);
});

Deno.test("a call that was denied before a cooldown joins the queues with its first attempt after it, and is notified", async () => {
  const cluster = new Cluster(3, { cooldownMs: COOLDOWN_MS });
  await cluster.lock({}, ["a", "b"]);
  const acquiring = cluster.redlock.acquire("a", { waitMs: 50_000 });
  await cluster.advance(TTL_MS);
  const [node] = cluster.nodes;
  const asked = node.asked("acquire").length;
  assertEquals(node.queue("a"), []); // it leaves the queues meanwhile
  cluster.occupy("a");
  await cluster.advance(10_000);
  assertEquals(node.asked("acquire")[asked].priority, "in-order");
  cluster.free("a");
  assert((await cluster.settle(acquiring, 50)).held);
});

Deno.test("a cooldown is ended by the call's signal and by close(), and leaves nothing", async () => {
  for (const how of ["abort", "close"]) {
    const cluster = await ranOut();
    const controller = new AbortController();
    const { signal } = controller;
    const end = how === "abort" ? () => controller.abort(REASON) : () => cluster.redlock.close();
    cluster.clock.setTimer(end, 50);
    const startMs = cluster.nowMs;
    const error = await cluster.refusal({ signal, waitMs: Infinity });
    if (how === "abort") assertStrictEquals(error, REASON);
    else assertEquals((error as RedlockError).code, "CLOSED");
    assertEquals([cluster.nowMs - startMs, ...cluster.timers], [50, 0, 0]);
  }
});

Deno.test("a cooldown is for each key of the lock, and for calls of this client that want one of them", async () => {
  const cluster = await ranOut({ keyPrefix: "x:" }, ["a", "b"]);
  for (
    const [resource, options, free] of [
      ["b", {}, false],
      [["c", "a"], {}, false],
      [["a", "c"], {}, false],
      ["c", {}, true],
      ["x:a", { keyPrefix: "" }, false],
      ["a", { keyPrefix: "y:" }, true],
    ] as const
  ) {
    assertEquals(await cluster.try(options, resource) !== undefined, free, `${resource}`);
  }
  assert(await cluster.settle(cluster.peer({ keyPrefix: "x:" }).tryAcquire("a")));
});

/** How a lock ends, and whether that begins a cooldown. */
const ENDS: [how: string, begins: boolean, end: (cluster: Cluster, lock: Lock) => unknown][] = [
  ["is released", false, async (cluster, lock) => {
    assertEquals(await cluster.settle(lock.release()), true);
  }],
  ["ran out before it is released", true, async (cluster, lock) => {
    await cluster.advance(NOTICED_MS + 5);
    assertEquals([lock.held, await cluster.try()], [false, undefined]);
    assertEquals(await cluster.settle(lock.release()), true); // the keys were still there
  }],
  ["is gone when it is released", true, async (cluster, lock) => {
    cluster.forget();
    assertEquals(await cluster.settle(lock.release()), false);
  }],
  ["is gone from a majority when it is extended", true, async (cluster, lock) => {
    cluster.occupy("a", 100);
    assertInstanceOf(await cluster.rejection(lock.extend()), LockLostError);
    await cluster.advance(101);
  }],
];

for (const [how, begins, end] of ENDS) {
  Deno.test(`a lock that ${how} leaves ${begins ? "a" : "no"} cooldown`, async () => {
    const { cluster, lock } = await locked(3, { cooldownMs: COOLDOWN_MS });
    await end(cluster, lock);
    assertEquals(await cluster.try() === undefined, begins);
  });
}

Deno.test("a cooldown is no longer because the lock that was lost is released later", async () => {
  const { cluster, lock } = await locked(3, { cooldownMs: COOLDOWN_MS });
  await cluster.advance(TTL_MS);
  assertEquals(await cluster.settle(lock.release()), false);
  await cluster.advance(NOTICED_MS + COOLDOWN_MS - TTL_MS);
  assert(await cluster.try());
});

Deno.test("adopt() gets a lock in its cooldown at once", async () => {
  const cluster = await ranOut();
  const given = await cluster.settle(cluster.peer().acquire("a"));
  const adopting = cluster.redlock.adopt(given.handOver(), { waitMs: 0 });
  assert((await cluster.settle(adopting)).held);
});

Deno.test("a call for any one gets the one that is not in its cooldown", async () => {
  const cluster = await ranOut();
  assertEquals((await cluster.try({ any: true }, ["a", "b"]))?.resources, ["b"]);
  assertEquals(
    (await cluster.refusal({ any: true, waitMs: 0 }, ["a"])).message,
    "Cannot acquire any of lock \"a\": each is held or in its cooldown ('cooldownMs') for another " +
      "4963 ms",
  );
});

Deno.test("a release that too few nodes answered leaves a cooldown from the end of the validity on", async () => {
  const { cluster, lock } = await locked(3, { cooldownMs: COOLDOWN_MS });
  cluster.set("fail");
  await cluster.advance(100);
  assertInstanceOf(await cluster.rejection(lock.release()), QuorumError);
  cluster.set("answer");
  await cluster.advance(VALIDITY_MS - 100 + COOLDOWN_MS - 10);
  assertEquals(await cluster.try(), undefined);
  await cluster.advance(10);
  assert(await cluster.try());
});

Deno.test("a call for any one that has waited for cooldowns asks for the one whose cooldown is over first", async () => {
  const cluster = new Cluster(3, { cooldownMs: COOLDOWN_MS });
  for (const name of ["b", "a"]) {
    await cluster.lock({}, name);
    await cluster.advance(100);
  }
  await cluster.advance(TTL_MS);
  const acquiring = cluster.redlock.acquire(["a", "b"], { any: true, waitMs: 20_000 });
  assertEquals((await cluster.settle(acquiring, 10_000)).resources, ["b"]);
  assertEquals(cluster.asked(), [3, 3, 3]);
});

Deno.test("a call that may not wait says of a lock whose cooldown began during its attempt that it is in that", async () => {
  const cluster = new Cluster(3, { cooldownMs: COOLDOWN_MS });
  await cluster.lock();
  await cluster.advance(NOTICED_MS - 10);
  for (const node of cluster.nodes) {
    node.instead.acquire = (request, nodeIndex) => {
      cluster.clock.setTimer(() => request.answer(nodeIndex, GRANTED), 20);
    };
  }
  assertInstanceOf(await cluster.refusal({ waitMs: 0 }, ["b", "a"]), LockHeldError);
});
