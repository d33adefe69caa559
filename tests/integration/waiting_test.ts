/**
 * Waiting on real servers: who is next, who leaves the queue, and what becomes of it if processes
 * stop, connections break and servers refuse. The simulator has the rest of the faults.
 */

import { assert, assertEquals, assertLessOrEqual } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { delay } from "@std/async/delay";
import type { Redlock, RedlockEvent } from "../../mod.ts";
import { encodeCommand, joinCommands } from "../../src/redis/encoder.ts";
import { connect } from "../../src/redis/mod.ts";
import { ACQUIRE_OR_WAIT } from "../../src/redis_node/scripts/acquire.ts";
import { ACQUIRE_ANY } from "../../src/redis_node/scripts/pool.ts";
import { QUEUE_LEAD_MS } from "../../src/redis_node/scripts/queue.ts";
import { RELEASE_QUEUED } from "../../src/redis_node/scripts/release.ts";
import { eventually } from "../support/eventually.ts";
import { type RedisServer, startServers } from "../support/servers.ts";
import { onAll, shareServers } from "../support/shared_servers.ts";
import { SLACK_MS, TTL_MS } from "../support/times.ts";
import {
  lineUp,
  openClients,
  PATIENT,
  queueOfLength,
  queuesOn,
  soon,
  startWaiter,
  subscriptions,
} from "../support/waiting_clients.ts";

const shared = shareServers(5, { rights: ["+select"] });
const { test } = shared;

const NONE = [0, 0, 0, 0, 0];
const QUEUE = "hasp:queue:job";

/** How long a whole crowd may take, in milliseconds; it needs a fraction of it. */
const CROWD_MS = 10_000;

/**
 * A client that is too slow to use its turn is overtaken, and a busy machine may make one slow: not
 * in each of three rounds.
 */
const ROUNDS_MAX = 3;

