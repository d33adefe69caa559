import { assertEquals, assertRejects } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, QuorumError } from "../../mod.ts";
import { abortedAt, eventually } from "../support/eventually.ts";
import { startServers } from "../support/servers.ts";
import { onAll, shareServers, warmUp } from "../support/shared_servers.ts";
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

Deno.test("release() called again gives the first call's result and sends nothing", async () => {
  await using servers = shared.lend(1);
  await using redlock = createRedlock(servers.urls);
  await warmUp(redlock, servers);
  await servers[0].resetCommandCounts();
  const lock = await redlock.acquire("released");
  assertEquals(await Promise.all([lock.release(), lock.release()]), [true, true]);
  assertEquals(await lock.release(), true);
  await lock[Symbol.asyncDispose]();
  await redlock.close();
  assertEquals((await servers[0].commandCounts()).evalsha, 1);
});

Deno.test("release() is true where a minority has lost its keys", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  const lock = await redlock.acquire("minority");
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "minority"), Array(5).fill(lock.value))
  );
  await onAll(servers.slice(0, 2), "DEL", "minority");
  assertEquals(await lock.release(), true);
});

Deno.test("release() is false where a majority has lost its keys", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  const lock = await redlock.acquire("majority");
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "majority"), Array(5).fill(lock.value))
  );
  await onAll(servers.slice(0, 3), "FLUSHALL");
  assertEquals(await lock.release(), false);
  await eventually(async () =>
    assertEquals(await onAll(servers, "EXISTS", "majority"), [0, 0, 0, 0, 0])
  );
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
  await eventually(async () =>
    assertEquals(await onAll(servers, "EXISTS", "hung"), [0, 0, 0, 0, 0])
  );
});

Deno.test("release() with three of five nodes killed is a QuorumError at once", async () => {
  await using servers = await startServers(5);
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS, nodeTimeoutMs: 5_000 });
  const lock = await redlock.acquire("killed");
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "killed"), Array(5).fill(lock.value))
  );
  await Promise.all(servers.slice(0, 3).map((server) => server.kill()));
  await assertRejects(
    () => deadline(lock.release(), SLACK_MS),
    QuorumError,
    'Cannot release lock "killed": ',
  );
  await eventually(async () =>
    assertEquals(await onAll(servers.slice(3), "EXISTS", "killed"), [0, 0])
  );
});

Deno.test("release() of a lock that ran out is false where three of five nodes are killed", async () => {
  await using servers = await startServers(5);
  await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: 5_000 });
  const lock = await redlock.acquire("killed", { ttlMs: 100 });
  await Promise.all(servers.slice(0, 3).map((server) => server.kill()));
  await eventually(() => !lock.held);
  assertEquals(await deadline(lock.release(), SLACK_MS), false);
});

Deno.test("release() of a lock that was lost is false and does not throw, with three of five nodes hung", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: 200 });
  const lock = await redlock.acquire("lost", { ttlMs: 300, autoExtend: true });
  await Promise.all(servers.slice(0, 3).map((server) => server.pause()));
  await abortedAt(lock.signal);
  assertEquals(await deadline(lock.release(), 200 + SLACK_MS), false);
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
