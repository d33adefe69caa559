import { assertEquals, assertLess, assertMatch, assertRejects } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, LockLostError } from "../../mod.ts";
import { abortedAt } from "../support/eventually.ts";
import type { FaultProxy } from "../../src/testing/mod.ts";
import { type Group, type RedisServer, startServers } from "../support/servers.ts";
import { onAll, setOnAll, startProxies, warmUp } from "../support/shared_servers.ts";
import { IN_THIRDS, SLACK_MS } from "../support/times.ts";

/** What takes the majority from a lock that `using` extends. */
const LOSSES: [string, (servers: readonly RedisServer[], proxies: Group<FaultProxy>) => unknown][] =
  [
    ["hung", (servers) => Promise.all(servers.slice(0, 3).map((server) => server.pause()))],
    ["killed", (servers) => Promise.all(servers.slice(0, 3).map((server) => server.kill()))],
    ["half open", (_servers, proxies) => {
      for (const proxy of proxies.slice(0, 3)) proxy.halfOpen();
    }],
    [
      "refusing connections",
      (_servers, proxies) => Promise.all(proxies.slice(0, 3).map((proxy) => proxy.refuse())),
    ],
    ["refusing to write", (servers) => onAll(servers.slice(0, 3), "REPLICAOF", "127.0.0.1", 1)],
  ];

Deno.test("using() aborts lock.signal before the TTL once it loses the majority, and rejects though the routine resolves", async (t) => {
  // Side by side, because each waits for a TTL.
  const unshared = { sanitizeExit: false, sanitizeOps: false, sanitizeResources: false };
  await Promise.all(LOSSES.map(([what, strike]) => {
    const fn = async () => {
      await using servers = await startServers(5);
      await using proxies = await startProxies(servers);
      await using redlock = createRedlock(proxies.urls);
      await warmUp(redlock, servers);
      const startMs = performance.now();
      let abortMs = Infinity;
      const error = await assertRejects(
        () =>
          deadline(
            redlock.using("lost", IN_THIRDS, async (lock) => {
              const aborted = abortedAt(lock.signal);
              await setOnAll(servers, "lost", lock);
              await strike(servers, proxies);
              abortMs = await aborted;
              assertEquals([lock.held, lock.remainingMs()], [false, 0]);
            }),
            IN_THIRDS.ttlMs + SLACK_MS,
          ),
        LockLostError,
      );
      assertLess(abortMs, startMs + IN_THIRDS.ttlMs);
      assertMatch(
        error.message,
        /^Cannot keep lock "lost": its validity has ended(, because the process stood still for about \d+ ms| before an extension succeeded: [012] of 5 nodes extended it(, [123] (failed|timed out))?, 3 are needed(; first error: .+)?)$/,
      );
    };
    return t.step({ name: `the majority is ${what}`, fn, ...unshared });
  }));
});
