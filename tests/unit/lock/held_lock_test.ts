import { assert, assertEquals, assertInstanceOf, assertStrictEquals } from "@std/assert";
import { LockLostError, QuorumError } from "../../../src/errors.ts";
import { extend } from "../../../src/lock/renewal.ts";
import { VALIDITY_MS } from "../../support/cluster_calls.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { CAUSE, locked } from "../../support/hold_bench.ts";

// Its end by the clock

for (const [ttlMs, endMs] of [[10, 5], [100, 93], [500, 469], [1_000, 963], [60_000, 59_373]]) {
  Deno.test(`HeldLock of ${ttlMs} ms aborts its signal ${endMs} ms after it began`, async () => {
    const { cluster, held } = await locked(3, { ttlMs });
    const { signal } = held;
    await cluster.clock.advance(endMs - 1);
    assertEquals([signal.aborted, held.held, held.active], [false, true, true]);
    await cluster.clock.advance(1);
    assertEquals([signal.aborted, held.held, held.active], [true, false, false]);
    await cluster.clock.advance(ttlMs - endMs);
    assertEquals(cluster.wheel.size, 0);
  });
}

Deno.test("HeldLock.lostError tells of an end that no timer could tell yet, and has everybody told", async () => {
  const { cluster, held } = await locked();
  assertEquals(held.lostError, undefined);
  cluster.clock.block(VALIDITY_MS - 1);
  assertEquals([held.lostError, held.held], [undefined, true]);
  cluster.clock.block(1);
  assertEquals([held.held, held.active], [false, true]);
  const error = held.lostError;
  assertInstanceOf(error, LockLostError);
  assertEquals(error.message, 'Cannot keep lock "a": its validity has ended');
  assertStrictEquals(held.lostError, error);
  assertStrictEquals(held.signal.reason, error);
  assertEquals(cluster.eventTypes, ["lost"]);
  await cluster.clock.advance(1_000);
  assertEquals(cluster.eventTypes, ["lost"]);
});

Deno.test("HeldLock.lostError of a lock that was released is none, however late it is asked", async () => {
  const bench = await locked();
  await bench.settle(bench.held.release());
  bench.cluster.clock.block(5_000);
  assertEquals(bench.held.lostError, undefined);
});

Deno.test("HeldLock is not ended by a wake-up that comes early", async () => {
  const { cluster, held } = await locked();
  await cluster.clock.advance(100);
  cluster.clock.stepWall(300); // the wheel wakes everybody up
  await cluster.clock.advance(300);
  assertEquals([held.held, held.remainingMs()], [true, VALIDITY_MS - 700]);
  await cluster.clock.advance(300);
  assertEquals([held.held, held.signal.aborted], [false, true]);
});

// Losing it

Deno.test("HeldLock.lose() ends the lock at once, takes its keys back and tells why", async () => {
  const { cluster, held } = await locked();
  const { signal } = held;
  await cluster.clock.advance(100);
  held.lose(CAUSE);
  assertEquals([held.held, held.remainingMs(), held.active], [false, 0, false]);
  assertInstanceOf(signal.reason, LockLostError);
  assertEquals(signal.reason.message, 'Cannot keep lock "a": the test wants it so');
  assertStrictEquals(signal.reason.cause, CAUSE);
  assertEquals(signal.reason.votes, held.round.votes);
  assertEquals(cluster.events, [{ type: "lost", resources: ["a"], cause: CAUSE, heldMs: 100 }]);
  assertEquals(cluster.wheel.size, 0);
  await runMicrotasks();
  assertEquals(cluster.holders("a"), [undefined, undefined, undefined]);
});

Deno.test("HeldLock.lose() a second time changes nothing", async () => {
  const bench = await locked();
  bench.held.lose(CAUSE);
  const { reason } = bench.held.signal;
  bench.held.lose(new Error("another"));
  assertStrictEquals(bench.held.signal.reason, reason);
  assertEquals([bench.cluster.eventTypes, bench.releases], [["lost"], [1, 1, 1]]);
});

Deno.test("HeldLock.lose() of a lock that is being released changes nothing", async () => {
  const bench = await locked();
  const releasing = bench.held.release();
  assertEquals(bench.held.active, false);
  bench.held.lose(CAUSE);
  assertEquals([bench.held.signal.aborted, bench.held.lostError], [false, undefined]);
  assertEquals(await bench.settle(releasing), true);
  assertEquals([bench.cluster.eventTypes, bench.releases], [["released"], [1, 1, 1]]);
});

Deno.test("HeldLock.lose() tells the signal before the listener, and both find the lock gone", async () => {
  const order: unknown[] = [];
  const bench = await locked(1, {
    onEvent: ({ type }) => {
      if (type === "lost") order.push(["listener", bench.held.held]);
    },
  });
  const { held } = bench;
  held.signal.addEventListener("abort", () => order.push(["signal", held.held]));
  held.lose(CAUSE);
  assertEquals(order, [["signal", false], ["listener", false]]);
});

Deno.test("HeldLock is lost when the client closes, which it says somebody waited for", async () => {
  const { cluster, held } = await locked();
  assertEquals(cluster.wheel.announceClose(), true);
  assertEquals(
    held.signal.reason.message,
    'Cannot keep lock "a": the lock client was closed',
  );
  await runMicrotasks();
  assertEquals(cluster.holders("a"), [undefined, undefined, undefined]);
});

// A caller's reason

Deno.test("HeldLock.abort() aborts the signal, and the lock stands", async () => {
  const { cluster, held } = await locked();
  held.abort(CAUSE); // before anybody asked for the signal
  assertStrictEquals(held.signal.reason, CAUSE);
  assertEquals([held.held, held.active, held.lostError], [true, true, undefined]);
  assertEquals(cluster.eventTypes, []);
});

