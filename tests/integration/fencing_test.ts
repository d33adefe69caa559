/**
 * Fencing tokens over real servers: that they rise, what they cost, and that a store can refuse who
 * is late.
 */
import { assert, assertEquals, assertGreater, assertLess, assertLessOrEqual } from "@std/assert";
import { createRedlock, type RedlockOptions } from "../../mod.ts";
import { parseAddress } from "../../src/redis/address.ts";
import { resolveClientOptions } from "../../src/redis/client.ts";
import { RedisNode } from "../../src/redis_node/redis_node.ts";
import { redisServer } from "../../src/redis_node/redis_server.ts";
import { TimerWheel } from "../../src/time/timer_wheel.ts";
import { eventually } from "../support/eventually.ts";
import { FakeRequest } from "../support/fake_request.ts";
import type { RedisServer } from "../support/servers.ts";
import { startServers } from "../support/servers.ts";
import { gone, holdByAnother, onAll, setOnAll, shareServers } from "../support/shared_servers.ts";
import { SLACK_MS, TTL_MS } from "../support/times.ts";

const shared = shareServers(5);

const FENCED = { fencing: true, ttlMs: TTL_MS } as const;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const WEEK_MS = 7 * DAY_MS;

function client(urls: readonly string[], options: RedlockOptions = {}) {
  return createRedlock(urls, { ...FENCED, ...options });
}

/** By how much a token is ahead of this machine's clock, in milliseconds. */
function leadMs(token: number): number {
  return token / 1_000 - Date.now();
}

function assertRising(tokens: readonly (number | undefined)[]): void {
  const given = tokens.map((token) => {
    assert(Number.isSafeInteger(token), `${token} is no token`);
    return token!;
  });
  given.slice(1).forEach((token, index) => assertGreater(token, given[index]));
}

/** Waits until a counter is the same on the servers. */
function counted(servers: readonly RedisServer[], counter: string, token: number): Promise<void> {
  return eventually(async () => {
    const counts = await onAll(servers, "GET", counter);
    assertEquals(counts, Array(servers.length).fill(String(token)));
  });
}

/** How many scripts and SETs each server ran. */
async function callCounts(servers: readonly RedisServer[]): Promise<number[][]> {
  const counts = await Promise.all(servers.map((server) => server.commandCounts()));
  return counts.map(({ evalsha = 0, eval: whole = 0, set = 0 }) => [evalsha + whole, set]);
}

// Rising

Deno.test("fencing tokens rise over the locks of several clients", async () => {
  await using servers = shared.lend();
  const clients = Array.from({ length: 3 }, () => client(servers.urls));
  const tokens: (number | undefined)[] = [];
  for (let round = 0; round < 15; round++) {
    const lock = await clients[round % 3].acquire("rising");
    tokens.push(lock.fencingToken);
    await lock.release();
  }
  await Promise.all(clients.map((redlock) => redlock.close()));
  assertRising(tokens);
});

Deno.test("fencing tokens rise over locks that expire without a release", async () => {
  await using servers = shared.lend();
  await using one = client(servers.urls, { ttlMs: 150 });
  await using other = client(servers.urls);
  const tokens = [];
  for (const redlock of [one, one, one, other]) {
    tokens.push((await redlock.acquire("expiring")).fencingToken);
  }
  assertRising(tokens);
});

Deno.test("fencing tokens of several resources are above all earlier ones of each", async () => {
  await using servers = shared.lend();
  await using redlock = client(servers.urls);
  const highest: Record<string, number> = {};
  const sets = [["a"], ["b"], ["a", "b"], ["b"], ["{t}c", "a"], ["{t}c"], ["c", "b", "a"], ["a"]];
  for (let count = 0; count < 3 * sets.length; count++) {
    const resources = sets[count % sets.length];
    const lock = await redlock.acquire(resources, FENCED);
    for (const resource of resources) {
      assertGreater(lock.fencingToken, highest[resource] ?? 0);
      highest[resource] = lock.fencingToken;
    }
    await lock.release();
  }
});

// What it costs

Deno.test("fencing takes one round on a fresh resource and on a used one", async () => {
  await using servers = shared.lend();
  await using redlock = client(servers.urls);
  for (let round = 0; round < 3; round++) {
    await Promise.all(servers.map((server) => server.resetCommandCounts()));
    const lock = await redlock.acquire("cheap");
    await counted(servers, "hasp:fence:cheap", lock.fencingToken!);
    await lock.release();
    await gone(servers, "cheap");
    // SETs are the script's own: one for the key, and the first time one for the counter.
    assertEquals(await callCounts(servers), Array(5).fill([2, round === 0 ? 2 : 1]));
  }
});

Deno.test("fencing takes one round for several resources", async () => {
  await using servers = shared.lend();
  await using redlock = client(servers.urls);
  for (const resources of [["x"], ["x", "y"], ["y"], ["y", "x"]]) {
    await Promise.all(servers.map((server) => server.resetCommandCounts()));
    const lock = await redlock.acquire(resources);
    for (const key of resources) await counted(servers, `hasp:fence:${key}`, lock.fencingToken!);
    await lock.release();
    for (const key of resources) await gone(servers, key);
    assertEquals((await callCounts(servers)).map(([scripts]) => scripts), Array(5).fill(2));
  }
});

