/** What waiting costs the servers: commands, connections and keys. */

import { assert, assertEquals, assertGreater, assertLessOrEqual } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, type Redlock } from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import type { RedisServer } from "../support/servers.ts";
import {
  holdByAnother,
  onAll,
  recordCommands,
  recordedCommands,
  shareServers,
  warmUp,
} from "../support/shared_servers.ts";
import {
  connections,
  lineUp,
  openClients,
  PATIENT,
  queuesOn,
  soon,
  subscriptions,
} from "../support/waiting_clients.ts";

const { test } = shareServers(5);

const NONE = [0, 0, 0, 0, 0];
const ONE = [1, 1, 1, 1, 1];
const QUEUE = "hasp:queue:job";

test("callers of one client that wait for each other cost 5 SET and 5 EVALSHA a lock", async (servers) => {
  await using redlock = createRedlock(servers.urls, PATIENT);
  await warmUp(redlock, servers);
  await Promise.all(servers.map((server) => server.resetCommandCounts()));
  await Promise.all(Array.from({ length: 40 }, () => redlock.using("job", () => {})));
  await redlock.close();
  for (const server of servers) {
    const { set, evalsha, eval: whole } = await server.commandCounts();
    assertEquals({ set, evalsha, whole }, { set: 40, evalsha: 40, whole: undefined });
  }
  assertEquals(await subscriptions(servers), NONE);
});

/** Has clients take turns; returns the commands sent for each lock. */
async function perLock(
  clients: readonly Redlock[],
  servers: readonly RedisServer[],
  turns: number,
): Promise<number> {
  await Promise.all(servers.map(recordCommands));
  const rotating = clients.map(async (client) => {
    for (let turn = 0; turn < turns; turn++) await client.using("job", () => {});
  });
  await deadline(Promise.all(rotating), 30_000);
  const sent = await Promise.all(servers.map(sentCommands));
  return sent.reduce((sum, count) => sum + count) / (clients.length * turns);
}

test("10 clients that wait for each other cost 15 commands a lock, but for a few", async (servers) => {
  await using clients = openClients(servers.urls, 10);
  await perLock(clients, servers, 2); // each has waited once
  await eventually(async () => { // the machine may be busy meanwhile, which only adds commands
    const count = await perLock(clients, servers, 5);
    assertGreater(count, 10);
    assertLessOrEqual(count, 16);
  });
});

test("20 clients that wait for the first time cost at most 26 commands a lock", async (servers) => {
  await eventually(async () => { // the machine may be busy meanwhile, which only adds commands
    await using clients = openClients(servers.urls, 20);
    assertLessOrEqual(await perLock(clients, servers, 1), 26);
  });
});

test("a queue lives longer than any ticket in it goes without asking, and for minutes at the most", async (servers) => {
  await using clients = openClients(servers.urls, 1);
  await holdByAnother(servers, "job");
  await lineUp(clients[0], "job", servers);
  for (const pttl of await onAll(servers, "PTTL", QUEUE)) {
    assertGreater(Number(pttl), 120_000);
    assertLessOrEqual(Number(pttl), 600_000);
  }
});

test("notify: false polls, joins no queue and opens no other connection", async (servers) => {
  await using redlock = createRedlock(servers.urls, { notify: false, retryDelayMs: 5 });
  await holdByAnother(servers, "job");
  let attempts = 0;
  const acquiring = redlock.acquire("job", {
    retryDelayMaxMs: 20,
    onEvent: ({ type }) => {
      assert(type !== "woken");
      if (type === "attempt") attempts++;
    },
  });
  await eventually(() => attempts >= 5);
  assertEquals(await queuesOn(servers, QUEUE), [[], [], [], [], []]);
  assertEquals(await subscriptions(servers), NONE);
  assertEquals(await connections(servers), ONE);
  await onAll(servers, "DEL", "job");
  await (await soon(acquiring)).release();
});

/**
 * How many commands about locks a server was sent since `recordCommands`; a script's own SET has no
 * NX.
 */
async function sentCommands(server: RedisServer): Promise<number> {
  const commands = await recordedCommands(server);
  return commands.filter(([name, ...args]) =>
    name === "EVALSHA" || name === "EVAL" || name === "SET" && args.includes("NX")
  ).length;
}
