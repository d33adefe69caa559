/**
 * What subscriptions and messages may do that is no release: they come and go, are refused for a
 * while, or are forged.
 */
import { assertEquals, assertLessOrEqual } from "@std/assert";
import type { RedlockEvent } from "../../mod.ts";
import { connect } from "../../src/redis/mod.ts";
import { eventually } from "../support/eventually.ts";
import { holdByAnother, onAll, shareServers } from "../support/shared_servers.ts";
import { startServers } from "../support/servers.ts";
import type { RedisServer } from "../support/servers.ts";
import {
  lineUp,
  openClients,
  PATIENT,
  queueOfLength,
  queuesOn,
  soon,
  subscriptions,
} from "../support/waiting_clients.ts";

const shared = shareServers(5);

const QUEUE = "hasp:queue:job";

/** How many commands about locks servers were sent since their counts were reset. */
async function asked(servers: readonly RedisServer[]): Promise<number> {
  const counts = await Promise.all(servers.map((server) => server.commandCounts()));
  return counts.reduce(
    (sum, { set = 0, eval: whole = 0, evalsha = 0 }) => sum + set + whole + evalsha,
    0,
  );
}

Deno.test("one subscription that comes and goes makes no call ask", async () => {
  await using servers = shared.lend();
  await using clients = openClients(servers.urls, 10);
  await holdByAnother(servers, "job");
  for (const [index, client] of clients.entries()) await lineUp(client, "job", servers, index + 1);
  await Promise.all(servers.map((server) => server.resetCommandCounts()));
  for (let flaps = 0; flaps < 10; flaps++) {
    await servers[0].command("CLIENT", "KILL", "TYPE", "pubsub");
    await eventually(async () => assertEquals(await subscriptions(servers.slice(0, 1)), [10]));
  }
  assertEquals(await asked(servers), 0);
});

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

Deno.test("messages that somebody else sends change nothing, and those that name no waiter cost no command", async () => {
  await using servers = shared.lend();
  await using clients = openClients(servers.urls, 2);
  await holdByAnother(servers, "job");
  const first = await lineUp(clients[0], "job", servers, 1);
  const second = await lineUp(clients[1], "job", servers, 2);
  const [[ticket, other]] = await queuesOn(servers, QUEUE);
  const [id] = ticket.split(":");
  const forged = [
    "",
    "hello",
    `${id}`,
    `${id}:`,
    `${id}:zzz`,
    `${id}:zzz+`,
    `${other}`,
    "x:1-",
    "\n",
  ];
  await Promise.all(servers.map((server) => server.resetCommandCounts()));
  for (let round = 0; round < 5; round++) {
    for (const text of forged) await onAll(servers, "PUBLISH", `hasp:wake:${id}`, text);
  }
  assertEquals(await asked(servers), 0);
  // One that names a waiter has it ask without success: a few times, however often it comes.
  for (const suffix of ["", "+", "-"]) {
    await onAll(servers, "PUBLISH", `hasp:wake:${id}`, ticket + suffix);
  }
  await new Promise((resolve) => setTimeout(resolve, 200));
  assertLessOrEqual(await asked(servers), 5 * 5);
  assertEquals(await queuesOn(servers, QUEUE), Array(5).fill([ticket, other]));
  await onAll(servers, "DEL", "job");
  await onAll(servers, "PUBLISH", `hasp:wake:${id}`, ticket);
  await (await soon(first.acquiring)).release();
  await (await soon(second.acquiring)).release();
});
