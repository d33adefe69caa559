/** Faked time: what users of `startFakeClock` see, over TCP and inside the process. */

import {
  assert,
  assertEquals,
  assertGreater,
  assertLess,
  assertRejects,
  assertThrows,
} from "@std/assert";
import {
  createRedlock,
  LockHeldError,
  LockLostError,
  type Redlock,
  type RedlockOptions,
} from "../../mod.ts";
import { connect } from "../../src/redis/mod.ts";
import {
  MemoryRedis,
  startFakeClock,
  startNodes,
  startProxy,
  type TestNodes,
} from "../../src/testing/mod.ts";
import { eventually } from "../support/eventually.ts";
import { testOf } from "../support/test_of.ts";

/** A TTL that does not end in real time while a test runs. */
const TTL_MS = 600_000;
/** Its validity: less 1 % and 2 ms. */
const VALIDITY_MS = 593_998;
/** The holder is notified that much before its end, at the most. */
const MARGIN_MS = 25;

async function startAll(options?: RedlockOptions) {
  const nodes = await startNodes(3);
  const redlock = createRedlock(nodes.addresses, { ttlMs: TTL_MS, ...options });
  return {
    nodes,
    redlock,
    async [Symbol.asyncDispose]() {
      await redlock.close();
      await nodes.close();
    },
  };
}

const test = testOf(() => startAll());

async function expectAbortAtEnd(redlock: Redlock, tick: (ms: number) => Promise<void>) {
  const lock = await redlock.acquire("a");
  let aborts = 0;
  lock.signal.addEventListener("abort", () => aborts++);
  await tick(VALIDITY_MS - MARGIN_MS - 1_000);
  assertEquals([lock.held, lock.signal.aborted], [true, false]);
  assertGreater(lock.remainingMs(), 0);
  await tick(1_000 + MARGIN_MS);
  assertEquals([lock.held, lock.signal.aborted, aborts], [false, true, 1]);
  assert(lock.signal.reason instanceof LockLostError);
  assertEquals(lock.remainingMs(), 0);
}

test("FakeClock.tick() moves clients and nodes that exist already, and later ones", async (all) => {
  // the client's timer is set, in real time
  assert(await (await all.redlock.acquire("a")).release());
  using clock = startFakeClock();
  await using later = await startAll();
  await expectAbortAtEnd(later.redlock, (ms) => clock.tick(ms));
  await expectAbortAtEnd(all.redlock, (ms) => clock.tick(ms));
  await clock.tick(TTL_MS);
  assertEquals((await all.redlock.inspect("a")).held, false);
});

Deno.test("FakeClock.tick() moves clients of servers without sockets", async () => {
  using clock = startFakeClock();
  const server = new MemoryRedis();
  await using redlock = createRedlock(["redis://a"], { connect: server.connect, ttlMs: TTL_MS });
  await expectAbortAtEnd(redlock, (ms) => clock.tick(ms));
});

test("FakeClock.tick() waits for commands that follow from one another, also through a proxy", async (all) => {
  await using proxy = await startProxy(all.nodes.addresses[0]);
  for (const address of [all.nodes.addresses[0], proxy.address]) {
    await using client = await connect(address);
    using clock = startFakeClock();
    let replies = 0;
    const chain = async () => {
      for (; replies < 50; replies++) await client.send(["PING"]);
    };
    const chained = chain();
    await clock.tick(0);
    assertEquals(replies, 50);
    await chained;
  }
});

test("FakeClock.tickUntil() lets a wait run out, and no more time than that", async (all) => {
  using clock = startFakeClock();
  const lock = await all.redlock.acquire("a");
  const before = lock.remainingMs();
  const waiting = all.redlock.acquire("a", { waitMs: 60_000 });
  await assertRejects(() => clock.tickUntil(waiting), LockHeldError);
  const passedMs = before - lock.remainingMs();
  assertGreater(passedMs, 59_000);
  assertLess(passedMs, 62_000);
});

Deno.test("FakeClock.tick() extends a lock for an hour, and the signal stays", async () => {
  await using all = await startAll({ ttlMs: 30_000 });
  using clock = startFakeClock();
  await using lock = await all.redlock.acquire("a", { autoExtend: true });
  await clock.tick(3_600_000);
  assertEquals([lock.held, lock.signal.aborted], [true, false]);
  assertGreater(lock.extensions, 300);
  assertLess(lock.extensions, 400);
  assertEquals(await all.redlock.tryAcquire("a"), undefined);
});

