/**
 * Calls for any one of several resources, on real servers: as many have one as there are, whatever
 * becomes of nodes.
 */
import { assertEquals, assertGreater, assertLessOrEqual } from "@std/assert";
import { createRedlock, type Redlock, slots } from "../../mod.ts";
import { ACQUIRE_ANY } from "../../src/redis_node/scripts/pool.ts";
import { eventually } from "../support/eventually.ts";
import { commandsSentTo } from "../support/monitor.ts";
import { lockAsForeigner } from "../support/foreign_client.ts";
import { hangInTurn, openEight } from "../support/hang_in_turn.ts";
import { startServers } from "../support/servers.ts";
import { onAll, shareServers, warmUp } from "../support/shared_servers.ts";
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

/** Who works on what, by name. */
class Work {
  readonly #now = new Map<string, string>();
  /** How often each name was worked on. */
  readonly counts: Record<string, number> = {};
  most = 0;

  /** Somebody works for some time. */
  async work(name: string, who: string, ms: number): Promise<void> {
    const other = this.#now.get(name);
    if (other !== undefined) throw new Error(`${who} and ${other} both have ${name}`);
    this.#now.set(name, who);
    this.most = Math.max(this.most, this.#now.size);
    this.counts[name] = (this.counts[name] ?? 0) + 1;
    await new Promise((resolve) => setTimeout(resolve, ms));
    this.#now.delete(name);
  }
}

Deno.test("callers of one, of any and of another library never have one resource together, while a node hangs", async () => {
  await using servers = await startServers(5);
  await using clients = openEight(servers);
  const work = new Work();
  let over = false;
  const callers = async (client: Redlock, index: number) => {
    for (let count = 0; count < 15; count++) {
      const one = index < 2;
      const resource = one ? NAMES[(index + count) % 3] : index % 2 ? NAMES : [...NAMES].reverse();
      await client.using(resource, { any: !one }, async ({ resources }) => {
        assertEquals(resources.length, 1);
        await work.work(resources[0], `client ${index}`, 5);
      });
    }
  };
  let granted = 0;
  const foreigner = async () => {
    while (!over) {
      const name = NAMES[granted % 3];
      const job = () => work.work(name, "another library", 10);
      granted += Number(await lockAsForeigner(servers.slice(2), name, job));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const running = Promise.all(clients.map(callers)).finally(() => over = true);
  const outcomes = await Promise.allSettled([
    running,
    hangInTurn(servers, () => over),
    foreigner(),
  ]);
  for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  assertEquals(Object.keys(work.counts).sort(), NAMES);
  assertLessOrEqual(work.most, 3);
  assertGreater(work.most, 1);
  for (const name of NAMES) {
    await eventually(async () => {
      assertEquals(await onAll(servers, "EXISTS", name, `hasp:queue:${name}`), [0, 0, 0, 0, 0]);
    });
  }
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
