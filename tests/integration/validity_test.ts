import { assert, assertEquals, assertGreater, assertLess, assertRejects } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, LockHeldError, LockLostError, QuorumError } from "../../mod.ts";
import { abortedAt, eventually } from "../support/eventually.ts";
import { gone, onAll, shareServers, startProxies, warmUp } from "../support/shared_servers.ts";
import { ENDING, SLACK_MS } from "../support/times.ts";

const shared = shareServers(5);

Deno.test("acquire() does not grant what was answered after the TTL", async () => {
  await using servers = shared.lend(3);
  await using proxies = await startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { nodeTimeoutMs: 5_000 });
  await warmUp(redlock, servers);
  for (const proxy of proxies.slice(0, 2)) proxy.hang("replies");
  const error = await assertRejects(
    () => deadline(redlock.acquire("late", { ttlMs: 1_000, waitMs: 0 }), 1_000 + SLACK_MS),
    QuorumError,
  );
  assertEquals(
    error.message,
    'Cannot acquire lock "late": 1 of 3 nodes granted it, 2 timed out, 2 are needed',
  );
  for (const proxy of proxies) proxy.resume();
  await gone(servers, "late");
});

Deno.test("acquire() takes back what was answered after the validity but before the TTL", async () => {
  await using servers = shared.lend(3);
  await using proxies = await startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { nodeTimeoutMs: 5_000 });
  await warmUp(redlock, servers);
  for (const proxy of proxies.slice(0, 2)) proxy.delay(300, "replies");
  await assertRejects(
    () => redlock.acquire("late", { ttlMs: 60_000, driftFactor: 0.999, waitMs: 0 }),
    QuorumError,
  );
  await eventually(async () => assertEquals(await onAll(servers, "EXISTS", "late"), [0, 0, 0]));
});

Deno.test("acquire() does not grant what was answered in time but read after the TTL", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  await warmUp(redlock, servers);
  const acquiring = redlock.acquire("busy", { ttlMs: 100, waitMs: 0 });
  for (let turn = 0; turn < 10; turn++) await Promise.resolve(); // until the requests are written
  const endMs = performance.now() + 150;
  while (performance.now() < endMs); // a process that is busy, or stopped
  await assertRejects(() => acquiring, QuorumError);
});

Deno.test("tryAcquire() throws where a quorum answered too late for the validity", async () => {
  await using servers = shared.lend(3);
  await using proxies = await startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { nodeTimeoutMs: 5_000 });
  await warmUp(redlock, servers);
  for (const proxy of proxies) proxy.hang("replies");
  await assertRejects(
    () => deadline(redlock.tryAcquire("late", { ttlMs: 100 }), 100 + SLACK_MS),
    QuorumError,
    'Cannot acquire lock "late": 0 of 3 nodes granted it',
  );
  for (const proxy of proxies) proxy.resume();
  await gone(servers, "late");
});

Deno.test("Lock that is not extended aborts its signal before the TTL, and is not held any more", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  const startMs = performance.now();
  await using lock = await redlock.acquire("ends", ENDING);
  const endMs = await abortedAt(lock.signal);
  assertLess(endMs, startMs + ENDING.ttlMs);
  assertGreater(endMs, startMs + 900);
  assertEquals([lock.held, lock.remainingMs()], [false, 0]);
  assert(lock.signal.reason instanceof LockLostError);
  assertEquals(lock.signal.reason.message, 'Cannot keep lock "ends": its validity has ended');
  assertEquals(lock.signal.reason.code, "LOCK_LOST");
});

Deno.test("Lock aborts its signal before the TTL if another lock is extended just before", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: 5_000 });
  await warmUp(redlock, servers);
  await using other = await redlock.acquire("goes on", { ttlMs: 60_000, autoExtend: true });
  const startMs = performance.now();
  await using lock = await redlock.acquire("ends", ENDING);
  await eventually(() => lock.remainingMs() < 200);
  await other.extend();
  assertLess(await abortedAt(lock.signal), startMs + ENDING.ttlMs);
});

/** Replaces the wall clock for the rest of the block. */
function stepWallClock(stepMs: number): Disposable {
  const { now } = Date;
  Date.now = () => now() + stepMs;
  return {
    [Symbol.dispose]() {
      Date.now = now;
    },
  };
}

Deno.test("Lock counts as lost where the wall clock steps ahead, as after the machine slept", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  await using lock = await redlock.acquire("slept", { ttlMs: 30_000 });
  const { signal } = lock;
  using _clock = stepWallClock(60_000);
  assertEquals([lock.held, lock.remainingMs()], [false, 0]);
  await deadline(abortedAt(signal), 250 + SLACK_MS); // noticed without being asked
});

Deno.test("Lock ends at its validity where the wall clock steps back", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  const startMs = performance.now();
  await using lock = await redlock.acquire("stepped back", ENDING);
  using _clock = stepWallClock(-60_000);
  assertEquals(lock.held, true);
  assertLess(await abortedAt(lock.signal), startMs + ENDING.ttlMs);
  assertEquals(lock.held, false);
});

Deno.test("Lock excludes every other client for as long as it says it is held", async () => {
  await using servers = shared.lend();
  await using first = createRedlock(servers.urls);
  await using second = createRedlock(servers.urls);
  const lock = await first.acquire("exclusive", { ttlMs: 10_000, autoExtend: true });
  for (let asked = 0; asked < 50; asked++) {
    const { held } = lock;
    const other = await second.tryAcquire("exclusive");
    assert(!(held && lock.held && other !== undefined));
  }
  await assertRejects(() => second.acquire("exclusive", { waitMs: 0 }), LockHeldError);
  await lock.release();
  await using _other = await second.acquire("exclusive");
});