Deno.test("fencing takes two rounds where counters are apart, and one from then on", async () => {
  await using servers = shared.lend();
  await using redlock = client(servers.urls);
  await holdByAnother(servers.slice(3), "apart"); // so that it takes each of the others
  const nodeSet = servers.slice(0, 3);
  for (const [index, server] of nodeSet.entries()) {
    await server.command("SET", "hasp:fence:apart", 4e15 + index * 3);
  }
  for (const calls of [3, 2]) {
    await Promise.all(servers.map((server) => server.resetCommandCounts()));
    const lock = await redlock.acquire("apart");
    await counted(nodeSet, "hasp:fence:apart", lock.fencingToken!);
    await lock.release();
    await gone(nodeSet, "apart");
    await eventually(async () => {
      assertEquals((await callCounts(servers)).map(([scripts]) => scripts), Array(5).fill(calls));
    });
  }
  assertEquals(await onAll(servers.slice(3), "EXISTS", "hasp:fence:apart"), [0, 0]);
});

Deno.test("fencing works where no server knows the scripts", async () => {
  await using servers = shared.lend();
  await using redlock = client(servers.urls);
  const tokens = [];
  for (const resource of ["lost", ["lost", "too"], "lost"]) {
    await onAll(servers, "SCRIPT", "FLUSH");
    await onAll(servers.slice(0, 2), "SET", "hasp:fence:lost", 5e15 + tokens.length);
    const lock = await redlock.acquire(resource);
    tokens.push(lock.fencingToken);
    await onAll(servers, "SCRIPT", "FLUSH");
    await lock.extend();
    await lock.release();
  }
  assertRising(tokens);
});

// What stands on the servers

Deno.test("fencing leaves the key as it is without, so that other clients know it", async () => {
  await using servers = shared.lend();
  await using redlock = client(servers.urls);
  await using plain = createRedlock(servers.urls, { ttlMs: TTL_MS });
  const lock = await redlock.acquire("interop");
  await setOnAll(servers, "interop", lock);
  assertEquals(await plain.tryAcquire("interop"), undefined);
  await lock.release();
  const unfenced = await plain.acquire("interop");
  assertEquals(unfenced.fencingToken, undefined);
  assertEquals(await redlock.tryAcquire("interop"), undefined);
  await unfenced.release();
  assertRising([lock.fencingToken, (await redlock.acquire("interop")).fencingToken]);
});

Deno.test("fencing keeps a counter for a week after its last use at the least, and no day longer", async () => {
  await using servers = shared.lend();
  await using redlock = client(servers.urls);
  for (const resources of ["kept", ["kept too"], ["kept", "kept too"]]) {
    const lock = await redlock.acquire(resources);
    await eventually(() => assertEquals(lock.votes.length, 5));
    await lock.release();
    for (const pttl of await onAll(servers, "PTTL", `hasp:fence:${[resources].flat()[0]}`)) {
      assertGreater(Number(pttl), WEEK_MS);
      assertLessOrEqual(Number(pttl), WEEK_MS + DAY_MS + MINUTE_MS);
    }
  }
});

Deno.test("fencing keeps its token over an extension, and a node that has lost the lock takes no part in it", async () => {
  await using servers = shared.lend();
  await using redlock = client(servers.urls);
  const lock = await redlock.acquire("extended");
  const token = lock.fencingToken!;
  await counted(servers, "hasp:fence:extended", token);
  await servers[2].command("FLUSHALL");
  await lock.extend();
  assertEquals(lock.fencingToken, token);
  await lock.release();
  assertRising([token, (await redlock.acquire("extended")).fencingToken]);
});

for (
  const [what, token, counts] of [
    ["the token", 4e15, (counter: number) => counter === 4e15],
    [
      "its clock, where that is more",
      1e15,
      (counter: number) => counter > 1e15 && leadMs(counter) > -MINUTE_MS,
    ],
  ] as const
) {
  Deno.test(`a node that is filled in again has its missing counter raised to ${what}`, async () => {
    await using servers = shared.lend(1);
    const wheel = new TimerWheel();
    const connection = resolveClientOptions({ stallTimeoutMs: 5_000 });
    const node = new RedisNode(redisServer(parseAddress(servers[0].url), connection, wheel));
    node.acquire(new FakeRequest("filled"), 0);
    node.raiseCounters(new FakeRequest("filled", { counterFloor: token }), 0);
    await eventually(async () => {
      assert(counts(Number(await servers[0].command("GET", "hasp:fence:filled"))));
    });
    assertEquals(await servers[0].command("GET", "filled"), "v");
    await node.close();
    wheel.close();
  });
}

// Faults

for (const fault of ["down", "hung", "flushed"] as const) {
  Deno.test(`fencing tokens rise while one node after the other is ${fault}`, async () => {
    await using servers = await startServers(3);
    await using redlock = client(servers.urls, { nodeTimeoutMs: 2_000 });
    await using other = client(servers.urls, { nodeTimeoutMs: 2_000 });
    const first = await redlock.acquire("faulty");
    const tokens = [first.fencingToken];
    await first.release();
    for (const server of [...servers, servers[0]]) {
      if (fault === "down") await server.kill();
      if (fault === "hung") await server.pause();
      if (fault === "flushed") await server.command("FLUSHALL");
      for (const each of [redlock, other, redlock]) {
        const lock = await each.acquire("faulty");
        tokens.push(lock.fencingToken);
        await lock.release();
      }
      if (fault === "down") await server.start();
      if (fault === "hung") server.resume();
    }
    assertEquals(tokens.length, 13);
    assertRising(tokens);
  });
}

Deno.test("fencing takes a lock of several rounds no longer than one node's time where a node hangs", async () => {
  await using servers = shared.lend(3);
  await using redlock = client(servers.urls, { nodeTimeoutMs: 5_000 });
  await (await redlock.acquire("slow")).release();
  await servers[0].command("SET", "hasp:fence:slow", 4e15);
  await servers[2].pause();
  const fromMs = performance.now();
  const lock = await redlock.acquire("slow");
  assertLess(performance.now() - fromMs, SLACK_MS);
  assertEquals(lock.fencingToken, 4e15 + 1);
});
