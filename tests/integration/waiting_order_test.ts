/**
 * Who is next: the order among callers of one client, among clients, and among both.
 */
import { assert, assertEquals, assertLessOrEqual } from "@std/assert";
import { deadline } from "@std/async/deadline";
import type { Redlock } from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import { onAll, shareServers, startProxies } from "../support/shared_servers.ts";
import type { RedisServer } from "../support/servers.ts";
import { TTL_MS } from "../support/times.ts";
import {
  lineUp,
  openClients,
  PATIENT,
  queueOfLength,
  soon,
  subscriptions,
} from "../support/waiting_clients.ts";

const shared = shareServers(5);

/** How long a whole crowd may take, in milliseconds; it needs a fraction of it. */
const CROWD_MS = 10_000;

/**
 * A client that is too slow to use its turn is overtaken, and a busy machine may make one slow: not
 * in each of three rounds.
 */
const ROUNDS_MAX = 3;

Deno.test("20 clients get one resource in the order in which they asked", async () => {
  await using servers = shared.lend();
  await using clients = openClients(servers.urls, 21);
  const [holder, ...waiting] = clients;
  await haveAllListen(clients, servers);
  const inOrder = waiting.map((_, index) => index);
  for (let round = 1;; round++) {
    const order: number[] = [];
    const done: Promise<void>[] = [];
    const first = await holder.acquire("job");
    for (const [index, client] of waiting.entries()) {
      const { acquiring } = await lineUp(client, "job", servers, index + 1);
      done.push(acquiring.then(async (lock) => {
        order.push(index);
        await lock.release();
      }));
    }
    await first.release();
    await deadline(Promise.all(done), CROWD_MS);
    await queueOfLength(servers, "hasp:queue:job", 0);
    if (round === ROUNDS_MAX) return assertEquals(order, inOrder);
    if (order.every((index, at) => index === inOrder[at])) return;
  }
});

Deno.test("20 callers of one client get one resource in the order in which they asked", async () => {
  await using servers = shared.lend();
  await using clients = openClients(servers.urls, 1);
  const [client] = clients;
  const order: number[] = [];
  const callers = Array.from({ length: 20 }, (_, index) =>
    client.using("job", () => {
      order.push(index);
    }));
  await deadline(Promise.all(callers), CROWD_MS);
  assertEquals(order, callers.map((_, index) => index));
});

Deno.test("a lock is handed over at once, whatever the polling delay and the TTL", async () => {
  await using servers = shared.lend();
  await using clients = openClients(servers.urls, 2);
  const [one, other] = clients;
  let held = await one.acquire("job");
  for (let turn = 0; turn < 20; turn++) {
    const { acquiring } = await lineUp(turn % 2 === 0 ? other : one, "job", servers);
    await held.release();
    held = await soon(acquiring);
  }
  await held.release();
});

Deno.test("a call reports that it was notified", async () => {
  await using servers = shared.lend();
  await using clients = openClients(servers.urls, 2);
  const lock = await clients[0].acquire("job");
  const events: string[] = [];
  const { acquiring } = await lineUp(clients[1], "job", servers, 1, {
    ...PATIENT,
    onEvent: ({ type }) => events.push(type),
  });
  await lock.release();
  await (await soon(acquiring)).release();
  assertEquals(events.filter((type) => type === "woken").length, 1);
  assertEquals(events.slice(-3), ["attempt", "acquired", "released"]);
});

Deno.test("a client with 10 callers does not starve another with one", async () => {
  await using servers = shared.lend();
  await using clients = openClients(servers.urls, 3);
  const [holder, crowded, lonely] = clients;
  const order: string[] = [];
  const enter = async (client: Redlock, name: string) => {
    const lock = await client.acquire("job");
    order.push(name);
    await lock.release();
  };
  const first = await holder.acquire("job");
  const crowd = Array.from({ length: 10 }, () => enter(crowded, "crowd"));
  await queueOfLength(servers, "hasp:queue:job", 1);
  const loner = (async () => {
    for (let turn = 0; turn < 4; turn++) await enter(lonely, "loner");
  })();
  await queueOfLength(servers, "hasp:queue:job", 2);
  await first.release();
  await deadline(Promise.all([...crowd, loner]), CROWD_MS);
  assertEquals(order.length, 14);
  // They alternate; a caller that comes back lines up again, so the other may get one more turn.
  const before = order.join(" ").split("loner").map((part) => part.split("crowd").length - 1);
  for (const turns of before.slice(0, 4)) assertLessOrEqual(turns, 2, order.join(" "));
});