Deno.test("HeldLock.abort() keeps its reason when the lock is lost later", async () => {
  const { cluster, held } = await locked();
  held.abort(CAUSE);
  await cluster.clock.advance(1_000);
  assertStrictEquals(held.signal.reason, CAUSE);
  assertInstanceOf(held.lostError, LockLostError);
  assertEquals(cluster.eventTypes, ["lost"]);
});

// What is left on the nodes

Deno.test("HeldLock that ran out keeps others out until its TTL is over, and then takes its keys back", async () => {
  const bench = await locked();
  const { clock } = bench.cluster;
  await clock.advance(VALIDITY_MS - 1);
  assertEquals([bench.held.active, bench.releases], [false, [0, 0, 0]]);
  assert(bench.cluster.holders("a").every((holder) => holder === bench.held.round.value));
  await clock.advance(1_000 - VALIDITY_MS + 1);
  assertEquals(bench.releases, [1, 1, 1]);
  assertEquals([bench.cluster.wheel.size, clock.timersAlive], [0, 0]);
});

Deno.test("HeldLock that ran out asks no node that denied it", async () => {
  const bench = await locked(3, {}, (cluster) => cluster.nodes[0].set("a", "other", 500));
  await bench.cluster.clock.advance(1_000);
  assertEquals(bench.releases, [0, 1, 1]);
});

Deno.test("HeldLock that ran out leaves nothing on a node that did not answer the acquiring", async () => {
  const bench = await locked(5, {}, (cluster) => cluster.set("hang", 3, 4));
  await bench.cluster.clock.advance(1_000);
  for (const node of bench.cluster.nodes) node.resume(); // two set the key only now
  await runMicrotasks();
  assertEquals(bench.cluster.holders("a"), Array(5).fill(undefined));
});

Deno.test("HeldLock that ran out leaves no key that an extension without answers prolonged", async () => {
  const bench = await locked();
  for (const node of bench.cluster.nodes.slice(0, 2)) node.modes.extend = "lose-reply";
  bench.extend(60_000);
  await bench.cluster.clock.advance(1_000);
  await runMicrotasks();
  // A node that cannot be reached keeps the release for as long as a key may live.
  const releases = bench.cluster.nodes.map((node) => node.asked("release")[0].ttlMs);
  assertEquals(releases, [60_000, 60_000, 60_000]);
  assertEquals(bench.cluster.holders("a"), [undefined, undefined, undefined]);
});

Deno.test("HeldLock that ran out while the process stood still takes its keys back at once", async () => {
  const bench = await locked();
  bench.cluster.clock.block(2_000);
  await bench.cluster.clock.advance(0);
  assertEquals(bench.releases, [1, 1, 1]);
});

Deno.test("HeldLock that ran out takes its keys back as the client closes", async () => {
  const { cluster, held } = await locked();
  await cluster.clock.advance(VALIDITY_MS - 1);
  assertEquals([held.active, cluster.wheel.announceClose()], [false, true]);
  await runMicrotasks();
  assertEquals(cluster.holders("a"), [undefined, undefined, undefined]);
});

// Extensions

Deno.test("HeldLock that is lost while an extension is on its way tells that extension's votes", async () => {
  const bench = await locked(3, { nodeTimeoutMs: 400 });
  await bench.cluster.clock.advance(800);
  bench.cluster.set("fail", 0);
  bench.cluster.set("hang", 1, 2);
  bench.extend();
  await bench.cluster.clock.advance(200);
  const { lostError } = bench.held;
  assertEquals(
    lostError?.message,
    'Cannot keep lock "a": its validity has ended before an extension succeeded: 0 of 3 nodes extended it, 1 failed, 2 are needed; first error: node0 is down',
  );
  assertEquals(lostError?.votes.map(({ node, outcome }) => [node, outcome]), [["node0", "failed"]]);
  assert(lostError?.cause instanceof Error);
  assertInstanceOf(lostError.cause.cause, AggregateError);
  assertEquals(lostError.cause.cause.message, "node0: node0 is down");
});

Deno.test("HeldLock that is lost after an extension succeeded tells the votes that won it", async () => {
  const bench = await locked();
  await bench.settle(extend(bench.held, 1_000));
  await bench.cluster.clock.advance(1_000);
  assertEquals(bench.held.lostError?.message, 'Cannot keep lock "a": its validity has ended');
  assertStrictEquals(bench.held.lostError?.votes.length, 3);
  assertEquals(bench.held.lostError?.votes, bench.held.round.votes);
});

Deno.test("HeldLock.prolong() moves the end, and the timer with it", async () => {
  const bench = await locked();
  const { cluster, held } = bench;
  const { signal } = held;
  await cluster.clock.advance(900);
  await bench.settle(extend(held, 1_000));
  await cluster.clock.advance(VALIDITY_MS - 26);
  assertEquals([held.held, signal.aborted], [true, false]);
  await cluster.clock.advance(1);
  assertEquals([held.held, signal.aborted], [false, true]);
  assert(cluster.events.at(-1)?.type === "lost");
  assertEquals((cluster.events.at(-1) as { heldMs: number }).heldMs, 900 + VALIDITY_MS - 25);
});

Deno.test("HeldLock without a listener is lost and released all the same", async () => {
  const lost = await locked(1, { onEvent: undefined });
  lost.held.lose(CAUSE);
  const released = await locked(1, { onEvent: undefined });
  assertEquals(await released.settle(released.held.release()), true);
  const failing = await locked(1, { onEvent: undefined });
  failing.cluster.set("fail", 0);
  const error = await failing.settle(failing.held.release().catch((error) => error));
  assertInstanceOf(error, QuorumError);
  assertEquals(lost.held.held, false);
});
