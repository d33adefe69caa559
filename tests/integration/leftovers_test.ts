import {
  assert,
  assertEquals,
  assertGreater,
  assertLess,
  assertMatch,
  assertRejects,
} from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, LockHeldError, QuorumError, RedlockError } from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import {
  ANOTHER,
  gone,
  holdByAnother,
  onAll,
  setOnAll,
  shareServers,
  startProxies,
  warmUp,
} from "../support/shared_servers.ts";
import { LONG_NODE_TIMEOUT_MS, SLACK_MS, TTL_MS } from "../support/times.ts";

const shared = shareServers(5);

// Attempts

Deno.test("acquire() that timed out leaves no key on the nodes that granted", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS, retryDelayMaxMs: 50 });
  await holdByAnother(servers.slice(0, 3), "held");
  await assertRejects(() => redlock.acquire("held", { waitMs: 200 }), LockHeldError);
  await gone(servers.slice(3), "held");
  assertEquals(await onAll(servers.slice(0, 3), "GET", "held"), Array(3).fill(ANOTHER));
});

for (const connected of [true, false]) {
  Deno.test(`acquire() without a quorum leaves no key once hung nodes go on, ${connected ? "on connections it had" : "as a fresh client"}`, async () => {
    await using servers = shared.lend();
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

Deno.test("tryAcquire() of a client that logs in and closes then leaves no key once hung nodes go on", async () => {
  await using servers = shared.lend();
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

Deno.test("acquire() that won without a hung node deletes its key there too on release()", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS });
  await warmUp(redlock, servers);
  await servers[4].resetCommandCounts();
  await servers[4].pause();
  const lock = await redlock.acquire("late");
  assertEquals(await lock.release(), true);
  servers[4].resume();
  await eventually(async () => {
    const { set, del } = await servers[4].commandCounts();
    assertEquals([set, del], [1, 1]);
  });
  await gone(servers, "late");
});

Deno.test("acquire() cut off before the replies deletes its keys once the nodes can be reached", async () => {
  await using servers = shared.lend();
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

Deno.test("acquire() and tryAcquire() with a signal that has aborted send nothing", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  await Promise.all(servers.map((server) => server.resetCommandCounts()));
  const reason = new Error("never mind");
  const signal = AbortSignal.abort(reason);
  assertEquals(await assertRejects(() => redlock.acquire("unwanted", { signal })), reason);
  assertEquals(await assertRejects(() => redlock.tryAcquire("unwanted", { signal })), reason);
  await redlock.close();
  for (const server of servers) {
    const counts = await server.commandCounts();
    assertEquals([counts.set, counts.evalsha, counts.eval], [undefined, undefined, undefined]);
  }
});

Deno.test("acquire() aborted while its requests are on their way leaves no key", async () => {
  await using servers = shared.lend();
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

Deno.test("acquire() aborted while its first connections are made leaves no key", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS });
  const controller = new AbortController();
  const acquiring = redlock.acquire("aborted", { signal: controller.signal });
  controller.abort();
  await assertRejects(() => deadline(acquiring, SLACK_MS));
  await using _lock = await redlock.acquire("something else");
  await gone(servers, "aborted");
});

// The end of the client

Deno.test("close() releases the locks that are held, whose signals abort", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS });
  const lock = await redlock.acquire("held");
  const extended = await redlock.acquire("extended", { autoExtend: true });
  const { signal } = lock;
  await deadline(redlock.close(), SLACK_MS);
  assertEquals([lock.held, signal.aborted, extended.held], [false, true, false]);
  assertEquals(
    signal.reason.message,
    'Cannot keep lock "held": the lock client was closed',
  );
  assertEquals(await onAll(servers, "EXISTS", "held", "extended"), [0, 0, 0, 0, 0]);
});