test("20 clients get one resource in the order in which they asked", async (servers) => {
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

test("a lock is handed over at once, whatever the polling delay and the TTL", async (servers) => {
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

test("a call that its signal ends leaves the queue on every node, and the next one is the first", async (servers) => {
  await using clients = openClients(servers.urls, 3);
  const [holder, leaver, waiter] = clients;
  const lock = await holder.acquire("job");
  const controller = new AbortController();
  const { signal } = controller;
  const left = await lineUp(leaver, "job", servers, 1, { ...PATIENT, signal });
  const { acquiring } = await lineUp(waiter, "job", servers, 2);
  const before = await queuesOn(servers, QUEUE);
  controller.abort("enough");
  assertEquals(await left.acquiring.catch((reason) => reason), "enough");
  await queueOfLength(servers, QUEUE, 1);
  const [leaving] = before.find(({ length }) => length === 2)!;
  await eventually(async () => {
    const staying = before.map((line) => line.filter((entry) => entry !== leaving));
    assertEquals(await queuesOn(servers, QUEUE), staying);
  });
  await lock.release();
  await (await soon(acquiring)).release();
  await queueOfLength(servers, QUEUE, 0);
});

test("a call for several resources stands only in the queues of those that are in its way", async (servers) => {
  await using clients = openClients(servers.urls, 3);
  const [holder, other, waiter] = clients;
  const lock = await holder.acquire("job");
  const acquiring = waiter.acquire(["idle", "job"]);
  await queueOfLength(servers, QUEUE, 1);
  await queueOfLength(servers, "hasp:queue:idle", 0);
  const idle = await other.acquire("idle");
  await lock.release();
  await queueOfLength(servers, "hasp:queue:idle", 1);
  await idle.release();
  await (await soon(acquiring)).release();
});

for (const resource of ["job", "job:{42}", "Größe 42 🔑", "a:b c\r\n", "42"]) {
  const keyPrefix = resource === "42" ? "lock:" : "";
  const queue = `hasp:queue:${keyPrefix}${resource}`;
  Deno.test(`waiting works for ${Deno.inspect(keyPrefix + resource)}, in the queue ${Deno.inspect(queue)}`, async () => {
    await using servers = shared.lend(3);
    await using clients = openClients(servers.urls, 2, { ...PATIENT, keyPrefix });
    const lock = await clients[0].acquire(resource);
    const acquiring = clients[1].acquire(resource);
    await queueOfLength(servers, queue, 1);
    assertEquals((await clients[0].inspect(resource)).waiters, 1);
    await lock.release();
    await (await soon(acquiring)).release();
    await eventually(async () => assertEquals(await onAll(servers, "DBSIZE"), [0, 0, 0]));
  });
}

test("waiting works in database 3, also beside the same resource in another", async (servers) => {
  await using zero = openClients(servers.urls, 2);
  await using three = openClients(servers.urls.map((url) => `${url}/3`), 2);
  const zeroth = await zero[0].acquire("job");
  const third = await three[0].acquire("job");
  const { acquiring } = await lineUp(zero[1], "job", servers);
  const waiting = three[1].acquire("job");
  await eventually(async () => assertEquals((await three[0].inspect("job")).waiters, 1));
  await third.release();
  await (await soon(waiting)).release();
  await queueOfLength(servers, QUEUE, 1);
  assert(zeroth.held);
  await zeroth.release();
  await (await soon(acquiring)).release();
  await eventually(async () => assertEquals(await onAll(servers, "DBSIZE"), NONE));
});

Deno.test("a quorum of nodes that has lost its queues and connections has the waiters in new ones, in their order", async () => {
  await using servers = shared.lend(3);
  await using clients = openClients(servers.urls, 3);
  const lock = await clients[0].acquire("job");
  const first = await lineUp(clients[1], "job", servers, 1);
  await delay(2 * QUEUE_LEAD_MS); // a new ticket that claims to be so much older goes to the end
  const second = await lineUp(clients[2], "job", servers, 2);
  await onAll(servers.slice(0, 2), "DEL", QUEUE);
  await onAll(servers.slice(0, 2), "CLIENT", "KILL", "TYPE", "pubsub");
  await queueOfLength(servers, QUEUE, 2);
  await lock.release();
  await (await soon(first.acquiring)).release();
  await (await soon(second.acquiring)).release();
});

test("a waiter is subscribed again after its connections are cut, and notified as before", async (servers) => {
  await using clients = openClients(servers.urls, 2);
  const lock = await clients[0].acquire("job");
  const { acquiring } = await lineUp(clients[1], "job", servers, 1);
  await onAll(servers, "CLIENT", "KILL", "TYPE", "pubsub");
  await eventually(async () => assertEquals(await subscriptions(servers), [1, 1, 1, 1, 1]));
  await onAll(servers, "CLIENT", "KILL", "TYPE", "normal");
  await eventually(async () => {
    for (const client of clients) {
      const votes = (await client.inspect("job")).votes.map(({ outcome }) => outcome);
      assertEquals(votes, Array(5).fill("held"));
    }
  });
  await queueOfLength(servers, QUEUE, 1);
  await lock.release();
  await (await soon(acquiring)).release();
});

/** Within what a free lock is taken, whatever the first in the queue does, in milliseconds. */
const TAKEN_WITHIN_MS = 1_500;

for (const fault of ["stopped", "stopped and killed after it was notified", "killed"]) {
  test(`a first in the queue that is ${fault} keeps a free lock from the next for 1.5 s at the most, whatever the TTL`, async (servers) => {
    await using clients = openClients(servers.urls, 2);
    const job = { urls: servers.urls, resource: "job", ttlMs: TTL_MS };
    await using first = await startWaiter(job);
    const lock = await clients[0].acquire("job");
    await first.write("ask");
    await queueOfLength(servers, QUEUE, 1);
    const { acquiring } = await lineUp(clients[1], "job", servers, 2);
    Deno.kill(first.pid, fault === "killed" ? "SIGKILL" : "SIGSTOP");
    await lock.release();
    if (fault.includes("killed after")) Deno.kill(first.pid, "SIGKILL");
    await (await soon(acquiring, TAKEN_WITHIN_MS)).release();
    const lengths = await onAll(servers, "ZCARD", QUEUE);
    assert(lengths.filter((length) => length === 0).length >= 3, `${lengths}`);
    // On the others it has its turn again each time that the lock is released.
    if (fault === "stopped") Deno.kill(first.pid, "SIGKILL");
    await eventually(async () => {
      await (await clients[0].acquire("job")).release(); // a server may notice the end only now
      assertEquals(await onAll(servers, "ZCARD", QUEUE), [0, 0, 0, 0, 0]);
    });
  });
}

for (const [count, fault] of [[5, "stopped"], [5, "killed"]] as const) {
  test(`${count} processes at the head of the queue that are ${fault} keep a free lock for 1.5 s at the most, beside one that subscribes to all channels`, async (servers) => {
    await using clients = openClients(servers.urls, 3, { ttlMs: TTL_MS, waitMs: TTL_MS });
    const job = { urls: servers.urls, resource: "job", ttlMs: TTL_MS };
    await using stack = new AsyncDisposableStack();
    for (const { hostname, port } of servers.urls.map((url) => new URL(url))) {
      const pattern = stack.use(await Deno.connect({ hostname, port: Number(port) }));
      await pattern.write(new TextEncoder().encode("PSUBSCRIBE *\r\n"));
    }
    const lock = await clients[0].acquire("job");
    const stuck = [];
    for (let place = 1; place <= count; place++) {
      const program = stack.use(await startWaiter(job));
      await program.write("ask");
      await queueOfLength(servers, QUEUE, place);
      stuck.push(program);
    }
    const { acquiring } = await lineUp(clients[1], "job", servers, count + 1);
    const next = await lineUp(clients[2], "job", servers, count + 2);
    for (const { pid } of stuck) Deno.kill(pid, fault === "stopped" ? "SIGSTOP" : "SIGKILL");
    await lock.release();
    await Promise.race([acquiring, next.acquiring].map((won) => soon(won, TAKEN_WITHIN_MS)));
    const released = [acquiring, next.acquiring].map(async (won) => (await won).release());
    await deadline(Promise.all(released), TAKEN_WITHIN_MS + SLACK_MS);
  });
}

Deno.test("an error that passes, such as too many clients, ends no notifications for good", async () => {
  await using servers = await startServers(3, { rights: ["+client|list", "+config|set"] });
  const refused: RedlockEvent[] = [];
  const onEvent = (event: RedlockEvent) => {
    if (event.type === "notify-refused") refused.push(event);
  };
  await using clients = openClients(servers.urls, 2, {
    ...PATIENT,
    retryDelayMs: 20,
    retryDelayMaxMs: 100,
    onEvent,
  });
  await using admins = new AsyncDisposableStack();
  const limits: (() => Promise<unknown>)[] = [];
  const lock = await clients[0].acquire("job");
  await clients[1].tryAcquire("job");
  for (const { url } of servers) {
    const admin = admins.use(await connect(url));
    const count = String(await admin.send(["CLIENT", "LIST"])).split("\n").filter(Boolean).length;
    await admin.send(["CONFIG", "SET", "maxclients", String(count)]);
    limits.push(() => admin.send(["CONFIG", "SET", "maxclients", "1000"]));
  }
  const acquiring = clients[1].acquire("job");
  acquiring.catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 300));
  await Promise.all(limits.map((raise) => raise()));
  await eventually(async () => assertEquals(await subscriptions(servers), [1, 1, 1]));
  await queueOfLength(servers, QUEUE, 1);
  await lock.release();
  await (await soon(acquiring)).release();
  assertEquals(refused, []);
});

/**
 * Has tickets arrive in a queue, all at once; returns what each cost the server, in microseconds.
 */
async function arrive(server: RedisServer, from: number, count: number): Promise<number> {
  const nowUs = Date.now() * 1_000;
  const commands = Array.from({ length: count }, (_, index) => {
    const ticket = `client${from + index}:1`;
    const args = ["v", 60_000, "", ticket, 0, nowUs + (index * 7_919) % 50_000];
    return encodeCommand(["EVALSHA", ACQUIRE_OR_WAIT.sha1, "1", "job", ...args.map(String)]);
  });
  await server.resetCommandCounts();
  using connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
  const bytes = joinCommands(commands);
  for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
  await eventually(async () => {
    assertEquals(await server.command("ZCARD", QUEUE), from + count);
  });
  const stats = String(await server.command("INFO", "commandstats"));
  return Number(/cmdstat_evalsha:.*usec_per_call=([\d.]+)/u.exec(stats)![1]);
}

Deno.test("an arrival in a queue of 4,000 costs a server at most three times what one in a queue of 100 costs", async () => {
  await using servers = shared.lend(1);
  const [server] = servers;
  await server.command("SET", "job", "held");
  await server.command("SCRIPT", "LOAD", ACQUIRE_OR_WAIT.source);
  await eventually(async () => { // the machine may be busy meanwhile
    await server.command("DEL", QUEUE);
    await arrive(server, 0, 100);
    const fewUs = await arrive(server, 100, 200);
    await arrive(server, 300, 3_700);
    assertLessOrEqual(await arrive(server, 4_000, 200) / fewUs, 3);
  });
});

test("a queue's key that holds something else is left alone, and locks work beside it by polling", async (servers) => {
  await using clients = openClients(servers.urls, 2, {
    ...PATIENT,
    retryDelayMs: 20,
    retryDelayMaxMs: 50,
  });
  await onAll(servers, "SET", QUEUE, "somebody's");
  const lock = await clients[0].acquire("job");
  const acquiring = clients[1].acquire("job");
  acquiring.catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert(await lock.release());
  const next = await soon(acquiring);
  assert(await next.release());
  assertEquals(await onAll(servers, "GET", QUEUE), Array(5).fill("somebody's"));
  await onAll(servers, "DEL", QUEUE);
  const again = await clients[0].acquire("job");
  const { acquiring: last } = await lineUp(clients[1], "job", servers);
  await again.release();
  await (await soon(last)).release();
});

test("when a watcher of another's turn leaves the queue, the next is told how long that lasts, but not by one that takes a key of a pool", async (servers) => {
  const command = (...args: (string | number)[]) => servers[0].command(...args);
  await command("ZADD", QUEUE, 1, "first:1:50", 2, "second:1:50", 3, "third:1:50.2", 4, "last:1:");
  await command("SET", "hasp:turn:job", "first:1:50", "PX", 60_000);
  await servers[0].resetCommandCounts();
  await command("EVAL", RELEASE_QUEUED.source, 1, "job", "value", "second:1:50");
  await command("EVAL", ACQUIRE_ANY.source, 2, "b", "job", 1, "v", 9, "", "third:1:50.", 3, 1);
  assertEquals((await servers[0].commandCounts()).publish, 2);
});

test("a turn for a held key is over once its ticket asks, also if that is not the first in the queue", async (servers) => {
  const command = (...args: (string | number)[]) => servers[0].command(...args);
  await command("ZADD", QUEUE, 1, "first:1:50", 2, "second:1:50");
  await command("SET", "hasp:turn:job", "second:1:50", "PX", 60_000);
  await command("SET", "job", "held");
  await command("EVAL", ACQUIRE_OR_WAIT.source, 1, "job", "v", 9, "", "second:1:50", 2, 1);
  assertEquals(await command("EXISTS", "hasp:turn:job"), 0);
});
