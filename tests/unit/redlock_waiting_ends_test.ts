import { assert, assertEquals, assertInstanceOf, assertStrictEquals } from "@std/assert";
import { LockHeldError, LockLostError, QuorumError, RedlockError } from "../../src/errors.ts";
import type { RedlockEvent } from "../../src/events.ts";
import { close, REASON, rejection, settle } from "../support/cluster_calls.ts";
import { runMicrotasks } from "../support/fake_clock.ts";
import { blocked, Callers, held } from "../support/waiting_calls.ts";

// Errors of those who never asked

Deno.test("Redlock.acquire() that waited in vain for its own client says so, and has no votes", async () => {
  const callers = await held();
  callers.call("second", { waitMs: 100 });
  await callers.advance(100);
  const error = callers.error("second");
  assertInstanceOf(error, LockHeldError);
  assertEquals(
    error.message,
    'Cannot acquire lock "a": this client itself has held it for 100 ms, and locks are not reentrant; waited 100 ms',
  );
  assertEquals([error.votes, error.cause, error.waiters], [[], undefined, undefined]);
  const denied = callers.cluster.events.at(-1);
  assert(denied?.type === "denied");
  assertEquals([denied.reason, denied.attempts, denied.elapsedMs], ["held", 0, 100]);
  await close(callers.cluster);
});

Deno.test("Redlock.acquire() that waited in vain for calls of its own client has the votes of their last attempt", async () => {
  const callers = await blocked("first");
  callers.cluster.nodes[0].enqueue("a", "other:1", "other:2");
  callers.call("second", { waitMs: 100 });
  await callers.advance(100);
  const error = callers.error("second");
  assertInstanceOf(error, LockHeldError);
  assertEquals(
    error.message,
    'Cannot acquire lock "a": someone else holds it; waited 100 ms; its key has no TTL, so no lock library set it; 0 of 3 nodes granted it, 3 denied, 2 are needed',
  );
  assertEquals(error.votes.map(({ outcome }) => outcome), ["denied", "denied", "denied"]);
  assertEquals(callers.asked, [2, 2, 2]);
  await close(callers.cluster);
});

Deno.test("Redlock.acquire() that waited in vain says so where the last attempt was not answered", async () => {
  const callers = new Callers({ retryDelayMs: 10_000 });
  callers.cluster.set("fail", 0, 1);
  callers.cluster.fraction = 0.99;
  callers.call("first");
  callers.call("second", { waitMs: 100 });
  await callers.advance(100);
  const error = callers.error("second");
  assertInstanceOf(error, QuorumError);
  assertEquals(
    error.message,
    'Cannot acquire lock "a": 1 of 3 nodes granted it, 2 failed, 2 are needed; first error: node0 is down',
  );
  assertInstanceOf(error.cause, AggregateError);
  const denied = callers.cluster.events.at(-1);
  assert(denied?.type === "denied");
  assertEquals([denied.reason, denied.attempts], ["no-quorum", 0]);
  await close(callers.cluster);
});

Deno.test("Redlock.acquire() does not tell of attempts from before its client had the lock", async () => {
  const callers = await blocked("first", "second");
  callers.cluster.free();
  await callers.advance(0);
  assertEquals(callers.won, ["first"]);
  callers.call("third", { waitMs: 100 });
  await callers.advance(100);
  assertEquals((callers.error("third") as LockHeldError).votes, []);
  await close(callers.cluster);
});

Deno.test("LockHeldError.waiters tells how many stood in line when a node last told", async () => {
  const callers = new Callers();
  callers.cluster.occupy();
  for (const node of callers.cluster.nodes) node.enqueue("a", "other:1");
  callers.cluster.nodes[1].enqueue("a", "other:2");
  callers.call("first", { waitMs: 500 });
  callers.call("second", { waitMs: 400 });
  await callers.advance(500);
  for (const who of ["first", "second"]) {
    assertEquals((callers.error(who) as LockHeldError).waiters, 3, who);
  }
  callers.call("polls", { waitMs: 500, notify: false });
  await callers.advance(500);
  assertEquals((callers.error("polls") as LockHeldError).waiters, undefined);
  await close(callers.cluster);
});

// Calls that bypass the line

