import { assertEquals, assertRejects } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, QuorumError } from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import { startServers } from "../support/servers.ts";
import { gone, setOnAll, shareServers, warmUp } from "../support/shared_servers.ts";
import { SLACK_MS, TTL_MS } from "../support/times.ts";

const shared = shareServers(5);

/** Long enough for every node that answers, on a busy machine too. */
const NODE_TIMEOUT_MS = 600;

Deno.test("release() ends the lock without aborting its signal", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  const lock = await redlock.acquire("released");
  const { signal } = lock;
  const releasing = lock.release();
  assertEquals([lock.held, lock.remainingMs()], [false, 0]);
  assertEquals(await releasing, true);
  assertEquals([lock.held, lock.remainingMs(), signal.aborted], [false, 0, false]);
});

Deno.test("release() with three of five nodes hung is a QuorumError within one nodeTimeoutMs", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, {
    ttlMs: TTL_MS,
    nodeTimeoutMs: NODE_TIMEOUT_MS,
  });
  const lock = await redlock.acquire("hung");
  await eventually(() => lock.votes.length === 5);
  await Promise.all(servers.slice(0, 3).map((server) => server.pause()));
  const error = await assertRejects(
    () => deadline(lock.release(), NODE_TIMEOUT_MS + SLACK_MS),
    QuorumError,
  );
  assertEquals(
    error.message,
    'Cannot release lock "hung": 2 of 5 nodes released it, 3 timed out, 3 are needed',
  );
  assertEquals(lock.held, false);
  for (const server of servers) server.resume();
  await gone(servers, "hung");
});

Deno.test("release() with three of five nodes killed is a QuorumError at once", async () => {
  await using servers = await startServers(5);
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS, nodeTimeoutMs: 5_000 });
  const lock = await redlock.acquire("killed");
  await setOnAll(servers, "killed", lock);
  await Promise.all(servers.slice(0, 3).map((server) => server.kill()));
  await assertRejects(
    () => deadline(lock.release(), SLACK_MS),
    QuorumError,
    'Cannot release lock "killed": ',
  );
  await gone(servers.slice(3), "killed");
});

Deno.test("await using throws nothing where the release fails, and an event says so", async () => {
  await using servers = shared.lend();
  const failures: string[] = [];
  await using redlock = createRedlock(servers.urls, {
    ttlMs: TTL_MS,
    nodeTimeoutMs: NODE_TIMEOUT_MS,
    onEvent: (event) => {
      if (event.type === "release-failed") failures.push(event.error.message);
    },
  });
  await deadline(
    (async () => {
      await using lock = await redlock.acquire("hung");
      await eventually(() => lock.votes.length === 5);
      await Promise.all(servers.slice(0, 3).map((server) => server.pause()));
    })(),
    NODE_TIMEOUT_MS + SLACK_MS,
  );
  assertEquals(failures, [
    'Cannot release lock "hung": 2 of 5 nodes released it, 3 timed out, 3 are needed',
  ]);
});

Deno.test("release() sends to every node, also to those that denied the lock", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  await warmUp(redlock, servers);
  await servers[0].command("SET", "denied", "another");
  const lock = await redlock.acquire("denied");
  await eventually(() => lock.votes.length === 3);
  await servers[0].resetCommandCounts();
  assertEquals(await lock.release(), true);
  await redlock.close();
  assertEquals((await servers[0].commandCounts()).evalsha, 1);
  assertEquals(await servers[0].command("GET", "denied"), "another");
});
