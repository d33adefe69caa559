/** Releases by `DELEX` and `DELIFEQ`, on nodes in memory that have them, and on real servers if there are any. */

import { assert, assertEquals } from "@std/assert";
import { delay } from "@std/async/delay";
import { createRedlock } from "../../mod.ts";
import { check } from "../../src/operate/mod.ts";
import { connect, type RedisClient } from "../../src/redis/mod.ts";
import { startNodes } from "../../src/testing/mod.ts";
import { eventually } from "../support/eventually.ts";
import { startServers } from "../support/servers.ts";
import { onAll } from "../support/shared_servers.ts";
import { SLACK_MS } from "../support/times.ts";

/** Executables of Redis 8.4 or Valkey 9.0 and later, separated by colons. */
const named = (await Deno.permissions.query({ name: "env" })).state === "granted"
  ? Deno.env.get("HASP_NEWER_SERVERS")
  : undefined;

/** Locks that end in every way, on servers that have the command; the last lock is released by it. */
async function assertReleases(addresses: readonly string[]): Promise<void> {
  await using redlock = createRedlock(addresses, { ttlMs: 60_000 });
  await using other = createRedlock(addresses, { ttlMs: 60_000, waitMs: SLACK_MS });
  for (let times = 0; times < 3; times++) {
    const lock = await redlock.acquire("job");
    assert(await lock.release());
    const held = await redlock.acquire("job");
    assertEquals(await other.tryAcquire("job"), undefined); // and undoes nothing of the other's
    assert(held.held);
    const waiting = other.acquire("job");
    await eventually(async () => assertEquals((await redlock.inspect("job")).waiters, 1));
    assert(await held.release());
    assert(await (await waiting).release());
    const several = await redlock.acquire(["job", "task"]);
    assert(await several.release());
    await delay(0);
  }
  const last = await redlock.acquire("last");
  assert(await last.release());
  assertEquals(await last.release(), true);
}

for (const command of ["DELEX", "DELIFEQ"] as const) {
  Deno.test(`locks are released by ${command} of nodes in memory, and those who wait are notified`, async () => {
    await using nodes = await startNodes(3, { newer: [command] });
    await assertReleases(nodes.addresses);
    await assertEmpty(nodes.addresses);
    await using redlock = createRedlock(nodes.addresses);
    const { nodes: checked } = await check(redlock);
    assertEquals(checked.map(({ releasedBy }) => releasedBy), [command, command, command]);
  });
}

Deno.test("a lock that is gone on its nodes is not released by DELEX, and another's key stays", async () => {
  await using nodes = await startNodes(3, { newer: ["DELEX"] });
  await using redlock = createRedlock(nodes.addresses);
  await (await redlock.acquire("first")).release(); // the nodes have said what they have
  const lock = await redlock.acquire("job");
  await onEach(nodes.addresses, async (client) => {
    await client.send(["SET", "job", "another"]);
  });
  assertEquals(await lock.release(), false);
  await onEach(nodes.addresses, async (client) => {
    assertEquals(await client.send(["GET", "job"]), "another");
  });
});

for (const executable of named?.split(":") ?? ["newer servers"]) {
  Deno.test({
    name: `locks are released without a script on ${executable}${
      named === undefined ? " (HASP_NEWER_SERVERS names none)" : ""
    }`,
    ignore: named === undefined,
    fn: async () => {
      const valkey = /valkey/u.test(executable);
      const rights = [valkey ? "+delifeq" : "+delex"];
      await using servers = await startServers(3, { executable, rights });
      await assertReleases(servers.urls);
      await eventually(async () => {
        assertEquals(await onAll(servers, "EXISTS", "job", "task", "last"), [0, 0, 0]);
      });
      await using redlock = createRedlock(servers.urls);
      const { nodes } = await check(redlock);
      const command = valkey ? "DELIFEQ" : "DELEX";
      assertEquals(nodes.map(({ releasedBy }) => releasedBy), [command, command, command]);
      await (await redlock.acquire("first")).release();
      for (const server of servers) await server.resetCommandCounts();
      for (let times = 0; times < 20; times++) await (await redlock.acquire("job")).release();
      await eventually(async () => {
        for (const server of servers) {
          const { set, delex, delifeq, exists, eval: evals, evalsha } = await server
            .commandCounts();
          assertEquals([set, delex ?? delifeq, exists, evals, evalsha], [
            20,
            20,
            20,
            undefined,
            undefined,
          ]);
        }
      });
    },
  });
}

async function assertEmpty(addresses: readonly string[]): Promise<void> {
  await onEach(addresses, async (client) => {
    await eventually(async () => {
      assertEquals(await client.send(["EXISTS", "job", "task", "last"]), 0);
    });
  });
}

async function onEach(
  addresses: readonly string[],
  act: (client: RedisClient) => Promise<void>,
): Promise<void> {
  for (const address of addresses) {
    await using client = await connect(address);
    await act(client);
  }
}
