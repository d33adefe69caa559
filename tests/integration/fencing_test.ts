/** Fencing tokens over real servers: that they rise, what they cost, what their counters are. */

import { assert, assertEquals, assertGreater, assertLess, assertRejects } from "@std/assert";
import { QuorumError, type Redlock, type RedlockOptions } from "../../mod.ts";
import { parseAddress } from "../../src/redis/address.ts";
import { resolveClientOptions } from "../../src/redis/client_options.ts";
import { RedisNode } from "../../src/redis_node/redis_node.ts";
import { redisServer } from "../../src/redis_node/redis_server.ts";
import { redlockOn } from "../../src/redlock.ts";
import { systemClock } from "../../src/time/clock.ts";
import { TimerWheel } from "../../src/time/timer_wheel.ts";
import { eventually } from "../support/eventually.ts";
import { FakeRequest } from "../support/fake_request.ts";
import type { RedisServer } from "../support/servers.ts";
import { gone, onAll, shareServers } from "../support/shared_servers.ts";
import { testOf } from "../support/test_of.ts";
import { TTL_MS } from "../support/times.ts";

const shared = shareServers(5);
const test = Object.assign(shared.test, { onThree: testOf(() => shared.lend(3)) });

const MINUTE_MS = 60_000;

/** By how much a token is ahead of this machine's clock, in milliseconds. */
function leadMs(token: number): number {
  return token / 1_000 - Date.now();
}

// What stands on the servers

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
    node.ask("acquire", new FakeRequest("filled"), 0);
    node.ask("raiseCounters", new FakeRequest("filled", { counterFloor: token }), 0);
    await eventually(async () => {
      assert(counts(Number(await servers[0].command("GET", "hasp:fence:filled"))));
    });
    assertEquals(await servers[0].command("GET", "filled"), "v");
    await node.close();
    wheel.close();
  });
}

// Where a clock is wrong, or something else stands under the key of a counter

const DAY_MS = 24 * 60 * MINUTE_MS;
const WEEK_MS = 7 * DAY_MS;

/** A client whose wall clock is wrong by `aheadMs`. */
function skewedClient(
  servers: { urls: readonly string[] },
  aheadMs = 0,
  options: RedlockOptions = {},
) {
  const wallMs = () => systemClock.wallMs() + aheadMs;
  const wheel = new TimerWheel({ ...systemClock, wallMs });
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

test.onThree("a client whose clock is a little off has all counters start alike", async (servers) => {
  for (const aheadMs of [-50_000, 50_000]) {
    await using redlock = skewedClient(servers, aheadMs);
    const token = await tokenOf(redlock, servers, `off by ${aheadMs}`);
    assert(Math.abs(leadMs(token) - aheadMs) < 10_000, `${leadMs(token)}`);
    assertEquals(
      await onAll(servers, "GET", `hasp:fence:off by ${aheadMs}`),
      Array(3).fill(String(token)),
    );
  }
});

test.onThree("a token that is ahead of the clocks is not carried to other resources", async (servers) => {
  await onAll(servers, "SET", "hasp:fence:ahead", 4e15);
  await using redlock = skewedClient(servers);
  assertEquals(await tokenOf(redlock, servers, "ahead"), 4e15 + 1);
  assertLess(leadMs(await tokenOf(redlock, servers, "another")), MINUTE_MS);
});

for (
  const [what, agoMs, renewed] of [["two days", 2 * DAY_MS, true], [
    "an hour",
    DAY_MS / 24,
    false,
  ]] as const
) {
  test.onThree(`a counter that is ${what} old is ${renewed ? "given a new life" : "left its life"}`, async (servers) => {
    const before = (Date.now() - agoMs) * 1_000;
    await onAll(servers, "SET", "hasp:fence:old", before, "PX", DAY_MS);
    await using redlock = skewedClient(servers);
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
    test.onThree(`${what} is an error vote, and stays as it is`, async (servers) => {
      await using redlock = skewedClient(servers, 0, { waitMs: 0 });
      await servers[0].command("SET", "hasp:fence:k", value);
      await servers[2].command("SET", "hasp:fence:k", 4e15); // so that counters are raised
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

test.onThree("a list under a counter's key is an error vote, and stays as it is", async (servers) => {
  await using redlock = skewedClient(servers, 0, { waitMs: 0 });
  await onAll(servers, "RPUSH", "hasp:fence:k", "x", "y");
  for (const resource of ["k", ["k", "l"]]) {
    const error = await assertRejects(() => redlock.acquire(resource), QuorumError);
    assert(error.votes.some(({ outcome }) => outcome === "failed"));
  }
  assertEquals(await onAll(servers, "LRANGE", "hasp:fence:k", 0, -1), Array(3).fill(["x", "y"]));
  await gone(servers, "k");
});

// Names

test.onThree("a fenced lock touches nothing but its key and what begins with hasp:", async (servers) => {
  await onAll(servers, "SET", "{a}:fence", "a lock of somebody");
  await onAll(servers, "SET", "{b}:fence", "41");
  await using redlock = skewedClient(servers);
  for (const resource of ["a", "b", ["a", "b"]]) await tokenOf(redlock, servers, resource);
  assertEquals(await onAll(servers, "GET", "{a}:fence"), Array(3).fill("a lock of somebody"));
  assertEquals(await onAll(servers, "GET", "{b}:fence"), Array(3).fill("41"));
  assertEquals(await onAll(servers, "PTTL", "{b}:fence"), Array(3).fill(-1));
});

test.onThree("resources that differ by braces alone have counters of their own", async (servers) => {
  await using redlock = skewedClient(servers);
  await onAll(servers, "SET", "hasp:fence:{a}", 4e15);
  assertLess(leadMs(await tokenOf(redlock, servers, "a")), MINUTE_MS);
  assertEquals(await tokenOf(redlock, servers, "{a}"), 4e15 + 1);
});
