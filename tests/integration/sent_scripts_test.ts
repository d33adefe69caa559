/** How scripts reach real servers that do not know them. */
import { assertEquals, assertLessOrEqual } from "@std/assert";
import { createRedlock } from "../../mod.ts";
import { parseAddress } from "../../src/redis/address.ts";
import { resolveClientOptions } from "../../src/redis/client_options.ts";
import { RedisNode } from "../../src/redis_node/redis_node.ts";
import { redisServer } from "../../src/redis_node/redis_server.ts";
import { TimerWheel } from "../../src/time/timer_wheel.ts";
import { eventually } from "../support/eventually.ts";
import { FakeRequest } from "../support/fake_request.ts";
import { gone, onAll, shareServers } from "../support/shared_servers.ts";
import { TTL_MS } from "../support/times.ts";

const shared = shareServers(3);

for (const keys of [["k"], ["k", "l"]]) {
  Deno.test(`a lock of ${keys.length} is granted right behind the first release of a connection, whose script the server does not know`, async () => {
    await using servers = shared.lend(1);
    await onAll(servers, "SCRIPT", "FLUSH");
    const wheel = new TimerWheel();
    const connection = resolveClientOptions({ stallTimeoutMs: 5_000 });
    const node = new RedisNode(redisServer(parseAddress(servers[0].url), connection, wheel));
    const requests = ["one", "two"].map((value) => new FakeRequest(keys, { value }));
    node.ask("acquire", requests[0], 0);
    node.ask("release", requests[0], 0);
    node.ask("acquire", requests[1], 0);
    await eventually(() => assertEquals(requests[1].answers.length, 1));
    assertEquals(requests[0].outcomes, ["granted", "granted"]);
    assertEquals(requests[1].outcomes, ["granted"]);
    await node.close();
    wheel.close();
  });
}

Deno.test("a thousand releases after SCRIPT FLUSH send a server the whole script once for each group", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: 10 * TTL_MS, nodeTimeoutMs: 10_000 });
  const take = () =>
    Promise.all(Array.from({ length: 1_000 }, (_, index) => redlock.acquire(`lock ${index}`)));
  for (const lock of await take()) await lock.release(); // the script is known from here on
  const locks = await take();
  await eventually(() => locks.every(({ votes }) => votes.length === servers.length));
  await onAll(servers, "SCRIPT", "FLUSH");
  await Promise.all(servers.map((server) => server.resetCommandCounts()));
  assertEquals(new Set(await Promise.all(locks.map((lock) => lock.release()))), new Set([true]));
  await gone(servers, "lock 999");
  for (const server of servers) assertLessOrEqual((await server.commandCounts()).eval, 4);
});
