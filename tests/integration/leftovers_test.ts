import { assert, assertEquals, assertGreater, assertLess, assertRejects } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, LockHeldError, QuorumError, RedlockError } from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import type { RedisServer } from "../support/servers.ts";
import {
  holdByAnother,
  onAll,
  recordCommands,
  recordedCommands,
  shareServers,
  startProxies,
  warmUp,
} from "../support/shared_servers.ts";

const shared = shareServers(5);

/** What a noisy machine may add to a time. */
const SLACK_MS = 700;

/** A TTL that no test outlives: what is gone was deleted. */
const TTL_MS = 60_000;

/** Waits until `key` stands on none of the servers. */
function gone(servers: readonly RedisServer[], key: string): Promise<void> {
  return eventually(async () =>
    assertEquals(await onAll(servers, "EXISTS", key), servers.map(() => 0))
  );
}

Deno.test("acquire() with a signal that has aborted sends nothing", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  await Promise.all(servers.map((server) => server.resetCommandCounts()));
  const reason = new Error("never mind");
  const signal = AbortSignal.abort(reason);
  assertEquals(await assertRejects(() => redlock.acquire("unwanted", { signal })), reason);
  await redlock.close();
  for (const server of servers) {
    const counts = await server.commandCounts();
    assertEquals([counts.set, counts.evalsha, counts.eval], [undefined, undefined, undefined]);
  }
});

Deno.test("acquire() aborted while its requests are on their way leaves no key", async () => {
  await using servers = shared.lend();
  await using proxies = startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { ttlMs: TTL_MS });
  await warmUp(redlock, servers);
  for (const proxy of proxies) proxy.stallRequests();
  const controller = new AbortController();
  const acquiring = redlock.acquire("aborted", { signal: controller.signal });
  await eventually(() => proxies.every((proxy) => proxy.held.requestBytes > 0));
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

Deno.test("acquire() aborted after its keys were set leaves no key", async () => {
  await using servers = shared.lend();
  await using proxies = startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { ttlMs: TTL_MS });
  await warmUp(redlock, servers);
  for (const proxy of proxies) proxy.stallReplies();
  const controller = new AbortController();
  const acquiring = redlock.acquire("aborted", { signal: controller.signal });
  await eventually(async () =>
    assertEquals(await onAll(servers, "EXISTS", "aborted"), [1, 1, 1, 1, 1])
  );
  controller.abort();
  await assertRejects(() => deadline(acquiring, SLACK_MS));
  await gone(servers, "aborted"); // while no reply has come yet
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

Deno.test("acquire() aborted while it waits leaves no key", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS, retryDelayMs: 60_000 });
  await holdByAnother(servers.slice(0, 3), "waited for");
  const controller = new AbortController();
  let attempts = 0;
  const acquiring = redlock.acquire("waited for", {
    waitMs: Infinity,
    signal: controller.signal,
    onEvent: ({ type }) => {
      if (type === "attempt") attempts++;
    },
  });
  await eventually(() => attempts === 1);
  controller.abort();
  await assertRejects(() => deadline(acquiring, SLACK_MS));
  await gone(servers.slice(3), "waited for");
  assertEquals(await onAll(servers.slice(0, 3), "GET", "waited for"), Array(3).fill("another"));
});

Deno.test("acquire() aborted in the listener that hears of the lock rejects, and leaves no key", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS });
  const controller = new AbortController();
  const reason = new Error("not any more");
  const error = await assertRejects(() =>
    redlock.acquire("aborted", {
      signal: controller.signal,
      onEvent: ({ type }) => {
        if (type === "acquired") controller.abort(reason);
      },
    })
  );
  assertEquals(error, reason);
  await gone(servers, "aborted");
});

Deno.test("acquire() that timed out leaves no key on the nodes that granted", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS, retryDelayMaxMs: 50 });
  await holdByAnother(servers.slice(0, 3), "held");
  await assertRejects(() => redlock.acquire("held", { waitMs: 200 }), LockHeldError);
  await gone(servers.slice(3), "held");
  assertEquals(await onAll(servers.slice(0, 3), "GET", "held"), Array(3).fill("another"));
});

Deno.test("tryAcquire() that was denied leaves no key on the nodes that granted", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS });
  await holdByAnother(servers.slice(0, 3), "held");
  assertEquals(await redlock.tryAcquire("held"), undefined);
  await gone(servers.slice(3), "held");
});

