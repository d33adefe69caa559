/**
 * Fencing tokens over real servers where a clock is wrong, and where something else stands under a
 * counter's key.
 */
import { assert, assertEquals, assertGreater, assertLess, assertRejects } from "@std/assert";
import { QuorumError } from "../../mod.ts";
import type { Redlock, RedlockOptions } from "../../mod.ts";
import { parseAddress } from "../../src/redis/address.ts";
import { resolveClientOptions } from "../../src/redis/client.ts";
import { RedisNode } from "../../src/redis_node/redis_node.ts";
import { redisServer } from "../../src/redis_node/redis_server.ts";
import { redlockOn } from "../../src/redlock.ts";
import { SkewedClock } from "../../src/testing/skewed_clock.ts";
import { systemClock } from "../../src/time/clock.ts";
import { TimerWheel } from "../../src/time/timer_wheel.ts";
import { eventually } from "../support/eventually.ts";
import type { RedisServer } from "../support/servers.ts";
import { gone, onAll, shareServers } from "../support/shared_servers.ts";
import { TTL_MS } from "../support/times.ts";

const shared = shareServers(3);

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const WEEK_MS = 7 * DAY_MS;
const YEAR_MS = 365 * DAY_MS;

/** A client whose wall clock is wrong by `aheadMs`. */
function client(servers: { urls: readonly string[] }, aheadMs = 0, options: RedlockOptions = {}) {
  const clock = new SkewedClock(systemClock);
  clock.aheadMs = aheadMs;
  const wheel = new TimerWheel(clock);
  const connection = resolveClientOptions({ stallTimeoutMs: 5_000 });
  const nodes = servers.urls.map((url) =>
    new RedisNode(redisServer(parseAddress(url), connection, wheel))
  );
  return redlockOn(wheel, nodes, { fencing: true, ttlMs: TTL_MS, ...options });
}

/** Locks and releases once, and waits until that is done everywhere. */
async function tokenOf(
  redlock: Redlock,
  servers: readonly RedisServer[],
  resource: string | string[],
): Promise<number> {
  const lock = await redlock.acquire(resource);
  await eventually(() => assertEquals(lock.votes.length, servers.length));
  await lock.release();
  for (const key of [resource].flat()) await gone(servers, key);
  return lock.fencingToken!;
}

/** By how much a token is ahead of this machine's clock, in milliseconds. */
function leadMs(token: number): number {
  return token / 1_000 - Date.now();
}

for (
  const [what, aheadMs] of [
    ["ten years ahead", 10 * YEAR_MS],
    ["beyond the year 2255", 300 * YEAR_MS],
    ["ten years behind", -10 * YEAR_MS],
  ] as const
) {
  for (const resource of ["skewed", ["skewed", "skewed too"]]) {
    Deno.test(`a client whose clock is ${what} changes no token of ${[resource].flat().length}`, async () => {
      await using servers = shared.lend();
      await using wrong = client(servers, aheadMs);
      await using right = client(servers);
      const tokens: number[] = [];
      for (const redlock of [wrong, right, wrong, right]) {
        tokens.push(await tokenOf(redlock, servers, resource));
      }
      tokens.forEach((token, index) => {
        assertGreater(token, (tokens as number[])[index - 1] ?? 0);
        assert(Math.abs(leadMs(token)) < MINUTE_MS, `${token} is ${leadMs(token)} ms ahead`);
      });
      for (const pttl of await onAll(servers, "PTTL", "hasp:fence:skewed")) {
        assertGreater(Number(pttl), WEEK_MS);
        assertLess(Number(pttl), WEEK_MS + 2 * DAY_MS);
      }
    });
  }
}

Deno.test("a client whose clock is a little off has all counters start alike", async () => {
  await using servers = shared.lend();
  for (const aheadMs of [-50_000, 50_000]) {
    await using redlock = client(servers, aheadMs);
    const token = await tokenOf(redlock, servers, `off by ${aheadMs}`);
    assert(Math.abs(leadMs(token) - aheadMs) < 10_000, `${leadMs(token)}`);
    assertEquals(
      await onAll(servers, "GET", `hasp:fence:off by ${aheadMs}`),
      Array(3).fill(String(token)),
    );
  }
});

Deno.test("a token that is ahead of the clocks is not carried to other resources", async () => {
  await using servers = shared.lend();
  await onAll(servers, "SET", "hasp:fence:ahead", 4e15);
  await using redlock = client(servers);
  assertEquals(await tokenOf(redlock, servers, "ahead"), 4e15 + 1);
  assertLess(leadMs(await tokenOf(redlock, servers, "another")), MINUTE_MS);
});

