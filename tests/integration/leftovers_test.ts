import { assert, assertEquals, assertRejects } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, QuorumError } from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import { gone, setOnAll, shareServers, startProxies, warmUp } from "../support/shared_servers.ts";
import { SLACK_MS, TTL_MS } from "../support/times.ts";

const shared = shareServers(5);
const { test } = shared;

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
