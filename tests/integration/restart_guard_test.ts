import { assert, assertEquals, assertRejects } from "@std/assert";
import {
  createRedlock,
  type CreateRedlockOptions,
  QuorumError,
  type RedlockEvent,
} from "../../mod.ts";
import { startNodes } from "../../src/testing/mod.ts";
import { eventually } from "../support/eventually.ts";
import { type RedisServer, type ServerGroup, startServers } from "../support/servers.ts";
import { onAll } from "../support/shared_servers.ts";

const TTL_MS = 2_000;
/** Uptimes are whole seconds, so a restart is known to a second or two. */
const GUARD_MS = 2_000;
const GUARD_END_MS = GUARD_MS + 2_500;
/** Long enough for a lock to outlive the restart of a server. */
const LONG_TTL_MS = 5_000;
const OPTIONS = { ttlMs: TTL_MS, nodeTimeoutMs: 500, waitMs: 0, restartGuardMs: GUARD_MS };

/** Three servers that have run for longer than the guard, as far as their creation markers and uptimes tell. */
async function oldServers(
  config: readonly string[] = [],
  ageMs = GUARD_END_MS,
): Promise<ServerGroup<3>> {
  const servers = await startServers(3, { config: [...config] });
  await onAll(servers, "SET", "hasp:born", "1");
  await new Promise((resolve) => setTimeout(resolve, ageMs));
  return servers;
}

/** What the nodes answer to an attempt, which is given back where it won. */
async function outcomes(
  servers: { readonly urls: readonly string[] },
  options: CreateRedlockOptions = {},
): Promise<string[]> {
  await using redlock = createRedlock(servers.urls, { ...OPTIONS, ...options });
  const votes: string[] = [];
  const lock = await redlock.tryAcquire(crypto.randomUUID()).catch((error) => {
    if (!(error instanceof QuorumError)) throw error;
    votes.push(...error.votes.map(({ outcome }) => outcome));
  });
  if (!lock) return votes;
  await eventually(() => lock.votes.length === servers.urls.length);
  await lock.release();
  return lock.votes.map(({ outcome }) => outcome);
}

/** Whether there is a second holder while a lock is held on a quorum of which one node comes back empty. */
async function secondHolder(servers: readonly RedisServer[], restartGuardMs: number) {
  const [first, second, third] = servers;
  const urls = servers.map(({ url }) => url);
  const options = { ...OPTIONS, ttlMs: LONG_TTL_MS, restartGuardMs };
  await using holder = createRedlock(urls, options);
  await using other = createRedlock(urls, options);
  await third.command("SET", "invoice:42", "somebody else"); // so that the lock is on a bare quorum
  await using lock = await holder.acquire("invoice:42");
  await second.kill();
  await second.start();
  await onAll([third], "DEL", "invoice:42");
  const later = await other.tryAcquire("invoice:42").catch((error) => {
    if (!(error instanceof QuorumError)) throw error;
  });
  assertEquals(await first.command("GET", "invoice:42"), lock.value);
  return lock.held && later?.held === true;
}

Deno.test("a node that comes back empty hands a held lock to a second client without the guard, and not with it", async () => {
  for (const restartGuardMs of [0, LONG_TTL_MS]) {
    await using servers = await oldServers([], LONG_TTL_MS + 2_500);
    assertEquals(await secondHolder(servers, restartGuardMs), restartGuardMs === 0);
  }
});

Deno.test("a server that came back with its keys is in quarantine by its uptime", async () => {
  await using servers = await oldServers(["appendonly yes", "appendfsync always"]);
  assertEquals(await outcomes(servers), ["granted", "granted", "granted"]);
  await servers[1].kill();
  await servers[1].start();
  assertEquals(await servers[1].command("GET", "hasp:born"), "1");
  assertEquals(await outcomes(servers), ["granted", "quarantined", "granted"]);
  await eventually(async () => {
    assertEquals(await outcomes(servers), ["granted", "granted", "granted"]);
  }, GUARD_END_MS + 2_000);
});

Deno.test("a server that was emptied is in quarantine by its creation marker, on a connection that stands", async () => {
  await using servers = await oldServers();
  const events: RedlockEvent[] = [];
  await using redlock = createRedlock(servers.urls, {
    ...OPTIONS,
    onEvent: (event) => void events.push(event),
  });
  await (await redlock.acquire("before")).release();
  const start = performance.now();
  await onAll([servers[0], servers[2]], "FLUSHALL");
  const error = await assertRejects(() => redlock.acquire("after"), QuorumError);
  assert(error.message.includes("quarantined, 2 are needed"), error.message);
  await assertRejects(() => redlock.acquire("after"), QuorumError);
  const told = events.filter((event) => event.type === "node-quarantined");
  assertEquals(
    told.map(({ node, reason }) => [node, reason]).sort(),
    [
      [servers.urls[0], "emptied"],
      [servers.urls[2], "emptied"],
    ].sort(),
  );
  for (const { remainingMs } of told) assert(remainingMs > 0 && remainingMs <= GUARD_MS);
  await using lock = await redlock.acquire("after", { waitMs: 10_000, retryDelayMaxMs: 100 });
  assert(lock.held && performance.now() - start > GUARD_MS / 2);
  assertEquals(await onAll(servers, "EXISTS", "hasp:born"), [1, 1, 1]);
});

