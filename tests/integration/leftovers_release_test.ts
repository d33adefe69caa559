import { assert, assertEquals, assertGreater, assertRejects } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, QuorumError } from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import {
  ANOTHER,
  gone,
  holdByAnother,
  onAll,
  shareServers,
  startProxies,
  warmUp,
} from "../support/shared_servers.ts";
import { SLACK_MS, TTL_MS } from "../support/times.ts";

const shared = shareServers(5);

Deno.test("release() while a node refuses connections deletes its key there once it is back", async () => {
  await using servers = shared.lend();
  await using proxies = await startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { ttlMs: TTL_MS });
  const lock = await redlock.acquire("unreachable");
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "unreachable"), Array(5).fill(lock.value))
  );
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
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "hung"), Array(5).fill(lock.value))
  );
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

Deno.test("release() into silence deletes the key on the connection that is made after it", async () => {
  await using servers = shared.lend(3);
  await using proxies = await startProxies(servers);
  let disconnected = 0;
  await using redlock = createRedlock(proxies.urls, {
    ttlMs: TTL_MS,
    nodeTimeoutMs: 500,
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
  assertEquals(await onAll(servers, "GET", "taken over"), Array(5).fill(ANOTHER));
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

Deno.test("a lock that ran out takes back the SET that a hung node has yet to execute", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  await warmUp(redlock, servers);
  await servers[0].resetCommandCounts();
  await servers[0].pause();
  const lock = await redlock.acquire("late", { ttlMs: 4_000 });
  await eventually(() => lock.signal.aborted);
  servers[0].resume();
  await eventually(async () => assertEquals((await servers[0].commandCounts()).set, 1));
  await eventually(async () => assertEquals(await servers[0].command("EXISTS", "late"), 0), 3_000);
});

Deno.test("a key whose deletion could not be sent expires at the TTL", async () => {
  await using servers = shared.lend(3);
  await using proxies = await startProxies(servers);
  const redlock = createRedlock(proxies.urls, { ttlMs: 4_000 });
  const lock = await redlock.acquire("abandoned");
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "abandoned"), Array(3).fill(lock.value))
  );
  for (const proxy of proxies) {
    await proxy.refuse();
  }
  await redlock.close();
  assertGreater(Number(await servers[0].command("PTTL", "abandoned")), 0);
  await gone(servers, "abandoned");
});
