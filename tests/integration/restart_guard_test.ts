import { assert, assertEquals, assertRejects } from "@std/assert";
import {
  createRedlock,
  type CreateRedlockOptions,
  QuorumError,
  type RedlockEvent,
} from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import { type ServerGroup, startServers } from "../support/servers.ts";
import { onAll } from "../support/shared_servers.ts";

const TTL_MS = 2_000;
/** Uptimes are whole seconds, so a restart is known to a second or two. */
const GUARD_MS = 3_000;
const GUARD_END_MS = GUARD_MS + 2_500;
const OPTIONS = { ttlMs: TTL_MS, nodeTimeoutMs: 1_500, waitMs: 0, restartGuardMs: GUARD_MS };

/**
 * Groups of three servers that age together, from before the first test on. A test that kills one
 * needs its own.
 */
const aging: ServerGroup<3>[] = [];
let lent = 0;
let agingSinceMs = 0;

Deno.test.beforeAll(async () => {
  aging.push(...await Promise.all(Array.from({ length: 4 }, () => startServers(3))));
  await Promise.all(aging.map((servers) => onAll(servers, "SET", "hasp:born", "1")));
  agingSinceMs = performance.now();
});

Deno.test.afterAll(async () => {
  await Promise.all(aging.map((servers) => servers[Symbol.asyncDispose]()));
});

/**
 * Lends three servers that have run for longer than the guard, as far as their creation markers and
 * uptimes tell.
 */
async function oldServers(): Promise<ServerGroup<3>> {
  await eventually(() => performance.now() - agingSinceMs > GUARD_END_MS);
  return aging[lent++];
}

/** Starts such servers. */
async function startOldServers(config: readonly string[] = []): Promise<ServerGroup<3>> {
  const servers = await startServers(3, { config });
  await onAll(servers, "SET", "hasp:born", "1");
  await new Promise((resolve) => setTimeout(resolve, GUARD_END_MS));
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

Deno.test("a server that came back with its keys is in quarantine by its uptime", async () => {
  await using servers = await startOldServers(["appendonly yes", "appendfsync always"]);
  assertEquals(await outcomes(servers), ["granted", "granted", "granted"]);
  await servers[1].kill();
  await servers[1].start();
  assertEquals(await servers[1].command("GET", "hasp:born"), "1");
  assertEquals(await outcomes(servers), ["granted", "quarantined", "granted"]);
  await eventually(async () => {
    assertEquals(await outcomes(servers), ["granted", "granted", "granted"]);
  });
});

Deno.test("a server that was emptied is in quarantine by its creation marker, on a connection that stands", async () => {
  const servers = await oldServers();
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
  for (const { remainingMs } of told) {
    assert(remainingMs > 0 && remainingMs <= GUARD_MS, `${remainingMs}`);
  }
  await using lock = await redlock.acquire("after", { waitMs: 10_000, retryDelayMaxMs: 100 });
  assert(lock.held && performance.now() - start > GUARD_MS / 2);
  assertEquals(await onAll(servers, "EXISTS", "hasp:born"), [1, 1, 1]);
});

Deno.test("a user that may not use INFO is guarded by the creation marker alone", async () => {
  const rules = "~* resetchannels &hasp:wake:* +set +get +del +pttl +evalsha +eval +time";
  await using servers = await startServers(3, { users: [`locker on >secret ${rules}`] });
  const urls = servers.map(({ port }) => `redis://locker:secret@127.0.0.1:${port}`);
  await onAll(servers, "SET", "hasp:born", "1");
  // though they are young
  assertEquals(await outcomes({ urls }), ["granted", "granted", "granted"]);
  await servers[0].command("DEL", "hasp:born");
  assertEquals(await outcomes({ urls }), ["quarantined", "granted", "granted"]);
});

Deno.test("a lock of another client, a list, or a time in the future in the place of the creation marker is an error vote, and stays as it is", async () => {
  const commands = [
    ["SET", "hasp:born", "a value", "PX", "60000"],
    ["RPUSH", "hasp:born", "x"],
    ["SET", "hasp:born", "99999999999999"],
  ];
  // at the same time, as each waits for the guard to pass
  await Promise.all(commands.map(testInPlaceOfMarker));
});

async function testInPlaceOfMarker(words: readonly string[]): Promise<void> {
  const servers = await oldServers();
  await onAll(servers, "DEL", "hasp:born");
  await onAll(servers, ...words);
  const before = await onAll(servers, "DUMP", "hasp:born");
  await using redlock = createRedlock(servers.urls, OPTIONS);
  for (let round = 0; round < 2; round++) {
    const error = await assertRejects(() => redlock.acquire("a"), QuorumError);
    const failed = error.votes.filter(({ outcome }) => outcome === "failed");
    assert(failed.length >= 2, `${words}: ${Deno.inspect(error.votes)}`);
  }
  assertEquals(await onAll(servers, "DUMP", "hasp:born"), before);
  // An operator who deletes it has the node counted again, once the guard has passed.
  await onAll(servers, "DEL", "hasp:born");
  await assertRejects(() => redlock.acquire("a"), QuorumError, "quarantined");
  await eventually(async () => {
    assertEquals(await outcomes(servers), ["granted", "granted", "granted"]);
  });
}
