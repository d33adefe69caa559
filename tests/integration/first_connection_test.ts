/** Who waits for a node whose first connection is being made, and for how long. */

import { assert, assertEquals, assertLessOrEqual, assertRejects } from "@std/assert";
import { createRedlock, QuorumError, type RedlockOptions } from "../../mod.ts";
import {
  type FakeClock,
  type FaultProxy,
  startFakeClock,
  startNodes,
  startProxy,
} from "../../src/testing/mod.ts";
import { connect } from "../../src/transport/default.ts";
import type { Connect } from "../../src/transport/transport.ts";

const CONNECT_TIMEOUT_MS = 10_000;

/**
 * A client behind three proxies, of which the last `unanswered` accept no connection and refuse
 * none.
 */
async function startAll(unanswered: number, options: RedlockOptions, connecting?: Promise<void>) {
  await using stack = new AsyncDisposableStack();
  const nodes = stack.use(await startNodes(3));
  const proxies: FaultProxy[] = [];
  for (const address of nodes.addresses) proxies.push(stack.use(await startProxy(address)));
  const holes = proxies.slice(3 - unanswered).map(({ port }) => port);
  const connectOrHang: Connect = async (target, { signal }) => {
    if (target.kind === "tcp" && holes.includes(target.port)) {
      const aborted = new Promise<void>((resolve) => signal.onabort = () => resolve());
      await (connecting ? Promise.race([connecting, aborted]) : aborted);
      signal.throwIfAborted();
    }
    return await connect(target, { signal });
  };
  const redlock = stack.use(createRedlock(proxies.map(({ address }) => address), {
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    connect: connectOrHang,
    ...options,
  }));
  const left = stack.move();
  return { proxies, redlock, [Symbol.asyncDispose]: () => left.disposeAsync() };
}

/** Settles a promise in faked time; returns how long it took, in milliseconds. */
async function timeOf(clock: FakeClock, promise: Promise<unknown>): Promise<number> {
  let passedMs = 0;
  let settled = false;
  const settle = () => void (settled = true);
  promise.then(settle, settle);
  for (await clock.tick(0); !settled; passedMs += 5) await clock.tick(5);
  return passedMs;
}

Deno.test("an extension does not wait for a first connection: the lock outlives a blip of another node", async () => {
  await using all = await startAll(1, { ttlMs: 1_000 });
  using clock = startFakeClock();
  const lock = await clock.tickUntil(all.redlock.acquire("a", { autoExtend: true }));
  await clock.tick(330);
  await all.proxies[1].refuse(); // one node left, and the extension is due
  await clock.tick(50);
  await all.proxies[1].resume();
  await clock.tick(1_000);
  assertEquals([lock.held, lock.extensions > 0], [true, true]);
  assertEquals(await clock.tickUntil(lock.release()), true);
});

Deno.test("release() settles within nodeTimeoutMs while a first connection is being made", async () => {
  await using all = await startAll(1, { nodeTimeoutMs: 150 });
  using clock = startFakeClock();
  const lock = await clock.tickUntil(all.redlock.acquire("a"));
  all.proxies[1].hang();
  const rejected = assertRejects(() => lock.release(), QuorumError);
  assertLessOrEqual(await timeOf(clock, rejected), 150);
  const outcomes = (await rejected).votes.map(({ outcome }) => outcome);
  assertEquals(outcomes, ["granted", "timed-out", "timed-out"]);
});

for (const nodeTimeoutMs of [50, 150]) {
  Deno.test(`acquire() waits no longer than waitMs for first connections, with a nodeTimeoutMs of ${nodeTimeoutMs}`, async () => {
    await using all = await startAll(2, { nodeTimeoutMs });
    using clock = startFakeClock();
    const rejected = assertRejects(() => all.redlock.acquire("a", { waitMs: 200 }), QuorumError);
    assertLessOrEqual(await timeOf(clock, rejected), 200 + nodeTimeoutMs);
    await rejected;
  });
}

for (const waitMs of [0, 5_000]) {
  Deno.test(`acquire() with a waitMs of ${waitMs} waits for first connections that take 900 ms`, async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    await using all = await startAll(2, { nodeTimeoutMs: 50 }, promise);
    using clock = startFakeClock();
    const acquired = all.redlock.acquire("a", { waitMs });
    await clock.tick(900);
    resolve();
    const lock = await clock.tickUntil(acquired);
    assert(lock.held);
    await clock.tickUntil(lock.release());
  });
}

Deno.test("tryAcquire() waits for first connections up to connectTimeoutMs, whatever waitMs is", async () => {
  await using all = await startAll(2, { nodeTimeoutMs: 50, waitMs: 200 });
  using clock = startFakeClock();
  const rejected = assertRejects(() => all.redlock.tryAcquire("a"), QuorumError);
  const tookMs = await timeOf(clock, rejected);
  assertEquals([tookMs > CONNECT_TIMEOUT_MS - 200, tookMs <= CONNECT_TIMEOUT_MS + 200], [
    true,
    true,
  ]);
  await rejected;
});

for (const method of ["tryAcquire", "inspect"] as const) {
  Deno.test(`${method}() in a loop without a pause, while its server is down, lets the client connect again`, async () => {
    await using nodes = await startNodes(1);
    await using redlock = createRedlock(nodes.addresses, { onEvent: () => {} });
    await redlock.inspect("a");
    await nodes.node(0).crash();
    setTimeout(() => nodes.node(0).restart(), 100); // a tick that the loop must leave it
    const sinceMs = performance.now();
    let answer: unknown;
    while (!answer && performance.now() - sinceMs < 10_000) {
      answer = await redlock[method]("a").catch(() => undefined);
    }
    assert(answer);
  });
}
