/**
 * Waiting while holders, waiters, nodes, lines and connections are lost: the lock comes all the
 * same, at the TTL at the latest.
 */
import { assertEquals, assertGreater } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { delay } from "@std/async/delay";
import { QUEUE_LEAD_MS } from "../../src/redis_node/scripts/queue.ts";
import { eventually } from "../support/eventually.ts";
import { holdByAnother, onAll, shareServers } from "../support/shared_servers.ts";
import { startServers } from "../support/servers.ts";
import { SLACK_MS } from "../support/times.ts";
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

const shared = shareServers(5);

/** A TTL that tests wait for. */
const SHORT_MS = 1_000;
const BRIEF = { ...PATIENT, ttlMs: SHORT_MS };
const QUEUE = "hasp:queue:job";

Deno.test("a waiter gets the lock of a process that is killed within its TTL, and not before", async () => {
  await using servers = shared.lend();
  await using clients = openClients(servers.urls, 1);
  await using holder = await startWaiter({ urls: servers.urls, resource: "job", ttlMs: SHORT_MS });
  await holder.write("ask");
  await holder.line("held");
  const heldMs = performance.now();
  const { acquiring } = await lineUp(clients[0], "job", servers);
  await holder[Symbol.asyncDispose]();
  await (await deadline(acquiring, SHORT_MS + SLACK_MS)).release();
  assertGreater(performance.now() - heldMs, SHORT_MS - SLACK_MS);
});

Deno.test("a waiter that is killed in the queue is passed over at once", async () => {
  await using servers = shared.lend();
  await using clients = openClients(servers.urls, 2);
  await using killed = await startWaiter({ urls: servers.urls, resource: "job", ttlMs: 60_000 });
  const lock = await clients[0].acquire("job");
  await killed.write("ask");
  await queueOfLength(servers, QUEUE, 1);
  const { acquiring } = await lineUp(clients[1], "job", servers, 2);
  await killed[Symbol.asyncDispose]();
  await eventually(async () => assertEquals(await subscriptions(servers), [1, 1, 1, 1, 1]));
  await lock.release();
  await (await soon(acquiring)).release();
  await queueOfLength(servers, QUEUE, 0);
});

Deno.test("a key that another client deletes without a notification goes to the first in the queue within its TTL", async () => {
  await using servers = shared.lend();
  await using clients = openClients(servers.urls, 2);
  await holdByAnother(servers, "job", SHORT_MS);
  const first = await lineUp(clients[0], "job", servers, 1);
  const second = await lineUp(clients[1], "job", servers, 2);
  await onAll(servers, "DEL", "job");
  await (await deadline(first.acquiring, SHORT_MS + SLACK_MS)).release();
  await (await soon(second.acquiring)).release();
});

Deno.test("queues that are lost on every node cost at most the TTL", async () => {
  await using servers = shared.lend();
  await using clients = openClients(servers.urls, 3, BRIEF);
  const lock = await clients[0].acquire("job", { autoExtend: true });
  const first = await lineUp(clients[1], "job", servers, 1);
  const second = await lineUp(clients[2], "job", servers, 2);
  await onAll(servers, "DEL", QUEUE);
  await lock.release();
  await deadline(
    Promise.all([first, second].map(async ({ acquiring }) => await (await acquiring).release())),
    2 * SHORT_MS + SLACK_MS,
  );
  await queueOfLength(servers, QUEUE, 0);
});

Deno.test("nodes that come back empty, one after the other, cost no call more than the TTL, and keep the order", async () => {
  await using servers = await startServers(3);
  await using clients = openClients(servers.urls, 3, { ...PATIENT, ttlMs: 2_000 });
  const lock = await clients[0].acquire("job", { autoExtend: true });
  const first = await lineUp(clients[1], "job", servers, 1);
  await delay(2 * QUEUE_LEAD_MS);
  const second = await lineUp(clients[2], "job", servers, 2);
  const [tickets] = await queuesOn(servers, QUEUE);
  for (const server of servers) {
    await server.kill();
    await server.restart();
    await eventually(async () => assertEquals(await subscriptions([server]), [2]));
    await eventually(async () => {
      await lock.extend(); // fills the key in
      assertEquals(await onAll(servers, "GET", "job"), Array(3).fill(lock.value));
    });
  }
  await eventually(async () => {
    assertEquals(await queuesOn(servers, QUEUE), Array(3).fill(tickets));
  });
  await lock.release();
  const both = [first, second].map(async ({ acquiring }) => await (await acquiring).release());
  await deadline(Promise.all(both), 2_000 + 2 * SLACK_MS);
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

Deno.test("a node that is dead when the lock is released delays no call", async () => {
  await using servers = await startServers(3);
  await using clients = openClients(servers.urls, 2);
  const lock = await clients[0].acquire("job");
  const { acquiring } = await lineUp(clients[1], "job", servers, 1);
  await servers[0].kill();
  await lock.release();
  await (await soon(acquiring)).release();
});

Deno.test("a node that hangs when the lock is released costs at most a time-out", async () => {
  await using servers = shared.lend(3);
  await using clients = openClients(servers.urls, 2, { ...PATIENT, nodeTimeoutMs: 300 });
  const lock = await clients[0].acquire("job");
  const { acquiring } = await lineUp(clients[1], "job", servers, 1);
  await servers[0].pause();
  await lock.release();
  await (await deadline(acquiring, 300 + SLACK_MS)).release();
});

Deno.test("a waiter is subscribed again after its connections are cut, and notified as before", async () => {
  await using servers = shared.lend();
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
