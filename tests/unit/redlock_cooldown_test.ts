import { assert, assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import { LockHeldError, LockLostError, QuorumError, RedlockError } from "../../src/errors.ts";
import type { RedlockOptions } from "../../src/options.ts";
import {
  close,
  locked,
  REASON,
  rejection,
  settle,
  TTL,
  VALIDITY_MS,
} from "../support/cluster_calls.ts";
import { FakeCluster } from "../support/fake_nodes.ts";

const COOLDOWN = { ttlMs: 1_000, cooldownMs: 5_000 };
/** By when a lock of {@linkcode TTL} has run out, and its keys are gone. */
const RUN_OUT_MS = 1_000;
/** When the client notices, after the lock was acquired: 2 % of it early, within limits. */
const NOTICED_MS = VALIDITY_MS - 25;

/** A client whose lock on `resource` has run out without a release, a second after it was acquired. */
async function ranOut(
  options: RedlockOptions = {},
  resource: string | string[] = "a",
): Promise<FakeCluster> {
  const cluster = new FakeCluster(3, { ...COOLDOWN, ...options });
  await settle(cluster, cluster.redlock.acquire(resource));
  await cluster.clock.advance(RUN_OUT_MS);
  assertEquals(cluster.eventTypes.at(-1), "lost");
  cluster.events.length = 0;
  for (const node of cluster.nodes) node.calls.length = 0;
  return cluster;
}

/** How often the first node was asked for a lock. */
function attempts(cluster: FakeCluster): number {
  return cluster.nodes[0].asked("acquire").length;
}

Deno.test("tryAcquire() after a lock ran out is undefined until the cool-down is over, and asks no node", async () => {
  const cluster = await ranOut();
  assertEquals(await settle(cluster, cluster.redlock.tryAcquire("a")), undefined);
  assertEquals(attempts(cluster), 0);
  const [denied, ...others] = cluster.events;
  assertEquals(others, []);
  assert(denied.type === "denied");
  assertEquals([denied.reason, denied.attempts, denied.votes], ["held", 0, []]);
  await cluster.clock.advance(NOTICED_MS + COOLDOWN.cooldownMs - RUN_OUT_MS);
  const lock = await settle(cluster, cluster.redlock.tryAcquire("a"));
  assert(lock?.held);
  await close(cluster);
});

Deno.test("tryAcquire() without cooldownMs takes a lock again that ran out", async () => {
  const cluster = await ranOut({ cooldownMs: undefined });
  assert(await settle(cluster, cluster.redlock.tryAcquire("a")));
  await close(cluster);
});

Deno.test("acquire() waits for the cool-down within waitMs", async () => {
  const cluster = await ranOut();
  const startMs = cluster.clock.monotonicMs();
  const lock = await settle(cluster, cluster.redlock.acquire("a"), 10_000);
  assert(lock.held);
  const waitedMs = cluster.clock.monotonicMs() - startMs;
  assert(
    Math.abs(waitedMs - (COOLDOWN.cooldownMs - (RUN_OUT_MS - NOTICED_MS))) <= 20,
    `${waitedMs}`,
  );
  assertEquals(attempts(cluster), 1);
  assertEquals(cluster.eventTypes, ["attempt", "acquired"]);
  await close(cluster);
});

Deno.test("acquire() whose wait ends before the cool-down rejects, and says why", async () => {
  const cluster = await ranOut();
  const startMs = cluster.clock.monotonicMs();
  const error = await rejection(cluster, cluster.redlock.acquire("a", { waitMs: 300 }));
  assertEquals(cluster.clock.monotonicMs() - startMs, 300);
  assertInstanceOf(error, LockHeldError);
  assertEquals(
    error.message,
    'Cannot acquire lock "a": it is in its cooldown for another 4663 ms; waited 300 ms',
  );
  assert(error.cause instanceof Error && /'cooldownMs'.* \d+ ms$/u.test(error.cause.message));
  assertEquals([error.votes, attempts(cluster)], [[], 0]);
  const [denied] = cluster.events;
  assertEquals(cluster.eventTypes, ["denied"]);
  assert(denied.type === "denied" && denied.reason === "held" && denied.elapsedMs === 300);
  await close(cluster);
});

Deno.test("acquire() without waiting rejects at once during the cool-down", async () => {
  const cluster = await ranOut();
  const error = await rejection(cluster, cluster.redlock.acquire("a", { waitMs: 0 }));
  assertInstanceOf(error, LockHeldError);
  assert(error.cause instanceof Error);
  assertEquals([cluster.eventTypes, attempts(cluster)], [["denied"], 0]);
  await close(cluster);
});

Deno.test("using() waits for the cool-down, too", async () => {
  const cluster = await ranOut();
  const used = cluster.redlock.using("a", (lock) => lock.held);
  assertEquals(await settle(cluster, used, 10_000), true);
  await close(cluster);
});

Deno.test("a cool-down is ended by the call's signal, and leaves nothing", async () => {
  const cluster = await ranOut();
  const controller = new AbortController();
  const acquiring = cluster.redlock.acquire("a", { signal: controller.signal });
  cluster.clock.setTimer(() => controller.abort(REASON), 50);
  assertEquals(await rejection(cluster, acquiring), REASON);
  assertEquals(cluster.wheel.size, 0);
  await close(cluster);
});

Deno.test("a cool-down is ended by close()", async () => {
  const cluster = await ranOut();
  const acquiring = cluster.redlock.acquire("a", { waitMs: Infinity });
  const rejected = assertRejects(() => acquiring, RedlockError, "closed");
  await close(cluster);
  await rejected;
  assertEquals([cluster.wheel.size, cluster.clock.timersAlive], [0, 0]);
});

Deno.test("a cool-down is for each resource of the lock, and for calls that name one of them", async () => {
  const cluster = await ranOut({}, ["a", "b"]);
  const { redlock } = cluster;
  assertEquals(await settle(cluster, redlock.tryAcquire("b")), undefined);
  assertEquals(await settle(cluster, redlock.tryAcquire(["c", "a"])), undefined);
  assert(await settle(cluster, redlock.tryAcquire("c")));
  await close(cluster);
});

Deno.test("a cool-down is for the key: another keyPrefix is another resource", async () => {
  const cluster = await ranOut({ keyPrefix: "x:" });
  const { redlock } = cluster;
  assertEquals(await settle(cluster, redlock.tryAcquire("a")), undefined);
  assertEquals(await settle(cluster, redlock.tryAcquire("x:a", { keyPrefix: "" })), undefined);
  assert(await settle(cluster, redlock.tryAcquire("a", { keyPrefix: "y:" })));
  await close(cluster);
});

Deno.test("a cool-down binds this client alone", async () => {
  const cluster = await ranOut();
  const other = cluster.contender(TTL);
  assert(await settle(cluster, other.tryAcquire("a")));
  await settle(cluster, other.close());
  await close(cluster);
});

Deno.test("a cool-down that one call asked for binds calls that did not", async () => {
  const { cluster } = await locked(3);
  await settle(cluster, cluster.redlock.acquire("b", { cooldownMs: 500 }));
  await cluster.clock.advance(RUN_OUT_MS);
  assert(await settle(cluster, cluster.redlock.tryAcquire("a")));
  assertEquals(await settle(cluster, cluster.redlock.tryAcquire("b")), undefined);
  await close(cluster);
});

Deno.test("a lock that is released leaves no cool-down", async () => {
  const { cluster, lock } = await locked(3, COOLDOWN);
  assertEquals(await settle(cluster, lock.release()), true);
  assert(await settle(cluster, cluster.redlock.tryAcquire("a")));
  await close(cluster);
});

Deno.test("a lock that ran out and is released in time after all leaves no cool-down", async () => {
  const { cluster, lock } = await locked(3, COOLDOWN);
  await cluster.clock.advance(NOTICED_MS + 5);
  assertEquals(lock.held, false);
  assertEquals(await settle(cluster, cluster.redlock.tryAcquire("a")), undefined);
  assertEquals(await settle(cluster, lock.release()), true); // the keys were there still
  assert(await settle(cluster, cluster.redlock.tryAcquire("a")));
  await close(cluster);
});

Deno.test("a lock that was gone when it was released leaves a cool-down", async () => {
  const { cluster, lock } = await locked(3, COOLDOWN);
  for (const node of cluster.nodes) node.forget();
  assertEquals(await settle(cluster, lock.release()), false);
  assertEquals(await settle(cluster, cluster.redlock.tryAcquire("a")), undefined);
  await close(cluster);
});

Deno.test("a release that too few nodes answered leaves a cool-down from the end of the validity on", async () => {
  const { cluster, lock } = await locked(3, COOLDOWN);
  cluster.set("fail", 0, 1, 2);
  await cluster.clock.advance(100);
  assertInstanceOf(await rejection(cluster, lock.release()), QuorumError);
  cluster.set("answer", 0, 1, 2);
  await cluster.clock.advance(VALIDITY_MS - 100 + COOLDOWN.cooldownMs - 10);
  assertEquals(await settle(cluster, cluster.redlock.tryAcquire("a")), undefined);
  await cluster.clock.advance(10);
  assert(await settle(cluster, cluster.redlock.tryAcquire("a")));
  await close(cluster);
});

Deno.test("a lock that a majority forgot leaves a cool-down, and using() tells of the loss", async () => {
  const cluster = new FakeCluster(3, COOLDOWN);
  const used = cluster.redlock.using("a", async () => {
    for (const node of cluster.nodes) node.set("a", "other", 100);
    await cluster.clock.advance(600);
  });
  assertInstanceOf(await rejection(cluster, used), LockLostError);
  assertEquals(await settle(cluster, cluster.redlock.tryAcquire("a")), undefined);
  await close(cluster);
});

Deno.test("calls in line behind one that cools down get the same cause, or their turn", async () => {
  const cluster = await ranOut();
  const { redlock } = cluster;
  const first = redlock.acquire("a");
  const impatient = rejection(cluster, redlock.acquire("a", { waitMs: 100 }));
  const error = await impatient;
  assertInstanceOf(error, LockHeldError);
  assert(error.cause instanceof Error);
  const second = redlock.acquire("a");
  const lock = await settle(cluster, first, 10_000);
  await settle(cluster, lock.release());
  assert((await settle(cluster, second)).held);
  await close(cluster);
});

Deno.test("a call that waits for the same client's lock on more cools down when that one runs out", async () => {
  const cluster = new FakeCluster(3, COOLDOWN);
  await settle(cluster, cluster.redlock.acquire(["a", "b"]));
  const startMs = cluster.clock.monotonicMs();
  const lock = await settle(cluster, cluster.redlock.acquire("a"), 10_000);
  assert(lock.held);
  assert(cluster.clock.monotonicMs() - startMs >= NOTICED_MS + COOLDOWN.cooldownMs - 20);
  await close(cluster);
});

Deno.test("tryAcquire() gives back what it won if a lock of this client ran out meanwhile", async () => {
  const cluster = new FakeCluster(3, COOLDOWN);
  await settle(cluster, cluster.redlock.acquire("a"));
  await cluster.clock.advance(NOTICED_MS - 10);
  for (const node of cluster.nodes) node.forget(); // their clocks are ahead, say
  for (const node of cluster.nodes) node.replyMs = 20;
  const trying = cluster.redlock.tryAcquire("a");
  assertEquals(await settle(cluster, trying), undefined);
  assertEquals(attempts(cluster), 2); // it was asked for, and granted
  await cluster.clock.advance(100);
  assertEquals(cluster.holders("a"), [undefined, undefined, undefined]);
  await close(cluster);
});
