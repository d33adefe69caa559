/** Calls for any one of several resources, on real servers. The simulator has the faults. */
import { assertEquals } from "@std/assert";
import { createRedlock, slots } from "../../mod.ts";
import { ACQUIRE_ANY } from "../../src/redis_node/scripts/pool.ts";
import { commandsSentTo } from "../support/monitor.ts";
import { startServers } from "../support/servers.ts";
import { shareServers, warmUp } from "../support/shared_servers.ts";
import { openClients, queueOfLength, soon } from "../support/waiting_clients.ts";

const { test } = shareServers(5);
const NAMES = slots("gpu", 3);
const ANY = { any: true } as const;

test("of an idle pool, a lock costs each node one SET and one EVALSHA, and is on one resource", async (servers) => {
  await using redlock = createRedlock(servers.urls);
  await warmUp(redlock, servers);
  const names: string[] = [];
  const sent = await commandsSentTo(servers, async () => {
    for (let count = 0; count < 3; count++) {
      const lock = await redlock.acquire(NAMES, ANY);
      names.push(...lock.resources);
      await lock.release();
    }
    await redlock.close();
  });
  for (const counts of sent) assertEquals(counts, { set: 3, evalsha: 3 });
  assertEquals([names.length, new Set(names).size], [3, 1]);
});

Deno.test("a caller overtakes nine thousand that wait for the same pool", async () => {
  await using servers = await startServers(1);
  const command = (...args: (string | number)[]) => servers[0].command(...args);
  const fill = `for i = 1, 9001 do for k = 1, 2 do
    redis.call('ZADD', 'hasp:queue:' .. KEYS[k], i, i .. ':1:50:.' .. k) end end`;
  await command("EVAL", fill, 2, "a", "b");
  await command("SET", "hasp:turn:a", "1:1:50:.1", "PX", 1_000); // the record of one that is over
  const args = ["1", "value", "10000", "", "9001:1:50:.", "9001", ""];
  assertEquals(await command("EVAL", ACQUIRE_ANY.source, 2, "a", "b", ...args), 1);
  assertEquals(await command("EXISTS", "hasp:queue:a", "hasp:queue:b"), 0);
});

test("a node that is filled with other types than locks and queues fails, and the others decide", async (servers) => {
  await using clients = openClients(servers.urls, 2);
  for (const name of NAMES) await servers[0].command("RPUSH", `hasp:queue:${name}`, "x");
  const locks = await Promise.all(NAMES.map((name) => clients[0].acquire(name)));
  const waiting = clients[1].acquire(NAMES, ANY);
  await queueOfLength(servers.slice(1), "hasp:queue:gpu:0", 1);
  await locks[2].release();
  assertEquals((await soon(waiting)).resources, ["gpu:2"]);
});