for (const how of ["tryAcquire()", "acquire() with a waitMs of 0"]) {
  const attempt = ({ cluster: { redlock } }: Callers) =>
    how === "tryAcquire()" ? redlock.tryAcquire("a") : redlock.acquire("a", { waitMs: 0 });

  Deno.test(`Redlock.${how} asks at once, though others of its client wait`, async () => {
    const callers = await held("second");
    const trying = attempt(callers).catch((error) => error);
    const outcome = await settle(callers.cluster, trying);
    if (how === "tryAcquire()") assertEquals(outcome, undefined);
    else {
      assertInstanceOf(outcome, LockHeldError);
      assertEquals(outcome.votes.length, 3);
    }
    assertEquals([callers.asked, callers.cluster.priorities], [[2, 2, 2], ["none", "none"]]);
    await callers.release("first");
    assertEquals(callers.won, ["first", "second"]);
    await close(callers.cluster);
  });

  Deno.test(`Redlock.${how} has later calls wait for its lock without asking`, async () => {
    const callers = new Callers();
    const lock = await settle(callers.cluster, attempt(callers));
    callers.call("second");
    await callers.advance(100_000);
    assertEquals([callers.asked, callers.won], [[1, 1, 1], []]);
    await lock!.release();
    await callers.advance(0);
    assertEquals([callers.asked, callers.won], [[2, 2, 2], ["second"]]);
    await close(callers.cluster);
  });

  Deno.test(`Redlock.${how} that wins before a call that waits leaves the line as it is`, async () => {
    const callers = await blocked("first", "second");
    for (const node of callers.cluster.nodes) node.set("a", "", 0); // without a word
    const lock = await settle(callers.cluster, attempt(callers));
    await callers.advance(1_000);
    assertEquals(callers.won, []);
    await settle(callers.cluster, lock!.release());
    await callers.advance(0);
    assertEquals(callers.won, ["first"]);
    await callers.release("first");
    assertEquals(callers.won, ["first", "second"]);
    await close(callers.cluster);
  });
}

Deno.test("Redlock.tryAcquire() that fails leaves nothing that later calls would wait for", async () => {
  const callers = new Callers();
  callers.cluster.occupy();
  assertEquals(await settle(callers.cluster, callers.cluster.redlock.tryAcquire("a")), undefined);
  await rejection(callers.cluster, callers.cluster.redlock.acquire("a", { waitMs: 0 }));
  callers.cluster.free();
  callers.call("next");
  await callers.advance(0);
  assertEquals([callers.won, callers.cluster.nodes[0].subscribes], [["next"], 0]);
  await close(callers.cluster);
});

// Locks that end otherwise

Deno.test("Redlock.acquire() goes on when its client's lock runs out", async () => {
  const callers = new Callers({ ttlMs: 1_000 });
  callers.call("first");
  callers.call("second");
  await callers.advance(900);
  assertEquals(callers.asked, [1, 1, 1]);
  await callers.advance(1_000);
  assertEquals(callers.won, ["first", "second"]);
  assertEquals(callers.locks.get("first")!.held, false);
  await close(callers.cluster);
});

Deno.test("Redlock.acquire() goes on at once when its client's lock is lost", async () => {
  const callers = await held("second");
  const first = callers.locks.get("first")!;
  callers.cluster.occupy();
  await rejection(callers.cluster, first.extend());
  await callers.advance(1_000);
  assertInstanceOf(first.signal.reason, LockLostError);
  assertEquals(callers.cluster.priorities.slice(0, 2), ["none", "none"]);
  callers.cluster.free();
  await callers.advance(0);
  assertEquals(callers.won, ["first", "second"]);
  await first.release(); // frees nothing any more
  callers.call("third");
  await callers.advance(1_000);
  assertEquals(callers.won, ["first", "second"]);
  await close(callers.cluster);
});

Deno.test("Redlock.acquire() goes on when its client's lock could not be released", async () => {
  const callers = await held("second");
  callers.cluster.set("fail", 0, 1);
  const error = await rejection(callers.cluster, callers.locks.get("first")!.release());
  assertInstanceOf(error, QuorumError);
  callers.cluster.set("answer", 0, 1);
  callers.cluster.free();
  await callers.advance(60_000);
  assertEquals(callers.won, ["first", "second"]);
  await close(callers.cluster);
});

for (const how of ["lost", "given up"]) {
  Deno.test(`Redlock.acquire() goes on though the lock is ${how} in the listener that hears of it`, async () => {
    const controller = new AbortController();
    const callers = new Callers({ ttlMs: 1_000 });
    const onEvent = ({ type }: RedlockEvent) => {
      if (type !== "acquired") return;
      if (how === "lost") callers.cluster.clock.advanceSync(1_001);
      else controller.abort(REASON);
    };
    callers.call("first", { onEvent, signal: controller.signal });
    callers.call("second");
    await callers.advance(0);
    assertEquals(callers.won, how === "lost" ? ["first", "second"] : ["second"]);
    await callers.release("second");
    callers.call("third");
    await callers.advance(1_000);
    assertEquals(callers.won.at(-1), "third");
    await close(callers.cluster);
  });
}

