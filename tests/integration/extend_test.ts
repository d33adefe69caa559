import {
  assert,
  assertEquals,
  assertGreater,
  assertLess,
  assertMatch,
  assertRejects,
} from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, LockLostError } from "../../mod.ts";
import { abortedAt, eventually } from "../support/eventually.ts";
import { onAll, shareServers, startProxies, warmUp } from "../support/shared_servers.ts";
import { ENDING, SLACK_MS } from "../support/times.ts";

const shared = shareServers(5);

Deno.test("extend() gives the same lock a new TTL on every node, and a new validity", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  await using lock = await redlock.acquire("extended", { ttlMs: 5_000 });
  const { value } = lock;
  await lock.extend({ ttlMs: 60_000 });
  assertGreater(lock.remainingMs(), 50_000);
  assertLess(lock.remainingMs(), 60_000 - 600);
  assertEquals([lock.held, lock.extensions, lock.value], [true, 1, value]);
  await eventually(async () => {
    for (const pttl of await onAll(servers, "PTTL", "extended")) {
      assertGreater(Number(pttl), 50_000);
    }
  });
  assertEquals(await onAll(servers, "GET", "extended"), Array(5).fill(value));
});

Deno.test("extend() gives the TTL of the acquisition by default", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls, { ttlMs: 60_000 });
  await using lock = await redlock.acquire("extended", { ttlMs: 10_000 });
  const endsAtMs = () => performance.now() + lock.remainingMs();
  const beforeMs = endsAtMs();
  await eventually(() => lock.remainingMs() < 9_800);
  await lock.extend({ ttlMs: undefined });
  assertGreater(endsAtMs(), beforeMs + 50);
  assertLess(lock.remainingMs(), 10_000);
});

Deno.test("extend() carries the lock past its first validity", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  const startMs = performance.now();
  await using lock = await redlock.acquire("carried", { ttlMs: 1_500 });
  const { signal } = lock;
  await lock.extend({ ttlMs: 20_000 });
  await eventually(() => performance.now() > startMs + 1_600);
  assertEquals([lock.held, signal.aborted], [true, false]);
});

Deno.test("extend() extends every one of several resources", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  await using lock = await redlock.acquire(["a", "b"], { ttlMs: 5_000 });
  await lock.extend({ ttlMs: 60_000 });
  for (const key of ["a", "b"]) {
    await eventually(async () => {
      for (const pttl of await onAll(servers, "PTTL", key)) assertGreater(Number(pttl), 50_000);
    });
  }
});

Deno.test("extend() of several resources loses the lock where one is gone on a majority, and leaves no key", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  await using lock = await redlock.acquire(["a", "b"], { ttlMs: 60_000 });
  await eventually(async () => assertEquals(await onAll(servers, "EXISTS", "a", "b"), [2, 2, 2]));
  await onAll(servers.slice(0, 2), "DEL", "b");
  const error = await assertRejects(() => lock.extend(), LockLostError);
  assertEquals(
    error.message,
    'Cannot keep locks "a", "b": a majority of the nodes no longer holds it',
  );
  await eventually(async () => assertEquals(await onAll(servers, "EXISTS", "a", "b"), [0, 0, 0]));
});

Deno.test("extend() of a lock that was released rejects, and sets nothing", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  const lock = await redlock.acquire("released");
  await lock.release();
  const error = await assertRejects(() => lock.extend(), LockLostError);
  assertEquals(error.message, 'Cannot extend lock "released": it was released');
  assertEquals(error.code, "LOCK_LOST");
  await redlock.close();
  assertEquals(await onAll(servers, "EXISTS", "released"), [0, 0, 0]);
});

Deno.test("extend() of a lock that ran out rejects, and sets nothing", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  await using lock = await redlock.acquire("expired", { ttlMs: 50 });
  await eventually(async () => assertEquals(await onAll(servers, "EXISTS", "expired"), [0, 0, 0]));
  const error = await assertRejects(() => lock.extend(), LockLostError);
  assertEquals(error.message, 'Cannot keep lock "expired": its validity has ended');
  await redlock.close();
  assertEquals(await onAll(servers, "EXISTS", "expired"), [0, 0, 0]);
});

Deno.test("extend() works again after SCRIPT FLUSH", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  await using lock = await redlock.acquire("flushed", { ttlMs: 5_000 });
  await lock.extend();
  await onAll(servers, "SCRIPT", "FLUSH");
  await lock.extend({ ttlMs: 60_000 });
  assertGreater(lock.remainingMs(), 50_000);
});

Deno.test("extend() that finds no quorum tries again while the lock is valid, and gets it once nodes are back", async () => {
  await using servers = shared.lend();
  let failures = 0;
  await using redlock = createRedlock(servers.urls, {
    nodeTimeoutMs: 200,
    onEvent: ({ type }) => {
      if (type === "extend-failed") failures++;
    },
  });
  await using lock = await redlock.acquire("interrupted", { ttlMs: 6_000 });
  await Promise.all(servers.slice(0, 3).map((server) => server.pause()));
  const extending = lock.extend({ ttlMs: 60_000 });
  await eventually(() => failures >= 2);
  assertEquals([lock.held, lock.extensions], [true, 0]);
  for (const server of servers) server.resume();
  await deadline(extending, 1_000 + SLACK_MS);
  assertGreater(lock.remainingMs(), 50_000);
});

