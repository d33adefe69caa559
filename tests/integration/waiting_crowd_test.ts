/**
 * Many who wait for one lock: what a crowd costs a server, and who gets which share, whatever the
 * clocks show.
 */
import { assert, assertEquals, assertLessOrEqual } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { encodeCommand, joinCommands } from "../../src/redis/encoder.ts";
import { ACQUIRE_OR_WAIT } from "../../src/redis_node/scripts/acquire.ts";
import { eventually } from "../support/eventually.ts";
import type { RedisServer } from "../support/servers.ts";
import { holdByAnother, onAll, shareServers } from "../support/shared_servers.ts";
import { lineUp, openClients, PATIENT, queuesOn, soon } from "../support/waiting_clients.ts";

const shared = shareServers(5);

const QUEUE = "hasp:queue:job";

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

Deno.test("all nodes have the same order, though their requests come in different ones", async () => {
  await using servers = shared.lend();
  await using clients = openClients(servers.urls, 30);
  await holdByAnother(servers, "warm-up", 300);
  await deadline(Promise.all(clients.map((client) => client.using("warm-up", () => {}))), 30_000);
  await holdByAnother(servers, "job");
  const waiting = clients.map((client) => client.acquire("job"));
  for (const acquiring of waiting) acquiring.catch(() => {});
  await eventually(async () => { // all are subscribed by now
    const queues = await queuesOn(servers, QUEUE);
    for (const queue of queues) assertEquals(queue, queues[0]);
    assertEquals(queues[0].length, 30);
  });
});

Deno.test("a queue's key that holds something else is left alone, and locks work beside it by polling", async () => {
  await using servers = shared.lend();
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