// Events

Deno.test("Redlock.acquire() tells that it was woken, and how long it had waited", async () => {
  const callers = await blocked("first", "second");
  assertEquals(callers.cluster.eventTypes, ["attempt", "attempt"]);
  callers.cluster.free();
  await callers.advance(0);
  const [, , woken] = callers.cluster.events;
  assertEquals(woken as unknown, { type: "woken", resources: ["a"], elapsedMs: 1_000 });
  assertEquals(callers.cluster.eventTypes.slice(2), ["woken", "attempt", "acquired"]);
  await close(callers.cluster);
});

Deno.test("Redlock.acquire() does not call it woken when it polls, a key ran out, or it came first in its line", async () => {
  const callers = new Callers();
  callers.cluster.occupy("a", 500);
  callers.call("first");
  callers.call("second");
  await callers.advance(1_000);
  await callers.release("first");
  assertEquals(callers.won, ["first", "second"]);
  assert(!callers.cluster.eventTypes.includes("woken"));
  await close(callers.cluster);
});

// Polling

for (const how of ["notify: false", "nodes that refuse to tell"]) {
  Deno.test(`Redlock.acquire() with ${how} polls, and is first in, first out all the same`, async () => {
    const callers = new Callers({ notify: how !== "notify: false" });
    callers.cluster.occupy("a", 5_000);
    for (const node of callers.cluster.nodes) node.refusal = new Error("NOPERM");
    for (const who of ["first", "second", "third"]) callers.call(who);
    await callers.advance(7_000);
    assert(callers.cluster.priorities.length > 4);
    assert(callers.cluster.priorities.every((claim) => claim === "none"));
    assertEquals(callers.won, ["first"]);
    await callers.release("first");
    await callers.release("second");
    assertEquals(callers.won, ["first", "second", "third"]);
    const refusals = callers.cluster.eventTypes.filter((type) => type === "notify-refused");
    assertEquals(refusals.length, how === "notify: false" ? 0 : 3);
    await close(callers.cluster);
  });
}

// Closing

Deno.test("Redlock.close() ends every call that waits, wherever it stands, and leaves no timer", async () => {
  const callers = await blocked("head", "behind");
  callers.call("other lock", {}, "b");
  await callers.advance(0);
  callers.call("behind a lock", {}, "b");
  callers.call("with an end", { waitMs: 5_000 }, "b");
  await callers.advance(10);
  await close(callers.cluster);
  await runMicrotasks();
  for (const who of ["head", "behind", "behind a lock", "with an end"]) {
    const error = callers.error(who);
    assertInstanceOf(error, RedlockError);
    assertEquals(error.code, "CLOSED", who);
  }
  assertEquals(callers.won, ["other lock"]);
  assertEquals(callers.locks.get("other lock")!.held, false);
  assertEquals([callers.cluster.clock.timers, callers.cluster.wheel.size], [0, 0]);
  callers.call("late");
  await runMicrotasks();
  assertEquals((callers.error("late") as RedlockError).code, "CLOSED");
});

Deno.test("Redlock.close() while nodes are asked to tell leaves no timer, whatever they tell then", async () => {
  const callers = new Callers();
  for (const node of callers.cluster.nodes) node.subscribeMs = 10;
  callers.cluster.occupy();
  callers.call("first");
  await callers.advance(5);
  await close(callers.cluster);
  await callers.advance(10);
  assertEquals((callers.error("first") as RedlockError).code, "CLOSED");
  assertEquals([callers.cluster.clock.timers, callers.cluster.wheel.size], [0, 0]);
});

Deno.test("Redlock.close() asks no node for a lock that its close has freed", async () => {
  const callers = await held("second", "third");
  await close(callers.cluster);
  await runMicrotasks();
  assertEquals([callers.asked, callers.errors.size], [[1, 1, 1], 2]);
  assertEquals(callers.cluster.holders("a"), [undefined, undefined, undefined]);
});

Deno.test("Redlock.acquire() with a signal that aborts while the client closes rejects with its reason", async () => {
  const callers = await held();
  const controller = new AbortController();
  callers.call("second", { signal: controller.signal });
  await runMicrotasks();
  const closing = callers.cluster.redlock.close();
  controller.abort(REASON);
  await settle(callers.cluster, closing);
  assertStrictEquals(callers.error("second"), REASON);
});
