import { assert, assertEquals, assertGreater, assertLessOrEqual } from "@std/assert";
import { Callers } from "../../support/callers.ts";
import { OTHER_VALUE } from "../../support/cluster.ts";

/** A value of node-redlock. */
const FOREIGN = "f".repeat(32);
const RETRY_DELAY_MS = 200;
const PATIENCE_MS = 50;
/** By how much later it asks. */
const LATER_MS = 2;
const CONCEDE_MS_MIN = 50;
const CONCEDE_MS_MAX = 150;
/**
 * With this jitter a lock is left to clients of other libraries if that happens at all, and with
 * 0.5 it is not.
 */
const SHARES = 0.1;

/** A client with one call that waits for a lock with this value. */
async function waiting(value: string, ...ahead: string[]): Promise<Callers> {
  const callers = new Callers({ retryDelayMs: RETRY_DELAY_MS });
  for (const node of callers.nodes) node.enqueue("a", ...ahead);
  callers.occupy("a", 1_000_000, value);
  callers.call("first");
  await callers.advance(1_000);
  return callers;
}

/** The times between all asks of a client that come within `forMs`. */
async function waitsMs(callers: Callers, forMs: number): Promise<number[]> {
  const { length } = callers.asksMs();
  await callers.advance(forMs);
  const asksMs = callers.asksMs().slice(length - 1);
  return asksMs.slice(1).map((askMs, index) => askMs - asksMs[index]);
}

// Polls

Deno.test("the first in the queue polls a lock of another library soon, then more rarely, up to retryDelayMs", async () => {
  const callers = new Callers({ retryDelayMs: RETRY_DELAY_MS });
  callers.occupy("a", 1_000_000, FOREIGN);
  callers.call("first");
  await callers.advance(0);
  const waits = await waitsMs(callers, 5_000);
  assertLessOrEqual(waits[0], 10);
  assertEquals(waits, waits.toSorted((one, other) => one - other));
  assertEquals(Math.round(waits.at(-1)!), RETRY_DELAY_MS / 2);
  // somebody else's, or extended
  for (const node of callers.nodes) node.set("a", FOREIGN, 1_010_000);
  const [before, ...after] = await waitsMs(callers, 1_000);
  assertLessOrEqual(before, RETRY_DELAY_MS / 2);
  assertLessOrEqual(after[0], 10);
  // the same, as nearly as a client can tell
  await callers.advance(5_000);
  for (const node of callers.nodes) node.set("a", FOREIGN, 1_004_004);
  assertGreater(Math.min(...await waitsMs(callers, 1_000)), RETRY_DELAY_MS / 2 - 1);
  // one that does not expire
  for (const node of callers.nodes) node.set("a", FOREIGN);
  assertGreater((await waitsMs(callers, 1_000)).length, 8);
});

Deno.test("a call that is not the first does not poll a lock of another library, nor the first one of this library", async () => {
  for (const callers of [await waiting(FOREIGN, "other:1"), await waiting(OTHER_VALUE)]) {
    const asks = callers.asked()[0];
    await callers.advance(3_000);
    assertEquals(callers.asked()[0], asks);
  }
});

// Shares

/**
 * Has the client see a lock of another library for a second, then one of this library, then a
 * release, which reaches one node after the other.
 */
async function askedAfterRelease(fraction: number, first: string): Promise<number | undefined> {
  const callers = await waiting(first);
  callers.occupy();
  await callers.advance(1_000);
  callers.fraction = fraction;
  const [waitedMs] = await callers.asksAfter(() => {
    callers.nodes.forEach((node, index) => callers.clock.setTimer(() => node.free(), 20 * index));
  });
  assertEquals(callers.won, ["first"]);
  return waitedMs;
}

Deno.test("a call that was notified leaves the lock now and then to clients of other libraries, if it has seen some", async () => {
  const sharedMs = (await askedAfterRelease(SHARES, FOREIGN))!;
  assertEquals(sharedMs, CONCEDE_MS_MIN + SHARES * (CONCEDE_MS_MAX - CONCEDE_MS_MIN));
  assertEquals(await askedAfterRelease(0.5, FOREIGN), 0);
  assertEquals(await askedAfterRelease(SHARES, OTHER_VALUE), 0);
});