Deno.test("a fresh cluster grants nothing while the guard lasts, and then everything", async () => {
  await using servers = await startServers(3);
  await using redlock = createRedlock(servers.urls, OPTIONS);
  await assertRejects(() => redlock.acquire("fresh"), QuorumError);
  await eventually(async () => {
    assertEquals(await onAll(servers, "EXISTS", "fresh"), [0, 0, 0]);
  });
  assertEquals(await outcomes(servers, { restartGuardMs: 0 }), ["granted", "granted", "granted"]);
  await using lock = await redlock.acquire("fresh", { waitMs: 10_000, retryDelayMaxMs: 100 });
  await lock.extend();
  assert(lock.held);
});

Deno.test("a user that may not use INFO is guarded by the creation marker alone", async () => {
  const rules = "~* &hasp:wake:* +set +get +del +pttl +evalsha +eval +time";
  await using servers = await startServers(3, { users: [`locker on >secret ${rules}`] });
  const urls = servers.map(({ port }) => `redis://locker:secret@127.0.0.1:${port}`);
  await onAll(servers, "SET", "hasp:born", "1");
  assertEquals(await outcomes({ urls }), ["granted", "granted", "granted"]); // though they are young
  await servers[0].command("DEL", "hasp:born");
  assertEquals(await outcomes({ urls }), ["quarantined", "granted", "granted"]);
});

Deno.test("a user that may not touch the creation marker gets no lock with the guard on", async () => {
  const rules = "~lock:* &hasp:wake:* +set +get +del +evalsha +eval +time +info";
  await using servers = await startServers(3, { users: [`locker on >secret ${rules}`] });
  const urls = servers.map(({ port }) => `redis://locker:secret@127.0.0.1:${port}`);
  await using redlock = createRedlock(urls, { ...OPTIONS, keyPrefix: "lock:" });
  await assertRejects(() => redlock.acquire("a"), QuorumError, "failed");
  await using lock = await redlock.acquire("a", { restartGuardMs: 0, waitMs: 2_000 });
  assert(lock.held);
});

Deno.test("an extension does not count on a node that was emptied, though its key is there again", async () => {
  await using servers = await oldServers();
  await using redlock = createRedlock(servers.urls, OPTIONS);
  await using lock = await redlock.acquire("held");
  await servers[0].command("FLUSHALL");
  await lock.extend(); // on the other two
  await eventually(async () => assertEquals(await servers[0].command("GET", "held"), lock.value));
  await servers[1].pause();
  await assertRejects(() => lock.extend(), "before an extension succeeded");
  servers[1].resume();
});

for (
  const [what, words] of [
    ["a lock of another client", ["SET", "hasp:born", "a value", "PX", "60000"]],
    ["a list", ["RPUSH", "hasp:born", "x"]],
    ["a time in the future", ["SET", "hasp:born", "99999999999999"]],
  ] as const
) {
  Deno.test(`${what} in the place of the creation marker is an error vote, and stays as it is`, async () => {
    await using servers = await oldServers();
    for (const server of servers) {
      await server.command("DEL", "hasp:born");
      await server.command(...words);
    }
    const before = await onAll(servers, "DUMP", "hasp:born");
    await using redlock = createRedlock(servers.urls, OPTIONS);
    for (let round = 0; round < 2; round++) {
      const error = await assertRejects(() => redlock.acquire("a"), QuorumError);
      const failed = error.votes.filter(({ outcome }) => outcome === "failed");
      assert(failed.length >= 2, Deno.inspect(error.votes));
    }
    assertEquals(await onAll(servers, "DUMP", "hasp:born"), before);
    // An operator who deletes it has the node counted again, once the guard has passed.
    await onAll(servers, "DEL", "hasp:born");
    await assertRejects(() => redlock.acquire("a"), QuorumError, "quarantined");
    await eventually(async () => {
      assertEquals(await outcomes(servers), ["granted", "granted", "granted"]);
    }, GUARD_END_MS + 2_000);
  });
}

Deno.test("startNodes() has nodes that forget, which the guard keeps out", async () => {
  let aheadMs = 0;
  await using nodes = await startNodes(3);
  const age = () => nodes.forEach((node) => node.skewClock(aheadMs += GUARD_END_MS));
  const urls = nodes.addresses;
  assertEquals(new Set(await outcomes({ urls })), new Set(["quarantined"]));
  age();
  assertEquals(await outcomes({ urls }), ["granted", "granted", "granted"]);
  await nodes.node(0).restart({ keepData: true });
  assertEquals(await outcomes({ urls }), ["quarantined", "granted", "granted"]);
  age();
  nodes.node(2).flush();
  assertEquals(await outcomes({ urls }), ["granted", "granted", "quarantined"]);
});
