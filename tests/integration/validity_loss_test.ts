import { assert, assertEquals, assertLess, assertMatch, assertRejects } from "@std/assert";
import { createRedlock, type Lock, LockLostError, type RedlockEvent } from "../../mod.ts";
import { abortedAt, eventually } from "../support/eventually.ts";
import { startServers } from "../support/servers.ts";
import {
  ANOTHER,
  holdByAnother,
  onAll,
  shareServers,
  startProxies,
} from "../support/shared_servers.ts";
import { IN_THIRDS, TTL_MS } from "../support/times.ts";

const shared = shareServers(5);

Deno.test("Lock whose keys were taken by another on a majority aborts before the TTL, and leaves them", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  const startMs = performance.now();
  await using lock = await redlock.acquire("stolen", { ...IN_THIRDS, autoExtend: true });
  await holdByAnother(servers.slice(0, 3), "stolen");
  const abortMs = await abortedAt(lock.signal);
  assertLess(abortMs, startMs + IN_THIRDS.ttlMs);
  assertEquals(
    lock.signal.reason.message,
    'Cannot keep lock "stolen": a majority of the nodes no longer holds it',
  );
  await eventually(async () =>
    assertEquals(
      await onAll(servers, "GET", "stolen"),
      [ANOTHER, ANOTHER, ANOTHER, null, null],
    )
  );
});

Deno.test("Lock whose majority was flushed is lost, and never brought back", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  const startMs = performance.now();
  const lock = await redlock.acquire("flushed", { ...IN_THIRDS, autoExtend: true });
  await onAll(servers.slice(0, 3), "FLUSHALL");
  const abortMs = await abortedAt(lock.signal);
  assertLess(abortMs, startMs + IN_THIRDS.ttlMs);
  assertEquals(lock.held, false);
  await eventually(async () =>
    assertEquals(await onAll(servers, "EXISTS", "flushed"), [0, 0, 0, 0, 0])
  );
  assertEquals(await lock.release(), false);
});

Deno.test("Lock counts a key that an extension set again from the next extension on", async () => {
  await using servers = shared.lend(3);
  const events: RedlockEvent[] = [];
  await using redlock = createRedlock(servers.urls, { onEvent: (event) => events.push(event) });
  await using lock = await redlock.acquire("filled in", { ttlMs: 20_000 });
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "filled in"), Array(3).fill(lock.value))
  );
  await servers[0].command("DEL", "filled in");
  const outcomes = () =>
    events.findLast((event) => event.type === "extended")!.votes
      .filter(({ node }) => node === servers.urls[0]).map(({ outcome }) => outcome);
  await lock.extend();
  // Whether its answer came before the decision or not, it was no grant.
  assert(!outcomes().includes("granted"));
  await eventually(async () =>
    assertEquals(await servers[0].command("GET", "filled in"), lock.value)
  );
  await servers[1].command("DEL", "filled in");
  await lock.extend(); // granted by the first and the third node
  assertEquals([lock.held, lock.extensions], [true, 2]);
});

Deno.test("Lock that a bare quorum holds is lost where one more node forgets it", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  await using lock = await redlock.acquire("eroded", { ttlMs: 20_000 });
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "eroded"), Array(3).fill(lock.value))
  );
  await onAll(servers.slice(0, 2), "DEL", "eroded");
  const error = await assertRejects(() => lock.extend(), LockLostError);
  assertEquals(
    error.message,
    'Cannot keep lock "eroded": a majority of the nodes no longer holds it',
  );
  assertEquals([lock.held, lock.signal.aborted], [false, true]);
  await eventually(async () => assertEquals(await onAll(servers, "EXISTS", "eroded"), [0, 0, 0]));
});

Deno.test("Lock does not erode as it is extended while all nodes restart empty, one by one", async () => {
  await using servers = await startServers(5);
  await using redlock = createRedlock(servers.urls);
  await using lock = await redlock.acquire("restarted", { ttlMs: TTL_MS });
  for (const server of servers) {
    await server.restart();
    await eventually(async () => {
      await lock.extend();
      assertEquals(await server.command("GET", "restarted"), lock.value);
    });
  }
  assertEquals([lock.held, lock.signal.aborted], [true, false]);
  assertEquals(await onAll(servers, "GET", "restarted"), Array(5).fill(lock.value));
});

Deno.test("Lock whose majority restarts empty at once is lost before the TTL", async () => {
  await using servers = await startServers(5);
  await using redlock = createRedlock(servers.urls);
  const startMs = performance.now();
  await using lock = await redlock.acquire("restarted", { ...IN_THIRDS, autoExtend: true });
  const aborted = abortedAt(lock.signal);
  await Promise.all(servers.slice(0, 3).map((server) => server.restart()));
  assertLess(await aborted, startMs + IN_THIRDS.ttlMs);
  await eventually(async () =>
    assertEquals(await onAll(servers, "EXISTS", "restarted"), [0, 0, 0, 0, 0])
  );
});

/** Faults that leave a holder without its majority, and how each is brought about. */
const HELD_WHILE: [string, (servers: ServersAndProxies) => Promise<void> | void][] = [
  ["refuses connections", async ({ proxies }) => {
    for (const proxy of proxies.slice(0, 3)) {
      await proxy.refuse();
    }
  }],
  ["receives requests but cannot reply", ({ proxies }) => {
    for (const proxy of proxies.slice(0, 3)) proxy.hang("replies");
  }],
  ["refuses to write", async ({ servers }) => {
    await onAll(servers.slice(0, 3), "REPLICAOF", "127.0.0.1", 1);
  }],
];

interface ServersAndProxies {
  servers: Awaited<ReturnType<typeof startServers<5>>>;
  proxies: Awaited<ReturnType<typeof startProxies>>;
}

for (const [what, bringAbout] of HELD_WHILE) {
  Deno.test(`Lock whose majority ${what} while it is extended by itself aborts before the TTL`, async () => {
    await using servers = await startServers(5);
    await using proxies = await startProxies(servers);
    await using redlock = createRedlock(proxies.urls);
    const startMs = performance.now();
    await using lock: Lock = await redlock.acquire("held", { ...IN_THIRDS, autoExtend: true });
    const aborted = abortedAt(lock.signal);
    await bringAbout({ servers, proxies });
    assertLess(await aborted, startMs + IN_THIRDS.ttlMs);
    assertEquals([lock.held, lock.extensions], [false, 0]);
    assert(lock.signal.reason instanceof LockLostError);
    assertMatch(
      lock.signal.reason.message,
      /^Cannot keep lock "held": its validity has ended before an extension succeeded: [012] of 5 nodes extended it(, [123] (failed|timed out)){0,2}, 3 are needed(; first error: .+)?$/,
    );
  });
}