/**
 * A client has the lock after another library had it for a second; when its next call gets it after
 * the release.
 */
async function nextAfterMs(heldMs: number, fraction: number, first = FOREIGN): Promise<number> {
  const callers = await waiting(first);
  for (const node of callers.nodes) node.delete("a");
  callers.notify([callers.nodes[0]]);
  await callers.advance(1);
  assertEquals(callers.won, ["first"]);
  callers.call("second");
  await callers.advance(heldMs);
  callers.fraction = fraction;
  const startMs = callers.nowMs;
  await callers.release("first");
  while (callers.won.length === 1) await callers.advance(1);
  return callers.nowMs - startMs;
}

Deno.test("a client leaves the lock to clients of other libraries between two of its own calls, if it has seen some lately", async () => {
  const sharedMs = await nextAfterMs(2_000, SHARES);
  assert(sharedMs >= CONCEDE_MS_MIN && sharedMs <= CONCEDE_MS_MAX, `${sharedMs}`);
  assertLessOrEqual(await nextAfterMs(2_000, 0.5), 1);
  assertLessOrEqual(await nextAfterMs(2_000, SHARES, OTHER_VALUE), 1);
  assertLessOrEqual(await nextAfterMs(11_000, SHARES), 1);
});

Deno.test("a client asks at once behind a call that gave up, which had nothing to leave to others", async () => {
  const callers = new Callers({ waitMs: 500 });
  callers.occupy("a", 1_000_000, FOREIGN);
  callers.fraction = SHARES;
  callers.call("first");
  await callers.advance(500);
  assertEquals(await callers.asksAfter(() => callers.call("second")), [0, "in-order"]);
});

Deno.test("a client remembers the clients of other libraries that a call saw which waited behind another of its own", async () => {
  const callers = await waiting(OTHER_VALUE);
  await callers.asksAfter(() => callers.free());
  callers.call("second");
  for (const node of callers.nodes) node.set("a", FOREIGN, 1_000); // in the place of the first's
  await callers.release("first");
  await callers.advance(2_000);
  await callers.release("second");
  callers.occupy();
  callers.call("third");
  await callers.advance(1_000);
  callers.fraction = SHARES;
  const [waitedMs] = await callers.asksAfter(() => callers.free());
  assertEquals(callers.won, ["first", "second", "third"]);
  assertGreater(waitedMs!, CONCEDE_MS_MIN - 1);
});

Deno.test("a client remembers the clients of other libraries by the key that a call asked for last", async () => {
  const callers = new Callers();
  callers.occupy("a", 1_000_000, FOREIGN);
  callers.occupy("b");
  callers.call("first", { any: true, waitMs: 1_000 }, ["a", "b"]); // for "b", "a", then "b" alone
  await callers.advance(1_000);
  callers.call("second", {}, "b");
  await callers.advance(1_000);
  callers.fraction = SHARES;
  assertEquals((await callers.asksAfter(() => callers.free("b")))[0], CONCEDE_MS_MIN + 10);
});

Deno.test("a call that leaves the lock to clients of other libraries does so no longer than it may wait", async () => {
  const callers = new Callers({ retryDelayMs: RETRY_DELAY_MS });
  callers.occupy("a", 1_000_000, FOREIGN);
  callers.call("first", { waitMs: 1_020 });
  await callers.advance(900);
  callers.occupy();
  await callers.advance(100);
  callers.fraction = SHARES;
  const [waitedMs] = await callers.asksAfter(() => callers.free());
  assertEquals([waitedMs, callers.won], [20, ["first"]]);
});

Deno.test("a call is patient for longer with a first in the queue that may leave the lock to clients of other libraries", async () => {
  for (const [first, moreMs] of [[FOREIGN, CONCEDE_MS_MAX], [OTHER_VALUE, 0]] as const) {
    const callers = await waiting(first, "stuck:1");
    callers.occupy();
    const [waitedMs, priority] = await callers.asksAfter(() => callers.free());
    assertEquals([waitedMs, priority], [PATIENCE_MS + moreMs + LATER_MS, "in-order"]);
  }
});
