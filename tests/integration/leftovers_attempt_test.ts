import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, LockHeldError, QuorumError } from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import {
  ANOTHER,
  gone,
  holdByAnother,
  onAll,
  recordCommands,
  recordedCommands,
  shareServers,
  startProxies,
  warmUp,
} from "../support/shared_servers.ts";
import { LONG_NODE_TIMEOUT_MS, SLACK_MS, TTL_MS } from "../support/times.ts";

const shared = shareServers(5);

Deno.test("acquire() that timed out leaves no key on the nodes that granted", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS, retryDelayMaxMs: 50 });
  await holdByAnother(servers.slice(0, 3), "held");
  await assertRejects(() => redlock.acquire("held", { waitMs: 200 }), LockHeldError);
  await gone(servers.slice(3), "held");
  assertEquals(await onAll(servers.slice(0, 3), "GET", "held"), Array(3).fill(ANOTHER));
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

Deno.test("acquire() cut off on one node, and the next connection too, deletes its key there in the end", async () => {
  await using servers = shared.lend(3);
  await using proxies = await startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { ttlMs: TTL_MS });
  await warmUp(redlock, servers);
  const [proxy] = proxies;
  proxy.hang("replies");
  const lock = await redlock.acquire("cut twice");
  await eventually(async () =>
    assertEquals(await onAll(servers, "EXISTS", "cut twice"), [1, 1, 1])
  );
  proxy.resume();
  proxy.hang("requests");
  await lock.release();
  proxy.cut();
  // The clean-up is on its way on the second connection when that one is cut as well.
  await eventually(() => proxy.connections === 1 && proxy.buffered.requests > 0);
  proxy.cut();
  await eventually(() => proxy.accepted >= 3);
  proxy.resume();
  await gone(servers, "cut twice");
});

Deno.test("acquire() is not sent again after a reconnect", async () => {
  await using servers = shared.lend(1);
  await using proxies = await startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { ttlMs: TTL_MS });
  await warmUp(redlock, servers);
  await recordCommands(servers[0]);
  proxies[0].hang("replies");
  const rejected = assertRejects(() => redlock.acquire("once", { waitMs: 0 }), QuorumError);
  await eventually(async () => assertEquals(await servers[0].command("EXISTS", "once"), 1));
  proxies[0].cut();
  proxies[0].resume();
  await rejected;
  await gone(servers, "once");
  const sets = (await recordedCommands(servers[0])).filter(([name]) => name === "SET");
  assertEquals(sets.length, 1);
});

Deno.test("acquire() of several resources one of which is held leaves none of the others", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS });
  await holdByAnother(servers, "b");
  assertEquals(await redlock.tryAcquire(["a", "b", "c"]), undefined);
  await redlock.close();
  assertEquals(await onAll(servers, "EXISTS", "a", "c"), [0, 0, 0, 0, 0]);
  assertEquals(await onAll(servers, "GET", "b"), Array(5).fill(ANOTHER));
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
    [ANOTHER, ANOTHER, lock.value, lock.value, lock.value],
  );
  assertEquals(await lock.release(), true);
  await redlock.close();
  assertEquals(await onAll(servers, "EXISTS", "a", "b", "c"), [1, 1, 0, 0, 0]);
});

Deno.test("acquire() of several resources cut off before the replies deletes all keys", async () => {
  await using servers = shared.lend(3);
  await using proxies = await startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { ttlMs: TTL_MS });
  await (await redlock.acquire(["warm", "up"])).release();
  for (const proxy of proxies) proxy.hang("replies");
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
  await using proxies = await startProxies(servers);
  await using redlock = createRedlock(proxies.urls, {
    ttlMs: TTL_MS,
    nodeTimeoutMs: 1_000,
    retryDelayMs: 5,
    retryDelayMaxMs: 20,
  });
  await warmUp(redlock, servers);
  await holdByAnother(servers.slice(1), "retried");
  proxies[0].hang("requests");
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
  await using near = await startProxies(servers);
  await using far = await startProxies(servers);
  near[0].delay(20, "requests");
  far[1].delay(30, "replies");
  far[2].delay(15);
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