Deno.test("close() has a release sent whole to nodes that don't know its script", async () => {
  await using servers = shared.lend();
  await using proxies = await startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { ttlMs: TTL_MS });
  await warmUp(redlock, servers);
  const lock = await redlock.acquire("unknown");
  await eventually(() => lock.votes.length === 5);
  await onAll(servers, "SCRIPT", "FLUSH");
  for (const proxy of proxies.slice(3)) proxy.delay(40, "replies");
  assertEquals(await lock.release(), true);
  await deadline(redlock.close(), 500 + SLACK_MS);
  await gone(servers, "unknown");
});

Deno.test("close() settles with hung nodes, and leaves no key on the others nor, once they go on, on them", async () => {
  await using servers = shared.lend();
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

Deno.test("release() while a node refuses connections deletes its key there once it is back", async () => {
  await using servers = shared.lend();
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

Deno.test("release() while a node hangs deletes its key there once it goes on", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS });
  const lock = await redlock.acquire("hung");
  await setOnAll(servers, "hung", lock);
  await servers[0].pause();
  assertEquals(await deadline(lock.release(), SLACK_MS), true);
  servers[0].resume();
  await gone(servers, "hung");
});

Deno.test("release() while nodes have too few replicas for a moment deletes its keys once they take it", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS });
  const lock = await redlock.acquire("refused");
  await onAll(servers, "CONFIG", "SET", "min-replicas-to-write", "1");
  const error = await assertRejects(() => lock.release(), QuorumError);
  assertEquals(error.votes.every(({ error }) => error?.message.includes("NOREPLICAS")), true);
  assertEquals(await onAll(servers, "GET", "refused"), Array(5).fill(lock.value));
  await onAll(servers, "CONFIG", "SET", "min-replicas-to-write", "0");
  await gone(servers, "refused");
});

Deno.test("release() leaves a key that another has set, on every node", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS });
  const lock = await redlock.acquire("taken over");
  await setOnAll(servers, "taken over", lock);
  await holdByAnother(servers, "taken over");
  assertEquals(await lock.release(), false);
  await redlock.close();
  assertEquals(await onAll(servers, "GET", "taken over"), Array(5).fill(ANOTHER));
});

for (const type of ["list", "hash"]) {
  Deno.test(`a ${type} under the key on a minority is never touched, and does not prevent the lock`, async () => {
    await using servers = shared.lend();
    await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS });
    const create = type === "list" ? ["RPUSH", "typed", "x"] : ["HSET", "typed", "x", "1"];
    await onAll(servers.slice(0, 2), ...create);
    const lock = await redlock.acquire("typed");
    await lock.extend();
    assertEquals(await lock.release(), true);
    await redlock.close();
    assertEquals(await onAll(servers, "TYPE", "typed"), [type, type, "none", "none", "none"]);
  });

  Deno.test(`a ${type} put in the place of a majority's keys is an error of release(), and never deleted`, async () => {
    await using servers = shared.lend(3);
    await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS });
    const create = type === "list" ? ["RPUSH", "typed", "x"] : ["HSET", "typed", "x", "1"];
    const lock = await redlock.acquire("typed");
    await setOnAll(servers, "typed", lock);
    await onAll(servers.slice(0, 2), "DEL", "typed");
    await onAll(servers.slice(0, 2), ...create);
    const error = await assertRejects(() => lock.release(), QuorumError);
    assert((error.cause as AggregateError).errors.every(({ prefix }) => prefix === "WRONGTYPE"));
    await redlock.close();
    assertEquals(await onAll(servers, "TYPE", "typed"), [type, type, "none"]);
  });
}

Deno.test("a key whose deletion could not be sent expires at the TTL", async () => {
  await using servers = shared.lend(3);
  await using proxies = await startProxies(servers);
  const redlock = createRedlock(proxies.urls, { ttlMs: 4_000 });
  const lock = await redlock.acquire("abandoned");
  await setOnAll(servers, "abandoned", lock);
  for (const proxy of proxies) {
    await proxy.refuse();
  }
  await redlock.close();
  assertGreater(Number(await servers[0].command("PTTL", "abandoned")), 0);
  await gone(servers, "abandoned");
});