for (const connected of [true, false]) {
  Deno.test(`acquire() without a quorum leaves no key once hung nodes go on, ${connected ? "on connections it had" : "as a fresh client"}`, async () => {
    await using servers = shared.lend();
    await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS, nodeTimeoutMs: 100 });
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
  await using proxies = startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { ttlMs: TTL_MS });
  await warmUp(redlock, servers);
  for (const proxy of proxies) proxy.stallReplies();
  const rejected = assertRejects(
    () => deadline(redlock.acquire("cut", { waitMs: 0 }), 5_000),
    QuorumError,
  );
  await eventually(async () =>
    assertEquals(await onAll(servers, "EXISTS", "cut"), [1, 1, 1, 1, 1])
  );
  for (const proxy of proxies) {
    await proxy.refuse();
    proxy.cut();
    proxy.resume();
  }
  const error = await rejected;
  assertEquals(
    error.message,
    'Cannot acquire lock "cut": 0 of 5 nodes granted it, 5 failed, 3 are needed',
  );
  assertEquals(await onAll(servers, "EXISTS", "cut"), [1, 1, 1, 1, 1]);
  for (const proxy of proxies) proxy.accept();
  await gone(servers, "cut");
});

Deno.test("acquire() cut off on one node, and the next connection too, deletes its key there in the end", async () => {
  await using servers = shared.lend(3);
  await using proxies = startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { ttlMs: TTL_MS });
  await warmUp(redlock, servers);
  const [proxy] = proxies;
  proxy.stallReplies();
  const lock = await redlock.acquire("cut twice");
  await eventually(async () =>
    assertEquals(await onAll(servers, "EXISTS", "cut twice"), [1, 1, 1])
  );
  proxy.resume();
  proxy.stallRequests();
  await lock.release();
  proxy.cut();
  // The clean-up is on its way on the second connection when that one is cut as well.
  await eventually(() => proxy.connections === 1 && proxy.held.requestBytes > 0);
  proxy.cut();
  await eventually(() => proxy.acceptedTotal >= 3);
  proxy.resume();
  await gone(servers, "cut twice");
});

Deno.test("acquire() is not sent again after a reconnect", async () => {
  await using servers = shared.lend(1);
  await using proxies = startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { ttlMs: TTL_MS });
  await warmUp(redlock, servers);
  await recordCommands(servers[0]);
  proxies[0].stallReplies();
  const rejected = assertRejects(() => redlock.acquire("once", { waitMs: 0 }), QuorumError);
  await eventually(async () => assertEquals(await servers[0].command("EXISTS", "once"), 1));
  proxies[0].cut();
  proxies[0].resume();
  await rejected;
  await gone(servers, "once");
  const sets = (await recordedCommands(servers[0])).filter(([name]) => name === "SET");
  assertEquals(sets.length, 1);
});

Deno.test("release() while a node refuses connections deletes its key there once it is back", async () => {
  await using servers = shared.lend();
  await using proxies = startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { ttlMs: TTL_MS });
  const lock = await redlock.acquire("unreachable");
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "unreachable"), Array(5).fill(lock.value))
  );
  await proxies[0].refuse();
  proxies[0].cut();
  assertEquals(await deadline(lock.release(), SLACK_MS), true);
  await gone(servers.slice(1), "unreachable");
  assertEquals(await servers[0].command("GET", "unreachable"), lock.value);
  proxies[0].accept();
  await gone(servers, "unreachable");
});

Deno.test("release() while a node hangs deletes its key there once it goes on", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS });
  const lock = await redlock.acquire("hung");
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "hung"), Array(5).fill(lock.value))
  );
  await servers[0].pause();
  assertEquals(await deadline(lock.release(), SLACK_MS), true);
  servers[0].resume();
  await gone(servers, "hung");
});

Deno.test("release() into silence deletes the key on the connection that is made after it", async () => {
  await using servers = shared.lend(3);
  await using proxies = startProxies(servers);
  let disconnected = 0;
  await using redlock = createRedlock(proxies.urls, {
    ttlMs: TTL_MS,
    nodeTimeoutMs: 100,
    onEvent: ({ type }) => {
      if (type === "node-disconnected") disconnected++;
    },
  });
  const lock = await redlock.acquire("silent");
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "silent"), Array(3).fill(lock.value))
  );
  proxies[0].halfOpen(); // what is sent from here on vanishes
  assertEquals(await lock.release(), true);
  await eventually(() => disconnected === 1);
  await gone(servers, "silent");
});

