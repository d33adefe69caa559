import { assertEquals, assertRejects } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, QuorumError } from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import { startServers } from "../support/servers.ts";
import { shareServers, warmUp } from "../support/shared_servers.ts";
import { SLACK_MS } from "../support/times.ts";

const shared = shareServers(5, { rights: ["+select"] });

/** Long enough for every node that answers, on a busy machine too. */
const NODE_TIMEOUT_MS = 600;

for (const connected of [true, false]) {
  const client = connected ? "a client with connections" : "a fresh client";

  Deno.test(`acquire() of ${client} with three of five nodes hung fails within waitMs and one nodeTimeoutMs`, async () => {
    await using servers = shared.lend();
    await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: NODE_TIMEOUT_MS });
    if (connected) await warmUp(redlock, servers);
    await Promise.all(servers.slice(0, 3).map((server) => server.pause()));
    const error = await assertRejects(
      () => deadline(redlock.acquire("hung", { waitMs: 200 }), 200 + NODE_TIMEOUT_MS + SLACK_MS),
      QuorumError,
    );
    assertEquals(
      error.message,
      'Cannot acquire lock "hung": 2 of 5 nodes granted it, 3 timed out, 3 are needed; first error: ' +
        `${servers.urls[0]}: no answer`,
    );
    assertEquals(error.code, "NO_QUORUM");
    assertEquals(error.resources, ["hung"]);
    assertEquals(
      error.votes.map(({ outcome }) => outcome),
      ["timed-out", "timed-out", "timed-out", "granted", "granted"],
    );
  });
}

Deno.test("acquire() gets its lock as soon as a quorum is back", async () => {
  await using servers = await startServers(5);
  await using redlock = createRedlock(servers.urls, { retryDelayMaxMs: 100, nodeTimeoutMs: 1_000 });
  await warmUp(redlock, servers);
  await servers[0].pause();
  await Promise.all(servers.slice(1, 4).map((server) => server.kill()));
  let attempts = 0;
  const acquiring = redlock.acquire("waited for", {
    onEvent: ({ type }) => {
      if (type === "attempt") attempts++;
    },
  });
  await eventually(() => attempts >= 2);
  servers[0].resume();
  await servers[1].start();
  await using lock = await acquiring;
  assertEquals(lock.held, true);
});

Deno.test("createRedlock() does not throw where no server can be reached, and the lock works once they are there", async () => {
  await using servers = await startServers(3);
  await Promise.all(servers.map((server) => server.kill()));
  await using redlock = createRedlock(servers.urls, { retryDelayMaxMs: 100 });
  const error = await assertRejects(
    () => deadline(redlock.tryAcquire("nowhere"), SLACK_MS),
    QuorumError,
  );
  assertEquals(
    error.message.replace(/[23] failed/, "all failed"),
    'Cannot acquire lock "nowhere": 0 of 3 nodes granted it, all failed, 2 are needed; first error: ' +
      error.votes[0].error!.message,
  );
  await Promise.all(servers.map((server) => server.start()));
  await using lock = await redlock.acquire("nowhere");
  assertEquals(lock.held, true);
});