test("FakeClock.tick() expires keys, and hands the lock to a caller that waits", async (all) => {
  using clock = startFakeClock();
  await all.redlock.acquire("a", { ttlMs: 30_000 });
  await using other = createRedlock(all.nodes.addresses, { ttlMs: TTL_MS, waitMs: 120_000 });
  let lockedAt = "";
  const waiting = other.acquire("a").then((lock) => {
    lockedAt = time;
    return lock;
  });
  let time = "before";
  await clock.tick(29_500);
  time = "after";
  await clock.tick(4_000);
  assertEquals(lockedAt, "after");
  assert(await (await waiting).release());
});

Deno.test("FakeClock.tickUntil() lets hung nodes time out", async () => {
  await using all = await startAll({ nodeTimeoutMs: 900 });
  using clock = startFakeClock();
  const lock = await all.redlock.acquire("before");
  hang(all.nodes);
  const attempt = all.redlock.tryAcquire("a");
  const before = lock.remainingMs();
  const error = await assertRejects(() => clock.tickUntil(attempt));
  assertEquals((error as { code?: unknown }).code, "NO_QUORUM");
  const passedMs = before - lock.remainingMs();
  assertGreater(passedMs, 890);
  assertLess(passedMs, 1_500);
  for (const number of [0, 1]) all.nodes.node(number).resume();
});

function hang(nodes: TestNodes): void {
  for (const number of [0, 1]) nodes.node(number).hang();
}

Deno.test("FakeClock.restore() gives locks that are held their real time back", async () => {
  await using all = await startAll({ ttlMs: 5_000 });
  const clock = startFakeClock();
  const extended = await all.redlock.acquire("a", { autoExtend: true });
  await clock.tick(10_000);
  const { extensions } = extended;
  clock.restore();
  clock.restore();
  await eventually(() => extended.extensions > extensions + 1 && extended.held);
  const lost = await all.redlock.acquire("b", { ttlMs: 1_000, nodeTimeoutMs: 500 });
  await eventually(() => lost.signal.aborted);
  assert(await extended.release());
});

test("startFakeClock() starts one clock at a time, and another one later", async (all) => {
  for (const _ of [1, 2]) {
    using clock = startFakeClock();
    assertThrows(startFakeClock, Error, "Cannot start fake clock as another one is in use");
    await expectAbortAtEnd(all.redlock, (ms) => clock.tick(ms));
    await clock.tick(TTL_MS);
  }
});

Deno.test("FakeClock.tick() and tickUntil() refuse times that are none, and a clock that is over", async () => {
  const clock = startFakeClock();
  for (const ms of [-1, NaN, Infinity]) {
    const rule = ms === Infinity ? "must be finite" : "must be at least 0";
    const message = `Cannot move fake clock as 'ms' ${rule}: current value is ${ms}`;
    assertEquals((await assertRejects(() => clock.tick(ms), RangeError)).message, message);
  }
  await assertRejects(() => clock.tickUntil(Promise.resolve(), -1), RangeError, "'limitMs'");
  assertEquals(await clock.tickUntil(Promise.resolve(7)), 7);
  clock.restore();
  const over = "Cannot move fake clock as it was given back";
  assertEquals((await assertRejects(() => clock.tick(1), Error)).message, over);
  assertEquals(
    (await assertRejects(() => clock.tickUntil(Promise.resolve()), Error)).message,
    over,
  );
});

test("FakeClock.tickUntil() gives up at its limit, or if nothing is due", async (all) => {
  using clock = startFakeClock();
  await using lock = await all.redlock.acquire("a", { autoExtend: true });
  const never = new Promise(() => {});
  const message = (ms: number) =>
    `Cannot settle promise as nothing that it waits for is due within ${ms} ms of the fake clock`;
  const before = lock.remainingMs();
  const late = await assertRejects(() => clock.tickUntil(never, 5_000), Error);
  assertEquals(late.message, message(5_000));
  assertLess(before - lock.remainingMs(), 5_001);
  await all.redlock.close();
  const idle = await assertRejects(() => clock.tickUntil(never), Error);
  assertEquals(idle.message, message(3_600_000));
});
