import { assert, assertEquals, assertInstanceOf, assertStrictEquals } from "@std/assert";
import { LockLostError, QuorumError } from "../../../src/errors.ts";
import { extend } from "../../../src/lock/renewal.ts";
import { VALIDITY_MS } from "../../support/cluster_calls.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { CAUSE, locked } from "../../support/hold_bench.ts";

// Its end by the clock

for (const [ttlMs, endMs] of [[10, 5], [100, 93], [500, 469], [1_000, 963], [60_000, 59_373]]) {
  Deno.test(`Hold of ${ttlMs} ms aborts its signal ${endMs} ms after it began`, async () => {
    const { cluster, hold } = await locked(3, { ttlMs });
    const { signal } = hold;
    await cluster.clock.advance(endMs - 1);
    assertEquals([signal.aborted, hold.held, hold.standing], [false, true, true]);
    await cluster.clock.advance(1);
    assertEquals([signal.aborted, hold.held, hold.standing], [true, false, false]);
    assertEquals(cluster.wheel.size, 0);
  });
}

Deno.test("Hold.lostError tells of an end that no timer could tell yet, and has everybody told", async () => {
  const { cluster, hold } = await locked();
  assertEquals(hold.lostError, undefined);
  cluster.clock.block(VALIDITY_MS - 1);
  assertEquals([hold.lostError, hold.held], [undefined, true]);
  cluster.clock.block(1);
  assertEquals([hold.held, hold.standing], [false, true]);
  const error = hold.lostError;
  assertInstanceOf(error, LockLostError);
  assertEquals(error.message, 'Cannot keep lock "a": its validity has ended');
  assertStrictEquals(hold.lostError, error);
  assertStrictEquals(hold.signal.reason, error);
  assertEquals(cluster.eventTypes, ["lost"]);
  await cluster.clock.advance(1_000);
  assertEquals(cluster.eventTypes, ["lost"]);
});

Deno.test("Hold.lostError of a lock that was released is none, however late it is asked", async () => {
  const bench = await locked();
  await bench.settle(bench.hold.release());
  bench.cluster.clock.block(5_000);
  assertEquals(bench.hold.lostError, undefined);
});

Deno.test("Hold is not ended by a wake-up that comes early", async () => {
  const { cluster, hold } = await locked();
  await cluster.clock.advance(100);
  cluster.clock.stepWall(300); // the wheel wakes everybody up
  await cluster.clock.advance(300);
  assertEquals([hold.held, hold.remainingMs()], [true, VALIDITY_MS - 700]);
  await cluster.clock.advance(300);
  assertEquals([hold.held, hold.signal.aborted], [false, true]);
});

// Losing it

Deno.test("Hold.lose() ends the lock at once, takes its keys back and tells why", async () => {
  const { cluster, hold } = await locked();
  const { signal } = hold;
  await cluster.clock.advance(100);
  hold.lose(CAUSE);
  assertEquals([hold.held, hold.remainingMs(), hold.standing], [false, 0, false]);
  assertInstanceOf(signal.reason, LockLostError);
  assertEquals(signal.reason.message, 'Cannot keep lock "a": the test wants it so');
  assertStrictEquals(signal.reason.cause, CAUSE);
  assertEquals(signal.reason.votes, hold.round.votes);
  assertEquals(cluster.events, [{ type: "lost", resources: ["a"], cause: CAUSE, heldMs: 100 }]);
  assertEquals(cluster.wheel.size, 0);
  await runMicrotasks();
  assertEquals(cluster.holders("a"), [undefined, undefined, undefined]);
});

Deno.test("Hold.lose() a second time changes nothing", async () => {
  const bench = await locked();
  bench.hold.lose(CAUSE);
  const { reason } = bench.hold.signal;
  bench.hold.lose(new Error("another"));
  assertStrictEquals(bench.hold.signal.reason, reason);
  assertEquals([bench.cluster.eventTypes, bench.releases], [["lost"], [1, 1, 1]]);
});

Deno.test("Hold.lose() of a lock that is being released changes nothing", async () => {
  const bench = await locked();
  const releasing = bench.hold.release();
  assertEquals(bench.hold.standing, false);
  bench.hold.lose(CAUSE);
  assertEquals([bench.hold.signal.aborted, bench.hold.lostError], [false, undefined]);
  assertEquals(await bench.settle(releasing), true);
  assertEquals([bench.cluster.eventTypes, bench.releases], [["released"], [1, 1, 1]]);
});

Deno.test("Hold.lose() tells the signal before the listener, and both find the lock gone", async () => {
  const order: unknown[] = [];
  const bench = await locked(1, {
    onEvent: ({ type }) => {
      if (type === "lost") order.push(["listener", bench.hold.held]);
    },
  });
  const { hold } = bench;
  hold.signal.addEventListener("abort", () => order.push(["signal", hold.held]));
  hold.lose(CAUSE);
  assertEquals(order, [["signal", false], ["listener", false]]);
});

Deno.test("Hold is lost when the client closes, which it says somebody waited for", async () => {
  const { cluster, hold } = await locked();
  assertEquals(cluster.wheel.announceClose(), true);
  assertEquals(
    hold.signal.reason.message,
    'Cannot keep lock "a": the lock client was closed',
  );
  await runMicrotasks();
  assertEquals(cluster.holders("a"), [undefined, undefined, undefined]);
});

// A caller's reason

Deno.test("Hold.abort() aborts the signal, and the lock stands", async () => {
  const { cluster, hold } = await locked();
  hold.abort(CAUSE); // before anybody asked for the signal
  assertStrictEquals(hold.signal.reason, CAUSE);
  assertEquals([hold.held, hold.standing, hold.lostError], [true, true, undefined]);
  assertEquals(cluster.eventTypes, []);
});

