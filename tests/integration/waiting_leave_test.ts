/**
 * Who stands in line, as servers, `inspect()` and errors tell it, and who leaves it.
 */
import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, LockHeldError, RedlockError } from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import { onAll, shareServers } from "../support/shared_servers.ts";
import { SLACK_MS } from "../support/times.ts";
import {
  connections,
  lineUp,
  openClients,
  PATIENT,
  queueOfLength,
  queuesOn,
  soon,
} from "../support/waiting_clients.ts";

const shared = shareServers(5, { rights: ["+select"] });

const NONE = [0, 0, 0, 0, 0];
const QUEUE = "hasp:queue:job";

Deno.test("a call that its signal ends leaves the queue on every node, and the next one is the first", async () => {
  await using servers = shared.lend();
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

Deno.test("a call whose waitMs is over leaves the queue on every node, and reports how many waited there", async () => {
  await using servers = shared.lend();
  await using clients = openClients(servers.urls, 3);
  const [holder, waiter, leaver] = clients;
  const lock = await holder.acquire("job");
  const { acquiring } = await lineUp(waiter, "job", servers, 1);
  const left = await lineUp(leaver, "job", servers, 2, { waitMs: 2_000 });
  assertEquals((await holder.inspect("job")).waiters, 2);
  const error = await assertRejects(() => left.acquiring, LockHeldError);
  assertEquals(error.waiters, 2);
  assertMatch(
    error.message,
    /^Cannot acquire lock "job": someone else (?:\(\S+\) )?holds it; waited \d+ ms; (?:its key expires in \d+ ms unless it is extended; )?0 of 5 nodes granted it, [345] denied/,
  );
  await queueOfLength(servers, QUEUE, 1);
  assertEquals((await holder.inspect("job")).waiters, 1);
  await lock.release();
  await (await soon(acquiring)).release();
  await queueOfLength(servers, QUEUE, 0);
});

Deno.test("a caller that gives up behind others of its client leaves the client in the queue", async () => {
  await using servers = shared.lend();
  await using clients = openClients(servers.urls, 2);
  const lock = await clients[0].acquire("job");
  const { acquiring } = await lineUp(clients[1], "job", servers, 1);
  const error = await assertRejects(
    () => deadline(clients[1].acquire("job", { waitMs: 100 }), 100 + SLACK_MS),
    LockHeldError,
  );
  assertEquals(error.waiters, 1);
  await queueOfLength(servers, QUEUE, 1);
  await lock.release();
  await (await soon(acquiring)).release();
});

Deno.test("the first caller of a client gives up, and the next of it takes over its place", async () => {
  await using servers = shared.lend();
  await using clients = openClients(servers.urls, 2);
  const lock = await clients[0].acquire("job");
  const controller = new AbortController();
  const { signal } = controller;
  const first = await lineUp(clients[1], "job", servers, 1, { ...PATIENT, signal });
  const second = clients[1].acquire("job");
  controller.abort("enough");
  assertEquals(await first.acquiring.catch((reason) => reason), "enough");
  await lock.release();
  await (await soon(second)).release();
  await queueOfLength(servers, QUEUE, 0);
});

Deno.test("calls that give up while their connections are lost leave no entry in a queue", async () => {
  await using servers = shared.lend();
  await using clients = openClients(servers.urls, 4);
  const [holder, waiter, ...leavers] = clients;
  const lock = await holder.acquire("job");
  const controller = new AbortController();
  const { signal } = controller;
  for (const [index, leaver] of leavers.entries()) {
    await lineUp(leaver, "job", servers, index + 1, { ...PATIENT, signal });
  }
  // subscriptions live on, so the tickets seem to wait
  await onAll(servers, "CLIENT", "KILL", "TYPE", "normal");
  controller.abort("enough");
  await queueOfLength(servers, QUEUE, 0);
  const { acquiring } = await lineUp(waiter, "job", servers, 1);
  await lock.release();
  await (await soon(acquiring)).release();
  await queueOfLength(servers, QUEUE, 0);
});

Deno.test("close() of a client that waits leaves no entry in a queue and no connection", async () => {
  await using servers = shared.lend();
  await using clients = openClients(servers.urls, 1);
  const lock = await clients[0].acquire("job");
  const redlock = createRedlock(servers.urls, PATIENT);
  const { acquiring } = await lineUp(redlock, "job", servers, 1);
  const behind = assertRejects(() => redlock.acquire("job"), RedlockError);
  await soon(redlock.close());
  assertEquals((await assertRejects(() => acquiring, RedlockError)).code, "CLOSED");
  assertEquals((await behind).code, "CLOSED");
  await queueOfLength(servers, QUEUE, 0);
  await eventually(async () => assertEquals(await connections(servers), [1, 1, 1, 1, 1]));
  await lock.release();
});

Deno.test("close() of a client that stands first hands over to the next", async () => {
  await using servers = shared.lend();
  await using clients = openClients(servers.urls, 2);
  const lock = await clients[0].acquire("job");
  const redlock = createRedlock(servers.urls, PATIENT);
  await lineUp(redlock, "job", servers, 1);
  const { acquiring } = await lineUp(clients[1], "job", servers, 2);
  await Promise.all([redlock.close(), lock.release()]);
  await (await soon(acquiring)).release();
});

const NAMES: readonly [resource: string, prefix: string, queue: string][] = [
  ["job", "", "hasp:queue:job"],
  ["job:{42}", "", "hasp:queue:job:{42}"],
  ["Größe 42 🔑", "", "hasp:queue:Größe 42 🔑"],
  ["a:b c\r\n", "", "hasp:queue:a:b c\r\n"],
  ["42", "lock:", "hasp:queue:lock:42"],
];

for (const [resource, keyPrefix, queue] of NAMES) {
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

Deno.test("waiting works in database 3, also beside the same resource in another", async () => {
  await using servers = shared.lend();
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
