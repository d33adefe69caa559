import { assert, assertEquals, assertLess, assertMatch, assertRejects } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, QuorumError, RedlockError } from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import {
  gone,
  onAll,
  setOnAll,
  shareServers,
  startProxies,
  warmUp,
} from "../support/shared_servers.ts";
import { LONG_NODE_TIMEOUT_MS, SLACK_MS, TTL_MS } from "../support/times.ts";

const shared = shareServers(5);
const { test } = shared;

// Attempts

for (const connected of [true, false]) {
  test(`acquire() without a quorum leaves no key once hung nodes go on, ${connected ? "on connections it had" : "as a fresh client"}`, async (servers) => {
    await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS, nodeTimeoutMs: 500 });
    if (connected) await warmUp(redlock, servers);
    await Promise.all(servers.map((server) => server.resetCommandCounts()));
    await Promise.all(servers.slice(0, 3).map((server) => server.pause()));
    await assertRejects(() => redlock.acquire("hung", { waitMs: 0 }), QuorumError);
    await gone(servers.slice(3), "hung");
    for (const server of servers) server.resume();
    await eventually(async () => {
      for (const server of servers) {
        const { set, del } = await server.commandCounts();
        assertEquals([set, del], [1, 1]); // set late, and deleted
      }
    });
    await gone(servers, "hung");
  });
}

test("tryAcquire() of a client that logs in and closes then leaves no key once hung nodes go on", async (servers) => {
  await Promise.all(servers.map((server) => server.resetCommandCounts()));
  await Promise.all(servers.slice(0, 3).map((server) => server.pause()));
  {
    const options = { ttlMs: TTL_MS, connectTimeoutMs: 200, clientName: "fresh" };
    await using redlock = createRedlock(servers.urls, options);
    await assertRejects(() => redlock.tryAcquire("hung"), QuorumError);
  }
  for (const server of servers) server.resume();
  await eventually(async () => {
    for (const server of servers.slice(0, 3)) {
      const { set = 0, del = 0 } = await server.commandCounts();
      assert(set > 0, "nothing was executed late");
      assertEquals(del, set);
    }
  });
  await gone(servers, "hung");
});

test("acquire() cut off before the replies deletes its keys once the nodes can be reached", async (servers) => {
  await using proxies = await startProxies(servers);
  await using redlock = createRedlock(proxies.urls, {
    ttlMs: TTL_MS,
    nodeTimeoutMs: LONG_NODE_TIMEOUT_MS,
  });
  await warmUp(redlock, servers);
  for (const proxy of proxies) proxy.hang("replies");
  const rejected = assertRejects(
    () => deadline(redlock.acquire("cut", { waitMs: 0 }), LONG_NODE_TIMEOUT_MS - 5_000),
    QuorumError,
  );
  await eventually(async () =>
    assertEquals(await onAll(servers, "EXISTS", "cut"), [1, 1, 1, 1, 1])
  );
  await Promise.all(proxies.map((proxy) => proxy.refuse()));
  const error = await rejected;
  assertMatch(
    error.message,
    /^Cannot acquire lock "cut": 0 of 5 nodes granted it, [345] failed, 3 are needed; first error: /u,
  );
  assertEquals(await onAll(servers, "EXISTS", "cut"), [1, 1, 1, 1, 1]);
  for (const proxy of proxies) await proxy.resume();
  await gone(servers, "cut");
});

// Attempts that are aborted

test("acquire() aborted while its requests are on their way leaves no key", async (servers) => {
  await using proxies = await startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { ttlMs: TTL_MS });
  await warmUp(redlock, servers);
  for (const proxy of proxies) proxy.hang("requests");
  const controller = new AbortController();
  const acquiring = redlock.acquire("aborted", { signal: controller.signal });
  await eventually(() => proxies.every((proxy) => proxy.buffered.requests > 0));
  controller.abort();
  const error = await assertRejects(() => deadline(acquiring, SLACK_MS));
  assertEquals(error, controller.signal.reason);
  await Promise.all(servers.map((server) => server.resetCommandCounts()));
  for (const proxy of proxies) proxy.resume();
  // The SET arrives after all, and what undoes it right behind.
  await eventually(async () => {
    for (const server of servers) {
      const counts = await server.commandCounts();
      assertEquals([counts.set, counts.del], [1, 1]);
    }
  });
  await gone(servers, "aborted");
});

// The end of the client

test("close() settles with hung nodes, and leaves no key on the others nor, once they go on, on them", async (servers) => {
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS, nodeTimeoutMs: 5_000 });
  const lock = await redlock.acquire("held");
  await setOnAll(servers, "held", lock);
  await Promise.all(servers.slice(0, 3).map((server) => server.pause()));
  const rejected = assertRejects(() => redlock.acquire("on its way"), RedlockError);
  await eventually(async () =>
    assertEquals(await onAll(servers.slice(3), "EXISTS", "on its way"), [1, 1])
  );
  const startMs = performance.now();
  await deadline(redlock.close(), 500 + SLACK_MS);
  assertLess(performance.now() - startMs, 500 + SLACK_MS);
  await rejected;
  assertEquals(await onAll(servers.slice(3), "EXISTS", "held", "on its way"), [0, 0]);
  for (const server of servers) server.resume();
  await eventually(async () =>
    assertEquals(await onAll(servers, "EXISTS", "held", "on its way"), [0, 0, 0, 0, 0])
  );
});

// Releases

test("release() while a node refuses connections deletes its key there once it is back", async (servers) => {
  await using proxies = await startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { ttlMs: TTL_MS });
  const lock = await redlock.acquire("unreachable");
  await setOnAll(servers, "unreachable", lock);
  await proxies[0].refuse();
  assertEquals(await deadline(lock.release(), SLACK_MS), true);
  await gone(servers.slice(1), "unreachable");
  assertEquals(await servers[0].command("GET", "unreachable"), lock.value);
  await proxies[0].resume();
  await gone(servers, "unreachable");
});

for (const type of ["list", "hash"]) {
  Deno.test(`a ${type} put in the place of a majority's keys is an error of release(), and never deleted`, async () => {
    await using servers = shared.lend(3);
    await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS });
    const create = type === "list" ? ["RPUSH", "typed", "x"] : ["HSET", "typed", "x", "1"];
    const lock = await redlock.acquire("typed");
    await setOnAll(servers, "typed", lock);
    await onAll(servers.slice(0, 2), "DEL", "typed");
    await onAll(servers.slice(0, 2), ...create);
    const error = await assertRejects(() => lock.release(), QuorumError);
    assert(
      (error.cause as AggregateError).errors.every(({ message }) => /\bWRONGTYPE /u.test(message)),
    );
    await redlock.close();
    assertEquals(await onAll(servers, "TYPE", "typed"), [type, type, "none"]);
  });
}

test("Lock that is extended by itself and released at any moment leaves no key", async (servers) => {
  await using redlock = createRedlock(servers.urls);
  const names = Array.from({ length: 40 }, (_, index) => `raced ${index}`);
  const ends = names.map(async (name, index) => {
    const lock = await redlock.acquire(name, { ttlMs: 90, autoExtend: true });
    await new Promise((resolve) => setTimeout(resolve, 15 + index));
    await lock.release();
  });
  await Promise.all(ends);
  await redlock.close();
  assertEquals(await onAll(servers, "EXISTS", ...names), [0, 0, 0, 0, 0]);
});
