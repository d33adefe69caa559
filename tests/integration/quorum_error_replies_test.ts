import { assert, assertEquals, assertRejects } from "@std/assert";
import { createRedlock, QuorumError } from "../../mod.ts";
import { ReplyError } from "../../src/redis/mod.ts";
import { eventually } from "../support/eventually.ts";
import { type RedisServer, startServer, startServers } from "../support/servers.ts";

/** Error replies, and how a server is brought to give them to `SET`. */
const ERRORS: [string, (server: RedisServer) => Promise<unknown>][] = [
  ["READONLY", (server) => server.command("REPLICAOF", "127.0.0.1", 1)],
  ["NOREPLICAS", (server) => server.command("CONFIG", "SET", "min-replicas-to-write", 1)],
  ["OOM", (server) => server.command("CONFIG", "SET", "maxmemory", 1)],
  ["NOPERM", (server) => server.command("ACL", "SETUSER", "default", "-set", "-eval", "-evalsha")],
  ["NOAUTH", (server) => server.command("CONFIG", "SET", "requirepass", "secret")],
  ["MISCONF", async (server) => {
    await server.command("CONFIG", "SET", "save", "1 1");
    await Deno.mkdir(`${server.dir}/dump.rdb`); // what can't be written over
    await server.command("SET", "unsaved", "1");
    await eventually(async () => {
      await server.command("BGSAVE").catch(() => {});
      return await server.command("SET", "unsaved", "2").then(
        () => false,
        (error) => assert(error.message.startsWith("MISCONF")),
      );
    });
  }],
  ["CLUSTERDOWN", (server) => server.command("PING")],
];

for (const [prefix, bringAbout] of ERRORS) {
  Deno.test(`tryAcquire() reports ${prefix} as a node's error, never as held by another`, async () => {
    const config = prefix === "CLUSTERDOWN" ? ["cluster-enabled yes"] : [];
    await using server = await startServer({ config });
    await bringAbout(server);
    await using redlock = createRedlock([server.url]);
    const error = await assertRejects(() => redlock.tryAcquire("erring"), QuorumError);
    const [vote] = error.votes;
    const which = /^NO(AUTH|PERM)$/u.test(prefix) ? "permanent" : "first";
    assertEquals(
      error.message,
      `Cannot acquire lock "erring": 0 of 1 node granted it, 1 failed, 1 is needed; ${which} error: ${
        vote.error!.message
      }`,
    );
    assertEquals(vote.outcome, "failed");
    assert(vote.error instanceof ReplyError);
    assertEquals(vote.error.prefix, prefix);
    assertEquals(vote.error.message.split(" ", 1), [prefix]);
    assert(!error.message.includes("secret"));
  });
}

Deno.test("tryAcquire() reports BUSY as a node's error, never as held by another", async () => {
  await using server = await startServer({ config: ["busy-reply-threshold 1"] });
  await using redlock = createRedlock([server.url]);
  const busy = server.command("EVAL", "while true do end", 0).catch(() => {});
  await eventually(() =>
    server.command("PING").then(() => false, (error) => assert(error.message.startsWith("BUSY")))
  );
  const error = await assertRejects(() => redlock.tryAcquire("erring"), QuorumError);
  assertEquals((error.votes[0].error as ReplyError).prefix, "BUSY");
  await server.command("SCRIPT", "KILL");
  await busy;
});

Deno.test("acquire() on a cluster's node ends at once, and says what a cluster needs", async () => {
  await using servers = await startServers(2, {
    config: ["cluster-enabled yes", "cluster-require-full-coverage no"],
  });
  const [one, other] = servers;
  await one.command("CLUSTER", "ADDSLOTSRANGE", 0, 8191);
  await other.command("CLUSTER", "ADDSLOTSRANGE", 8192, 16383);
  await one.command("CLUSTER", "MEET", "127.0.0.1", other.port);
  for (const server of servers) {
    await eventually(async () => {
      return String(await server.command("CLUSTER", "INFO")).includes("cluster_known_nodes:2");
    });
    await eventually(async () => {
      return String(await server.command("CLUSTER", "INFO")).includes(
        "cluster_slots_assigned:16384",
      );
    });
  }
  await using redlock = createRedlock([one.url]);
  const startMs = performance.now();
  const errors: QuorumError[] = [];
  for (const resource of ["a", "b", "c", "d", "e", "f"]) { // of both nodes
    const error = await redlock.acquire(resource, { waitMs: 60_000 }).then(
      () => {},
      (error) => error,
    );
    if (error) errors.push(error);
  }
  assert(errors.length > 0 && errors.length < 6);
  for (const { message } of errors) {
    assert(/; permanent error: MOVED .* commandNode\(\) .* hash tag /u.test(message), message);
  }
  assert(performance.now() - startMs < 30_000);
});