Deno.test("a counter ahead of the node's clock lives until a week after the clock has reached it", async () => {
  await using servers = shared.lend();
  // Every quorum has one of these two, and they differ, so that the third is raised.
  await servers[0].command("SET", "hasp:fence:ahead", 4e15);
  await servers[1].command("SET", "hasp:fence:ahead", 4e15 + 100);
  await using redlock = client(servers);
  for (const resource of ["ahead", ["ahead", "with"]]) {
    await using lock = await redlock.acquire(resource);
    assertGreater(lock.fencingToken!, 4e15);
    await eventually(async () => {
      const counter = await servers[2].command("GET", "hasp:fence:ahead");
      assertEquals(counter, String(lock.fencingToken));
    });
    const pttl = await servers[2].command("PTTL", "hasp:fence:ahead");
    const afterMs = Number(pttl) - leadMs(4e15);
    assert(afterMs > WEEK_MS && afterMs < WEEK_MS + 2 * DAY_MS, `${afterMs}`);
  }
});

Deno.test("a counter on the common path costs a SET and an INCR, and no life of its own each time", async () => {
  await using servers = shared.lend();
  await using redlock = client(servers);
  await tokenOf(redlock, servers, "cheap");
  await Promise.all(servers.map((server) => server.resetCommandCounts()));
  await tokenOf(redlock, servers, "cheap");
  for (const server of servers) {
    const { set, incr, time, pexpire } = await server.commandCounts();
    assertEquals({ set, incr, time, pexpire }, {
      set: 1,
      incr: 1,
      time: undefined,
      pexpire: undefined,
    });
  }
});

for (
  const [what, agoMs, renewed] of [["two days", 2 * DAY_MS, true], [
    "an hour",
    DAY_MS / 24,
    false,
  ]] as const
) {
  Deno.test(`a counter that is ${what} old is ${renewed ? "given a new life" : "left its life"}`, async () => {
    await using servers = shared.lend();
    const before = (Date.now() - agoMs) * 1_000;
    await onAll(servers, "SET", "hasp:fence:old", before, "PX", DAY_MS);
    await using redlock = client(servers);
    const token = await tokenOf(redlock, servers, "old");
    assertGreater(token, before);
    for (const pttl of await onAll(servers, "PTTL", "hasp:fence:old")) {
      if (renewed) assertGreater(Number(pttl), WEEK_MS);
      else assertLess(Number(pttl), DAY_MS + 1);
    }
    assertGreater(await tokenOf(redlock, servers, "old"), token);
  });
}

// What is no counter

for (
  const value of [
    "abc",
    "-5",
    "-1",
    "1.5",
    "007",
    " 7",
    "9007199254740991",
    "9007199254740993",
    "99999999999999999999",
    "",
  ]
) {
  for (const resource of ["k", ["k", "l"]]) {
    const what = `${JSON.stringify(value)} under a counter's key of ${[resource].flat().length}`;
    Deno.test(`${what} is an error vote, and stays as it is`, async () => {
      await using servers = shared.lend();
      await using redlock = client(servers, 0, { waitMs: 0 });
      await servers[0].command("SET", "hasp:fence:k", value);
      await tokenOf(redlock, servers, resource); // the other two are enough
      await servers[1].command("SET", "hasp:fence:k", value);
      const error = await assertRejects(() => redlock.acquire(resource), QuorumError);
      const failed = error.votes.filter(({ outcome }) => outcome === "failed");
      assertEquals(failed.length, 2, Deno.inspect(error.votes));
      for (const server of servers.slice(0, 2)) {
        assertEquals(await server.command("GET", "hasp:fence:k"), value);
        assertEquals(await server.command("PTTL", "hasp:fence:k"), -1);
      }
      for (const key of [resource].flat()) await gone(servers, key);
    });
  }
}

Deno.test("a list under a counter's key is an error vote, and stays as it is", async () => {
  await using servers = shared.lend();
  await using redlock = client(servers, 0, { waitMs: 0 });
  await onAll(servers, "RPUSH", "hasp:fence:k", "x", "y");
  for (const resource of ["k", ["k", "l"]]) {
    const error = await assertRejects(() => redlock.acquire(resource), QuorumError);
    assert(error.votes.some(({ outcome }) => outcome === "failed"));
  }
  assertEquals(await onAll(servers, "LRANGE", "hasp:fence:k", 0, -1), Array(3).fill(["x", "y"]));
  await gone(servers, "k");
});

// Names

Deno.test("a fenced lock touches nothing but its key and what begins with hasp:", async () => {
  await using servers = shared.lend();
  await onAll(servers, "SET", "{a}:fence", "a lock of somebody");
  await onAll(servers, "SET", "{b}:fence", "41");
  await using redlock = client(servers);
  for (const resource of ["a", "b", ["a", "b"]]) await tokenOf(redlock, servers, resource);
  assertEquals(await onAll(servers, "GET", "{a}:fence"), Array(3).fill("a lock of somebody"));
  assertEquals(await onAll(servers, "GET", "{b}:fence"), Array(3).fill("41"));
  assertEquals(await onAll(servers, "PTTL", "{b}:fence"), Array(3).fill(-1));
});

Deno.test("resources that differ by braces alone have counters of their own", async () => {
  await using servers = shared.lend();
  await using redlock = client(servers);
  await onAll(servers, "SET", "hasp:fence:{a}", 4e15);
  assertLess(leadMs(await tokenOf(redlock, servers, "a")), MINUTE_MS);
  assertEquals(await tokenOf(redlock, servers, "{a}"), 4e15 + 1);
});