Deno.test("extend() that finds no quorum to the end rejects before the TTL, and takes back what it prolonged", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: 200 });
  const startMs = performance.now();
  await using lock = await redlock.acquire("interrupted", ENDING);
  const aborted = abortedAt(lock.signal);
  await Promise.all(servers.slice(0, 3).map((server) => server.pause()));
  const error = await assertRejects(
    () => deadline(lock.extend({ ttlMs: 60_000 }), 2_000 + SLACK_MS),
    LockLostError,
  );
  assertLess(await aborted, startMs + ENDING.ttlMs);
  assertMatch(
    error.message,
    /^Cannot keep lock "interrupted": its validity has ended before an extension succeeded: [012] of 5 nodes extended it(, [1-5] timed out)?, 3 are needed$/,
  );
  assertEquals(error, lock.signal.reason);
  for (const server of servers) server.resume();
  await eventually(async () =>
    assertEquals(await onAll(servers, "EXISTS", "interrupted"), [0, 0, 0, 0, 0])
  );
});

Deno.test("extend() is given up by its signal at once, and the lock stays as it is", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: 5_000 });
  await using lock = await redlock.acquire("kept", { ttlMs: 20_000 });
  await Promise.all(servers.map((server) => server.pause()));
  const controller = new AbortController();
  const extending = lock.extend({ signal: controller.signal });
  const reason = new Error("never mind");
  controller.abort(reason);
  assertEquals(await assertRejects(() => deadline(extending, SLACK_MS)), reason);
  assertEquals([lock.held, lock.signal.aborted, lock.extensions], [true, false, 0]);
  for (const server of servers) server.resume();
});

Deno.test("extend() that was given up, and then a shorter one, leave no key once the lock has run out", async () => {
  await using servers = shared.lend(3);
  await using proxies = await startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { nodeTimeoutMs: 5_000 });
  await using lock = await redlock.acquire("outlived", { ttlMs: 3_000 });
  await lock.extend(); // loads the script
  for (const proxy of proxies) proxy.hang("replies");
  const controller = new AbortController();
  const { signal } = controller;
  const rejected = assertRejects(() => lock.extend({ ttlMs: 60_000, signal }));
  await eventually(async () => {
    for (const pttl of await onAll(servers, "PTTL", "outlived")) assertGreater(Number(pttl), 3_000);
  });
  controller.abort();
  await rejected;
  for (const proxy of proxies) proxy.resume();
  await lock.extend();
  await abortedAt(lock.signal);
  // Nobody holds it any more, and nobody should have to wait a minute for it.
  await eventually(async () => assertEquals(await onAll(servers, "EXISTS", "outlived"), [0, 0, 0]));
});

Deno.test("a lock that ran out takes back the extension that a hung node has yet to execute", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  await warmUp(redlock, servers);
  const lock = await redlock.acquire("late", { ttlMs: 2_000 });
  await eventually(() => lock.votes.length === 3);
  await servers[0].resetCommandCounts();
  await servers[0].pause();
  await lock.extend({ ttlMs: 4_000 });
  await eventually(() => lock.signal.aborted);
  servers[0].resume();
  await eventually(async () => assert((await servers[0].commandCounts()).evalsha >= 1));
  await eventually(async () => assertEquals(await servers[0].command("EXISTS", "late"), 0), 3_000);
});

Deno.test("extend() rejects once the lock was extended extensionsMax times, and leaves it as it is", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls, { extensionsMax: 1 });
  await using lock = await redlock.acquire("limited", { ttlMs: 20_000 });
  await lock.extend();
  const error = await assertRejects(() => lock.extend(), LockLostError);
  assertEquals(
    error.message,
    `Cannot extend lock "limited": it was extended once, the most that 'extensionsMax' allows`,
  );
  assertEquals([lock.held, lock.extensions], [true, 1]);
});

Deno.test("extend() called twice at once succeeds twice", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  await using lock = await redlock.acquire("twice", { ttlMs: 5_000 });
  await Promise.all([lock.extend({ ttlMs: 60_000 }), lock.extend({ ttlMs: 10_000 })]);
  assertGreater(lock.remainingMs(), 50_000);
  assertEquals(lock.extensions, 2);
});

Deno.test("extend() under way is ended by release(), and leaves no key", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: 200 });
  const lock = await redlock.acquire("ended", { ttlMs: 60_000 });
  await eventually(() => lock.votes.length === 3);
  await Promise.all(servers.slice(0, 2).map((server) => server.pause()));
  const rejected = assertRejects(
    () => deadline(lock.extend(), 200 + SLACK_MS),
    LockLostError,
    'Cannot extend lock "ended": it was released',
  );
  await assertRejects(() => lock.release());
  await rejected;
  for (const server of servers) server.resume();
  await redlock.close();
  assertEquals(await onAll(servers, "EXISTS", "ended"), [0, 0, 0]);
  assert(!lock.held);
});

Deno.test("extend() under way is ended by close()", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: 5_000 });
  const lock = await redlock.acquire("ended", { ttlMs: 60_000 });
  await Promise.all(servers.slice(0, 2).map((server) => server.pause()));
  const rejected = assertRejects(
    () => deadline(lock.extend(), 500 + SLACK_MS),
    LockLostError,
    'Cannot keep lock "ended": the lock client was closed',
  );
  await deadline(redlock.close(), 500 + SLACK_MS);
  await rejected;
});