Deno.test("a client that has the lock lets another that waits go before its own callers", async () => {
  await using servers = shared.lend();
  await using proxies = await startProxies(servers);
  for (const proxy of proxies) proxy.delay(10, "replies"); // who is woken late is next all the same
  await using clients = openClients(servers.urls, 1);
  await using others = openClients(proxies.urls, 1);
  const [[holder], [waiter]] = [clients, others];
  const order: string[] = [];
  const enter = async (client: Redlock, name: string) => {
    const lock = await client.acquire("job");
    order.push(name);
    await lock.release();
  };
  const first = await holder.acquire("job");
  const own = Array.from({ length: 10 }, () => enter(holder, "own"));
  const other = enter(waiter, "other");
  await queueOfLength(servers, "hasp:queue:job", 1);
  await first.release();
  await deadline(Promise.all([...own, other]), CROWD_MS);
  assertEquals(order.indexOf("other"), 0, order.join(" "));
});

Deno.test("tryAcquire() and waitMs 0 join no queue, and take nothing from calls that wait", async () => {
  await using servers = shared.lend();
  await using clients = openClients(servers.urls, 3);
  const [holder, waiter, passer] = clients;
  const lock = await holder.acquire("job");
  assertEquals(await passer.tryAcquire("job"), undefined);
  assertEquals(await passer.acquire("job", { waitMs: 0 }).catch(({ code }) => code), "LOCK_HELD");
  assertEquals(await onAll(servers, "EXISTS", "hasp:queue:job"), [0, 0, 0, 0, 0]);
  const { acquiring } = await lineUp(waiter, "job", servers);
  assertEquals(await passer.tryAcquire("job"), undefined);
  await queueOfLength(servers, "hasp:queue:job", 1);
  await lock.release();
  await (await soon(acquiring)).release();
});

Deno.test("sets of resources that overlap all get their turn, in whatever order they are named", async () => {
  await using servers = shared.lend();
  await using clients = openClients(servers.urls, 4, { ttlMs: TTL_MS, waitMs: TTL_MS });
  const sets = [["a", "b"], ["b", "c"], ["c", "a"], ["b", "a"]];
  const inside = new Set<string>();
  let entries = 0;
  await deadline(
    Promise.all(clients.map(async (client, index) => {
      for (let round = 0; round < 5; round++) {
        const lock = await client.acquire(sets[index]);
        for (const resource of sets[index]) {
          assert(!inside.has(resource));
          inside.add(resource);
        }
        await Promise.resolve();
        for (const resource of sets[index]) inside.delete(resource);
        entries++;
        await lock.release();
      }
    })),
    CROWD_MS,
  );
  assertEquals(entries, 20);
  for (const resource of ["a", "b", "c"]) {
    await queueOfLength(servers, `hasp:queue:${resource}`, 0);
  }
  await eventually(async () => assertEquals(await onAll(servers, "DBSIZE"), [0, 0, 0, 0, 0]));
});

/** Has all clients but the first wait once: from then on every node puts them in line at once. */
async function haveAllListen(
  [holder, ...waiting]: readonly Redlock[],
  servers: readonly RedisServer[],
): Promise<void> {
  const lock = await holder.acquire("warm-up");
  const callers = waiting.map((client) => client.using("warm-up", () => {}));
  await eventually(async () => {
    assertEquals(await subscriptions(servers), servers.map(() => waiting.length));
  });
  await queueOfLength(servers, "hasp:queue:warm-up", waiting.length);
  await lock.release();
  await deadline(Promise.all(callers), CROWD_MS);
}