Deno.test("release() leaves a key that another has set, on every node", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS });
  const lock = await redlock.acquire("taken over");
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "taken over"), Array(5).fill(lock.value))
  );
  await holdByAnother(servers, "taken over");
  assertEquals(await lock.release(), false);
  await redlock.close();
  assertEquals(await onAll(servers, "GET", "taken over"), Array(5).fill("another"));
});

Deno.test("release() of a lock that ran out spares the successor's", async () => {
  await using servers = shared.lend();
  await using first = createRedlock(servers.urls);
  await using second = createRedlock(servers.urls, { retryDelayMaxMs: 50 });
  const expired = await first.acquire("succeeded", { ttlMs: 100 });
  await using successor = await second.acquire("succeeded", { ttlMs: TTL_MS });
  assertEquals(expired.held, false);
  assertEquals(await expired.release(), false);
  await first.close();
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "succeeded"), Array(5).fill(successor.value))
  );
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
    await eventually(async () =>
      assertEquals(await onAll(servers, "GET", "typed"), Array(3).fill(lock.value))
    );
    await onAll(servers.slice(0, 2), "DEL", "typed");
    await onAll(servers.slice(0, 2), ...create);
    const error = await assertRejects(() => lock.release(), QuorumError);
    assert((error.cause as AggregateError).errors.every(({ prefix }) => prefix === "WRONGTYPE"));
    await redlock.close();
    assertEquals(await onAll(servers, "TYPE", "typed"), [type, type, "none"]);
  });
}

Deno.test("acquire() of several resources one of which is held leaves none of the others", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS });
  await holdByAnother(servers, "b");
  assertEquals(await redlock.tryAcquire(["a", "b", "c"]), undefined);
  await redlock.close();
  assertEquals(await onAll(servers, "EXISTS", "a", "c"), [0, 0, 0, 0, 0]);
  assertEquals(await onAll(servers, "GET", "b"), Array(5).fill("another"));
});

Deno.test("acquire() of several resources sets all or none on each node", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS });
  await holdByAnother(servers.slice(0, 2), "b");
  const lock = await redlock.acquire(["a", "b", "c"]);
  await eventually(async () =>
    assertEquals(await onAll(servers, "EXISTS", "a", "c"), [0, 0, 2, 2, 2])
  );
  assertEquals(
    await onAll(servers, "GET", "b"),
    ["another", "another", lock.value, lock.value, lock.value],
  );
  assertEquals(await lock.release(), true);
  await redlock.close();
  assertEquals(await onAll(servers, "EXISTS", "a", "b", "c"), [1, 1, 0, 0, 0]);
});

Deno.test("acquire() of several resources cut off before the replies deletes all keys", async () => {
  await using servers = shared.lend(3);
  await using proxies = startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { ttlMs: TTL_MS });
  await (await redlock.acquire(["warm", "up"])).release();
  for (const proxy of proxies) proxy.stallReplies();
  const rejected = assertRejects(() => redlock.acquire(["a", "b"], { waitMs: 0 }), QuorumError);
  await eventually(async () => assertEquals(await onAll(servers, "EXISTS", "a", "b"), [2, 2, 2]));
  for (const proxy of proxies) {
    proxy.cut();
    proxy.resume();
  }
  await rejected;
  await eventually(async () => assertEquals(await onAll(servers, "EXISTS", "a", "b"), [0, 0, 0]));
});

Deno.test("a late DEL of the first attempt does not remove the key of the second", async () => {
  await using servers = shared.lend(3);
  await using proxies = startProxies(servers);
  await using redlock = createRedlock(proxies.urls, {
    ttlMs: TTL_MS,
    nodeTimeoutMs: 100,
    retryDelayMs: 5,
    retryDelayMaxMs: 20,
  });
  await warmUp(redlock, servers);
  await holdByAnother(servers.slice(1), "retried");
  proxies[0].stallRequests();
  let attempts = 0;
  const acquiring = redlock.acquire("retried", {
    onEvent: ({ type }) => {
      if (type === "attempt") attempts++;
    },
  });
  await eventually(() => attempts >= 2);
  await onAll(servers.slice(1), "DEL", "retried");
  await using lock = await deadline(acquiring, SLACK_MS);
  proxies[0].resume();
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "retried"), Array(3).fill(lock.value))
  );
});

