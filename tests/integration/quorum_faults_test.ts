import { assertEquals, assertLess } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, type Redlock } from "../../mod.ts";
import type { FaultProxy } from "../../src/testing/mod.ts";
import { type Group, type RedisServer, startServers } from "../support/servers.ts";
import { onAll, shareServers, startProxies, warmUp } from "../support/shared_servers.ts";
import { LONG_NODE_TIMEOUT_MS, SLACK_MS, TTL_MS } from "../support/times.ts";

const shared = shareServers(5);

/** A way for nodes to fail. */
interface Fault {
  name: string;
  /** Whether servers are killed, which must be a test's own then. */
  kills?: boolean;
  strike(servers: readonly RedisServer[], proxies: readonly FaultProxy[]): Promise<unknown> | void;
}

const FAULTS: Fault[] = [
  { name: "hung", strike: (servers) => Promise.all(servers.map((server) => server.pause())) },
  {
    name: "killed",
    kills: true,
    strike: (servers) => Promise.all(servers.map((server) => server.kill())),
  },
  {
    name: "refusing connections",
    strike: (_servers, proxies) => Promise.all(proxies.map((proxy) => proxy.refuse())),
  },
  {
    name: "accepting connections that lead nowhere",
    strike(_servers, proxies) {
      for (const proxy of proxies) {
        proxy.hang();
        proxy.cut();
      }
    },
  },
  { name: "read-only", strike: (servers) => onAll(servers, "REPLICAOF", "127.0.0.1", 1) },
  {
    name: "without enough replicas",
    strike: (servers) => onAll(servers, "CONFIG", "SET", "min-replicas-to-write", 1),
  },
  {
    name: "slow by 1500 ms",
    strike(_servers, proxies) {
      for (const proxy of proxies) proxy.delay(1_500, "replies");
    },
  },
];

/** What a slow node must not be waited for. */
const UNSLOWED_MS = 1_200;

function lendOrStart(
  { kills = false }: Fault,
): Group<RedisServer> | ReturnType<typeof startServers<5>> {
  return kills ? startServers(5) : shared.lend();
}

async function acquireAndRelease(redlock: Redlock, resource: string): Promise<void> {
  const lock = await deadline(redlock.acquire(resource), SLACK_MS);
  assertEquals(lock.held, true);
  await deadline(lock.extend(), SLACK_MS);
  assertEquals(await deadline(lock.release(), SLACK_MS), true);
}

for (const fault of FAULTS) {
  for (const count of [1, 2]) {
    Deno.test(`acquire(), extend() and release() wait for no more than a quorum with ${count} of five nodes ${fault.name}`, async () => {
      await using servers = await lendOrStart(fault);
      await using proxies = await startProxies(servers);
      await using redlock = createRedlock(proxies.urls, {
        ttlMs: TTL_MS,
        nodeTimeoutMs: LONG_NODE_TIMEOUT_MS,
      });
      await warmUp(redlock, servers);
      await fault.strike(servers.slice(0, count), proxies.slice(0, count));
      let fastestMs = Infinity;
      for (let round = 0; round < 3; round++) {
        const startMs = performance.now();
        await acquireAndRelease(redlock, `round ${round}`);
        fastestMs = Math.min(fastestMs, performance.now() - startMs);
      }
      assertLess(fastestMs, UNSLOWED_MS);
    });
  }

  Deno.test(`acquire() of a fresh client waits for no more than a quorum with two of five nodes ${fault.name}`, async () => {
    await using servers = await lendOrStart(fault);
    await using proxies = await startProxies(servers);
    await fault.strike(servers.slice(0, 2), proxies.slice(0, 2));
    await using redlock = createRedlock(proxies.urls, {
      ttlMs: TTL_MS,
      nodeTimeoutMs: LONG_NODE_TIMEOUT_MS,
    });
    await acquireAndRelease(redlock, "fresh");
  });
}