Deno.test("Hold.abort() keeps its reason when the lock is lost later", async () => {
  const { cluster, hold } = await locked();
  hold.abort(CAUSE);
  await cluster.clock.advance(1_000);
  assertStrictEquals(hold.signal.reason, CAUSE);
  assertInstanceOf(hold.lostError, LockLostError);
  assertEquals(cluster.eventTypes, ["lost"]);
});

// What is left on the nodes

Deno.test("Hold that ran out asks no node that has answered", async () => {
  const bench = await locked();
  await bench.cluster.clock.advance(1_000);
  assertEquals(bench.releases, [0, 0, 0]);
});

Deno.test("Hold that ran out asks the nodes that did not answer the acquiring", async () => {
  const bench = await locked(5, {}, (cluster) => {
    cluster.nodes[3].modes.acquire = "fail";
    cluster.nodes[4].modes.acquire = "hang";
  });
  await bench.cluster.clock.advance(1_000);
  assertEquals(bench.releases, [0, 0, 0, 1, 1]);
});

Deno.test("Hold that ran out asks the nodes that did not answer the last extension", async () => {
  const bench = await locked();
  bench.cluster.nodes[2].modes.extend = "hang";
  await bench.settle(extend(bench.hold, 1_000));
  await bench.cluster.clock.advance(1_000);
  assertEquals(bench.releases, [0, 0, 1]);
  bench.cluster.nodes[2].resume(); // it fills the key in only now
  await runMicrotasks();
  assertEquals(bench.cluster.holders("a"), [undefined, undefined, undefined]);
});

Deno.test("Hold that ran out asks every node while an extension may have prolonged keys", async () => {
  const bench = await locked();
  for (const node of bench.cluster.nodes.slice(0, 2)) node.modes.extend = "lose-reply";
  bench.extend();
  await bench.cluster.clock.advance(VALIDITY_MS);
  assertEquals(bench.releases, [1, 1, 1]);
  await runMicrotasks();
  assertEquals(bench.cluster.holders("a"), [undefined, undefined, undefined]);
});

Deno.test("Hold that ran out asks every node after a long extension failed, though a shorter one succeeded since", async () => {
  const bench = await locked();
  const { nodes, clock } = bench.cluster;
  const controller = new AbortController();
  for (const node of nodes) node.modes.extend = "lose-reply";
  extend(bench.hold, 60_000, controller.signal).catch(() => {});
  await clock.advance(100);
  controller.abort();
  for (const node of nodes) delete node.modes.extend;
  await bench.settle(extend(bench.hold, 1_000));
  await clock.advance(1_000);
  assertEquals(bench.releases, [1, 1, 1]);
  await runMicrotasks();
  assertEquals(bench.cluster.holders("a"), [undefined, undefined, undefined]);
});

Deno.test("Hold that ran out leaves keys to their TTL after the longest extension succeeded", async () => {
  const bench = await locked();
  await bench.settle(extend(bench.hold, 2_000));
  await bench.settle(extend(bench.hold, 2_000));
  await bench.cluster.clock.advance(2_000);
  assertEquals([bench.hold.standing, bench.releases], [false, [0, 0, 0]]);
});

// Extensions

Deno.test("Hold that is lost while an extension is on its way tells that extension's votes", async () => {
  const bench = await locked(3, { nodeTimeoutMs: 400 });
  await bench.cluster.clock.advance(800);
  bench.cluster.set("fail", 0);
  bench.cluster.set("hang", 1, 2);
  bench.extend();
  await bench.cluster.clock.advance(200);
  const { lostError } = bench.hold;
  assertEquals(
    lostError?.message,
    'Cannot keep lock "a": its validity has ended before an extension succeeded: 0 of 3 nodes granted it, 1 failed, 2 are needed',
  );
  assertEquals(lostError?.votes.map(({ node, outcome }) => [node, outcome]), [["node0", "failed"]]);
  assert(lostError?.cause instanceof Error);
  assertInstanceOf(lostError.cause.cause, AggregateError);
  assertEquals(lostError.cause.cause.message, "node0: node0 is down");
});

Deno.test("Hold that is lost after an extension succeeded tells the votes that won it", async () => {
  const bench = await locked();
  await bench.settle(extend(bench.hold, 1_000));
  await bench.cluster.clock.advance(1_000);
  assertEquals(bench.hold.lostError?.message, 'Cannot keep lock "a": its validity has ended');
  assertStrictEquals(bench.hold.lostError?.votes.length, 3);
  assertEquals(bench.hold.lostError?.votes, bench.hold.round.votes);
});

Deno.test("Hold.prolong() moves the end, and the timer with it", async () => {
  const bench = await locked();
  const { cluster, hold } = bench;
  const { signal } = hold;
  await cluster.clock.advance(900);
  await bench.settle(extend(hold, 1_000));
  await cluster.clock.advance(VALIDITY_MS - 26);
  assertEquals([hold.held, signal.aborted], [true, false]);
  await cluster.clock.advance(1);
  assertEquals([hold.held, signal.aborted], [false, true]);
  assert(cluster.events.at(-1)?.type === "lost");
  assertEquals((cluster.events.at(-1) as { heldMs: number }).heldMs, 900 + VALIDITY_MS - 25);
});

Deno.test("Hold without a listener is lost and released all the same", async () => {
  const lost = await locked(1, { onEvent: undefined });
  lost.hold.lose(CAUSE);
  const released = await locked(1, { onEvent: undefined });
  assertEquals(await released.settle(released.hold.release()), true);
  const failing = await locked(1, { onEvent: undefined });
  failing.cluster.set("fail", 0);
  const error = await failing.settle(failing.hold.release().catch((error) => error));
  assertInstanceOf(error, QuorumError);
  assertEquals(lost.hold.held, false);
});