Deno.test("contenders under one-sided delays leave no key", async () => {
  await using servers = shared.lend(3);
  await using near = startProxies(servers);
  await using far = startProxies(servers);
  near[0].delay({ requestsMs: 20 });
  far[1].delay({ repliesMs: 30 });
  far[2].delay({ requestsMs: 15, repliesMs: 15 });
  await using first = createRedlock(near.urls, { ttlMs: TTL_MS, nodeTimeoutMs: 25 });
  await using second = createRedlock(far.urls, { ttlMs: TTL_MS, nodeTimeoutMs: 25 });
  for (let round = 0; round < 15; round++) {
    const locks = await Promise.allSettled([
      first.tryAcquire("contended"),
      second.tryAcquire("contended"),
    ]);
    const won = locks.flatMap((it) => it.status === "fulfilled" && it.value ? [it.value] : []);
    assert(won.length < 2);
    await Promise.allSettled(won.map((lock) => lock.release()));
  }
  await gone(servers, "contended");
});

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

Deno.test("close() leaves no key of an attempt that is on its way", async () => {
  await using servers = shared.lend();
  for (const connected of [true, false]) {
    await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS });
    if (connected) await warmUp(redlock, servers);
    const rejected = assertRejects(() => redlock.acquire("on its way"), RedlockError);
    await deadline(redlock.close(), SLACK_MS);
    const error = await rejected;
    assertEquals(error.code, "CLOSED");
    assertEquals(error.message, 'Cannot acquire lock "on its way": the lock client is closed');
    assertEquals(await onAll(servers, "EXISTS", "on its way"), [0, 0, 0, 0, 0]);
  }
});

Deno.test("close() has a release sent whole to nodes that don't know its script", async () => {
  await using servers = shared.lend();
  await using proxies = startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { ttlMs: TTL_MS });
  await warmUp(redlock, servers);
  const lock = await redlock.acquire("unknown");
  await eventually(() => lock.votes.length === 5);
  await onAll(servers, "SCRIPT", "FLUSH");
  for (const proxy of proxies.slice(3)) proxy.delay({ repliesMs: 40 });
  assertEquals(await lock.release(), true);
  await deadline(redlock.close(), 500 + SLACK_MS);
  await gone(servers, "unknown");
});

Deno.test("close() settles with hung nodes, and leaves no key on the others nor, once they go on, on them", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS, nodeTimeoutMs: 5_000 });
  const lock = await redlock.acquire("held");
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "held"), Array(5).fill(lock.value))
  );
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

Deno.test("close() is idempotent, and every call after it rejects", async () => {
  await using servers = shared.lend(1);
  const redlock = createRedlock(servers.urls);
  await Promise.all([redlock.close(), redlock.close()]);
  await redlock.close();
  const closed = { code: "CLOSED" };
  for (
    const call of [
      () => redlock.acquire("a"),
      () => redlock.tryAcquire("a"),
      () => redlock.using("a", () => {}),
      () => redlock.inspect("a"),
    ]
  ) {
    const error = await assertRejects(call, RedlockError);
    assertEquals(error.code, closed.code);
  }
});

Deno.test("a lock that ran out takes back the SET that a hung node has yet to execute", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  await warmUp(redlock, servers);
  await servers[0].resetCommandCounts();
  await servers[0].pause();
  const lock = await redlock.acquire("late", { ttlMs: 1_500 });
  await eventually(() => lock.signal.aborted);
  servers[0].resume();
  await eventually(async () => assertEquals((await servers[0].commandCounts()).set, 1));
  await eventually(async () => assertEquals(await servers[0].command("EXISTS", "late"), 0), 750);
});

Deno.test("a key that a node could not be told to delete expires at the TTL", async () => {
  await using servers = shared.lend(3);
  await using proxies = startProxies(servers);
  const redlock = createRedlock(proxies.urls, { ttlMs: 700 });
  const lock = await redlock.acquire("abandoned");
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "abandoned"), Array(3).fill(lock.value))
  );
  for (const proxy of proxies) {
    await proxy.refuse();
    proxy.cut();
  }
  await redlock.close();
  assertGreater(Number(await servers[0].command("PTTL", "abandoned")), 0);
  await gone(servers, "abandoned");
});
