/**
 * Waiting on real servers: names, databases, processes that stop, and what a queue costs a server.
 * The rules of the queue are tested where the scripts run in memory, and by the simulator.
 */

import { assert, assertEquals, assertLessOrEqual } from "@std/assert";
import { encodeCommand, joinCommands } from "../../src/redis/encoder.ts";
import { ACQUIRE_OR_WAIT } from "../../src/redis_node/scripts/acquire.ts";
import { ACQUIRE_ANY } from "../../src/redis_node/scripts/pool.ts";
import { RELEASE, RELEASE_QUEUED } from "../../src/redis_node/scripts/release.ts";
import { eventually } from "../support/eventually.ts";
import type { RedisServer } from "../support/servers.ts";
import { onAll, shareServers } from "../support/shared_servers.ts";
import { TTL_MS } from "../support/times.ts";
import {
  lineUp,
  openClients,
  PATIENT,
  queueOfLength,
  soon,
  startWaiter,
} from "../support/waiting_clients.ts";

const shared = shareServers(5, { rights: ["+select"] });
const { test } = shared;

const NONE = [0, 0, 0, 0, 0];
const QUEUE = "hasp:queue:job";
const TURN = "hasp:turn:job";

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

for (const fault of ["SIGSTOP", "SIGKILL"] as const) {
  test(`five processes at the head of the queue that get ${fault} keep a free lock for 1.5 s at the most, beside a client that subscribes to all channels`, async (servers) => {
    await using clients = openClients(servers.urls, 3);
    await using stack = new AsyncDisposableStack();
    for (const server of servers) { // by it, every notification has a receiver
      const { port, username, password } = server.admin;
      const everything = stack.use(await Deno.connect({ hostname: "127.0.0.1", port }));
      const login = username === undefined ? "" : `AUTH ${username} ${password}\r\n`;
      await everything.write(new TextEncoder().encode(`${login}PSUBSCRIBE *\r\n`));
    }
    await eventually(async () => {
      assertEquals(await onAll(servers, "PUBSUB", "NUMPAT"), [1, 1, 1, 1, 1]);
    });
    const lock = await clients[0].acquire("job");
    const stuck = [];
    for (let place = 1; place <= 5; place++) {
      const program = await startWaiter({ urls: servers.urls, resource: "job", ttlMs: TTL_MS });
      stuck.push(stack.use(program));
      await program.write("ask");
      await queueOfLength(servers, QUEUE, place);
    }
    const next = await lineUp(clients[1], "job", servers, 6);
    const last = await lineUp(clients[2], "job", servers, 7);
    for (const { pid } of stuck) Deno.kill(pid, fault);
    await lock.release();
    const winners = [next.acquiring, last.acquiring];
    await Promise.race(winners.map((won) => soon(won, TAKEN_WITHIN_MS)));
    await Promise.all(winners.map(async (won) => (await soon(won, 2 * TAKEN_WITHIN_MS)).release()));
  });
}

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

for (const [name, any] of [[QUEUE, false], [TURN, false], [TURN, true]] as const) {
  test(`what somebody else has under ${name} is left alone, and locks work beside it, any: ${any}`, async (servers) => {
    const retries = { retryDelayMs: 20, retryDelayMaxMs: 50 };
    await using clients = openClients(servers.urls, 2, { ...PATIENT, ...retries });
    await onAll(servers.slice(0, 3), "RPUSH", name, "somebody's");
    await onAll(servers.slice(3), "SET", name, "somebody's");
    const lock = await clients[0].acquire("job");
    const acquiring = clients[1].acquire(["job"], { any });
    acquiring.catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert(await lock.release());
    const next = await soon(acquiring);
    assert(await next.release());
    const types = ["list", "list", "list", "string", "string"];
    assertEquals(await onAll(servers, "TYPE", name), types);
    await onAll(servers, "DEL", name);
    const again = await clients[0].acquire("job");
    const { acquiring: last } = await lineUp(clients[1], "job", servers);
    await again.release();
    await (await soon(last)).release();
  });
}

test("if somebody else has a turn's key, a newcomer waits for the first, and one in the queue does not", async ([server]) => {
  using waiter = await Deno.connect({ port: server.port });
  await waiter.write(new TextEncoder().encode("SUBSCRIBE hasp:wake:x\r\n"));
  await waiter.read(new Uint8Array(100));
  await server.command("RPUSH", TURN, "somebody's");
  await server.command("ZADD", QUEUE, 1, "x:1:50", 2, "x:2:50");
  await server.command("SET", "job", "v");
  assertEquals(await server.command("EVAL", RELEASE.source, 1, "job", "v"), 2);
  const ask = (ticket: string) =>
    server.command("EVAL", ACQUIRE_OR_WAIT.source, 1, "job", "v", TTL_MS, "", ticket, 3, "");
  const position = await ask("new:1:50") as number[];
  assertEquals([position[0], position[7]], [-2, 100]);
  assertEquals(await ask("x:2:50"), 1);
});

test("when a watcher of another's turn leaves the queue, the next is told how long that lasts, but not by one that takes a key of a pool", async (servers) => {
  const command = (...args: (string | number)[]) => servers[0].command(...args);
  await command("ZADD", QUEUE, 1, "first:1:50", 2, "second:1:50", 3, "third:1:50.2", 4, "last:1:");
  await servers[0].resetCommandCounts();
  const turn = "redis.call('SET', 'hasp:turn:job', 'first:1:50', 'PX', 4000)\n"; // its longest
  await command("EVAL", turn + RELEASE_QUEUED.source, 1, "job", "value", "second:1:50");
  const args = [2, "b", "job", 1, "v", 9, "", "third:1:50.", 3, 1];
  await command("EVAL", turn + ACQUIRE_ANY.source, ...args);
  assertEquals((await servers[0].commandCounts()).publish, 2);
});

test("a server's clock that is set back prolongs no turn of one that is gone", async (servers) => {
  const command = (...args: (string | number)[]) => servers[0].command(...args);
  await command("ZADD", QUEUE, 1, "gone:1:50", 2, "second:1:50");
  await command("SET", TURN, "gone:1:50", "PX", 3_600_000);
  const args = ["v", 9_000, "", "second:1:50", 2, 1];
  assertEquals(await command("EVAL", ACQUIRE_OR_WAIT.source, 1, "job", ...args), 1);
  await command("DEL", "job");
  await command("ZADD", QUEUE, 1, "gone:1:50", 2, "second:1:50");
  await command("SET", TURN, "gone:1:50", "PX", 3_600_000);
  await command("EVAL", RELEASE.source, 1, "job", "v");
  assertEquals(await command("EXISTS", QUEUE), 0); // both are gone: the next gets the turn at once
});
