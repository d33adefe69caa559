import { assert, assertEquals, assertGreater, assertLess } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock } from "../../mod.ts";
import { shareServers } from "../support/shared_servers.ts";
import { startServers } from "../support/servers.ts";
import { LONG_NODE_TIMEOUT_MS, SLACK_MS, TTL_MS } from "../support/times.ts";

const shared = shareServers(5);

Deno.test("acquire() with one of three nodes hung does not wait for it, nor lose validity to it", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls, {
    ttlMs: TTL_MS,
    nodeTimeoutMs: LONG_NODE_TIMEOUT_MS,
  });
  await servers[2].pause();
  for (let round = 0; round < 3; round++) {
    const lock = await deadline(redlock.acquire(`hung ${round}`), SLACK_MS);
    assertGreater(lock.remainingMs(), TTL_MS - LONG_NODE_TIMEOUT_MS / 2);
    assertEquals(await deadline(lock.release(), SLACK_MS), true);
  }
});

Deno.test("acquire() with one of three nodes refusing connections does not wait for it", async () => {
  await using servers = await startServers(3);
  await servers[2].kill();
  await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: 5_000 });
  for (let round = 0; round < 3; round++) {
    const lock = await deadline(redlock.acquire(`refused ${round}`), SLACK_MS);
    assertEquals(await deadline(lock.release(), SLACK_MS), true);
  }
});

Deno.test("acquire() lets contenders that split the vote over three nodes through one after the other", async () => {
  await using servers = shared.lend(3);
  const contenders = Array.from(
    { length: 3 },
    () => createRedlock(servers.urls, { ttlMs: 20_000, waitMs: 15_000, retryDelayMs: 20 }),
  );
  await using stack = new AsyncDisposableStack();
  contenders.forEach((waiter) => stack.use(waiter));
  let inside = 0;
  let most = 0;
  const rounds = 4;
  await deadline(
    Promise.all(contenders.map(async (waiter) => {
      for (let round = 0; round < rounds; round++) {
        const lock = await waiter.acquire("contended");
        most = Math.max(most, ++inside);
        await Promise.resolve();
        inside--;
        await lock.release();
      }
    })),
    10_000,
  );
  assertEquals(most, 1);
});

Deno.test("using() settles where a majority hangs while the routine runs", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: 2_000, nodeTimeoutMs: 100 });
  const startMs = performance.now();
  const result = redlock.using("hung", async (lock) => {
    await Promise.all(servers.slice(0, 3).map((server) => server.pause()));
    assert(lock.held);
    return "done";
  });
  // The routine is over while the lock is valid: its result counts, although nobody confirms the
  // release.
  assertEquals(await deadline(result, 100 + SLACK_MS), "done");
  assertLess(performance.now() - startMs, 2_000 + SLACK_MS);
});
