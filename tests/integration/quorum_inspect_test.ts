import { assertEquals, assertRejects } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, LockHeldError, QuorumError } from "../../mod.ts";
import { onAll, shareServers, warmUp } from "../support/shared_servers.ts";
import { SLACK_MS, TTL_MS } from "../support/times.ts";

const shared = shareServers(5);

/** Long enough for every node that answers, on a busy machine too. */
const NODE_TIMEOUT_MS = 600;

/** Long enough for an answer to a waiting call's ticket. */
const TICKET_WAIT_MS = 500;

Deno.test("inspect() throws where too few nodes can be asked, and never calls the resource free", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: NODE_TIMEOUT_MS });
  await warmUp(redlock, servers);
  await Promise.all(servers.slice(0, 3).map((server) => server.pause()));
  const error = await assertRejects(
    () => deadline(redlock.inspect("unknown"), NODE_TIMEOUT_MS + SLACK_MS),
    QuorumError,
  );
  assertEquals(
    error.message,
    'Cannot inspect lock "unknown": 2 of 5 nodes answered, 2 free, 3 timed out, 3 are needed',
  );
});

Deno.test("inspect() distinguishes held from free with two of five nodes hung", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: NODE_TIMEOUT_MS });
  await onAll(servers, "SET", "held", "another", "PX", TTL_MS);
  await Promise.all(servers.slice(0, 2).map((server) => server.pause()));
  const [held, free] = await deadline(
    Promise.all([redlock.inspect("held"), redlock.inspect("free")]),
    NODE_TIMEOUT_MS + SLACK_MS,
  );
  assertEquals([held.held, free.held], [true, false]);
});

for (
  const [type, ...command] of [
    ["string", "SET", "job", "x"],
    ["list", "RPUSH", "job", "x"],
    ["hash", "HSET", "job", "a", "b"],
    ["zset", "ZADD", "job", "1", "x"],
    ["stream", "XADD", "job", "*", "a", "b"],
  ]
) {
  Deno.test(`inspect() and acquire() say that a ${type} without a TTL is in the way`, async () => {
    await using servers = shared.lend(3);
    await using redlock = createRedlock(servers.urls);
    await onAll(servers, ...command);
    const { held, remainingMs, foreign } = await redlock.inspect("job");
    assertEquals([held, remainingMs], [true, Infinity]);
    const holds = type === "string" ? "" : `holds a ${type} and `;
    assertEquals(foreign, `${holds}has no TTL, so no lock library set it`);
    await assertRejects(
      () => redlock.acquire("job", { waitMs: TICKET_WAIT_MS }),
      LockHeldError,
      "its key has no TTL, so no lock library set it",
    );
    assertEquals(await onAll(servers, "TYPE", "job"), [type, type, type]);
  });
}
