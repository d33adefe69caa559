import { assert, assertEquals, assertGreater, assertLess, assertRejects } from "@std/assert";
import { createRedlock } from "../../mod.ts";
import { abortedAt, eventually } from "../support/eventually.ts";
import { gone, onAll, shareServers, startProxies, warmUp } from "../support/shared_servers.ts";

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
  await gone(servers, "outlived");
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
