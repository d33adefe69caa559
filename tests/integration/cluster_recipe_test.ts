/** The recipe for a cluster, on a server in cluster mode. */

import { assert, assertEquals, assertRejects } from "@std/assert";
import { QuorumError, Redlock } from "@hasp/redlock";
import { clusterNode } from "../examples/ioredis_cluster.ts";
import { eventually } from "../support/eventually.ts";
import { startServer } from "../support/servers.ts";

Deno.test("ioredis_cluster.ts locks, waits, fences and shares on a cluster if all keys have one hash tag", async () => {
  await using server = await startServer({
    config: ["cluster-enabled yes", "cluster-announce-ip 127.0.0.1"],
    // of the client, which finds the nodes
    rights: ["+cluster|slots", "+cluster|info", "+info", "+command", "+readonly"],
  });
  await server.command("CLUSTER", "ADDSLOTSRANGE", 0, 16_383);
  await eventually(async () => {
    assert(String(await server.command("CLUSTER", "INFO")).includes("cluster_state:ok"));
  });
  const startup = [{ host: "127.0.0.1", port: Number(new URL(server.url).port) }];
  const [one, other] = await Promise.all([clusterNode(startup), clusterNode(startup)]);
  {
    await using redlock = new Redlock([one.node], { keyPrefix: "{locks}:" });
    await using second = new Redlock([other.node]); // with a tag in each name instead
    const lock = await redlock.acquire("a", { fencing: true });
    assertEquals(await second.tryAcquire("{locks}:a"), undefined);
    const waiting = second.acquire("{locks}:a", { fencing: true });
    await eventually(async () => assertEquals((await redlock.inspect("a")).waiters, 1));
    await lock.release();
    const next = await waiting;
    assert(next.fencingToken > lock.fencingToken);
    await next.extend();
    assertEquals(await next.release(), true);
    assertEquals(await redlock.using("a", { mode: "shared" }, () => "done"), "done");
    assertEquals(await redlock.using(["a", "b"], () => "done"), "done");
    const error = await assertRejects(
      () => second.acquire(["one", "two"], { waitMs: 0 }),
      QuorumError,
    );
    assert(error.message.includes("a hash tag in each resource"), error.message);
  }
  for (const { cluster } of [one, other]) {
    const ended = new Promise((resolve) => cluster.once("end", resolve));
    cluster.disconnect();
    await ended;
  }
});
