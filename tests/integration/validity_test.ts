import {
  assert,
  assertEquals,
  assertGreater,
  assertLess,
  assertLessOrEqual,
  assertMatch,
  assertRejects,
} from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, type Lock, LockLostError, QuorumError } from "../../mod.ts";
import { abortedAt, eventually } from "../support/eventually.ts";
import { startServers } from "../support/servers.ts";
import {
  ANOTHER,
  gone,
  holdByAnother,
  onAll,
  setOnAll,
  shareServers,
  startProxies,
  warmUp,
} from "../support/shared_servers.ts";
import { ENDING, IN_THIRDS, KEPT_TTL_MS, SLACK_MS, TTL_MS } from "../support/times.ts";

const shared = shareServers(5);

// The first validity

Deno.test("acquire() does not grant what was answered after the TTL", async () => {
  await using servers = shared.lend(3);
  await using proxies = await startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { nodeTimeoutMs: 5_000 });
  await warmUp(redlock, servers);
  for (const proxy of proxies.slice(0, 2)) proxy.hang("replies");
  const error = await assertRejects(
    () => deadline(redlock.acquire("late", { ttlMs: 1_000, waitMs: 0 }), 1_000 + SLACK_MS),
    QuorumError,
  );
  assertEquals(
    error.message,
    'Cannot acquire lock "late": 1 of 3 nodes granted it, 2 timed out, 2 are needed',
  );
  for (const proxy of proxies) proxy.resume();
  await gone(servers, "late");
});

Deno.test("acquire() does not grant what was answered in time but read after the TTL", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  await warmUp(redlock, servers);
  const acquiring = redlock.acquire("busy", { ttlMs: 100, waitMs: 0 });
  for (let turn = 0; turn < 10; turn++) await Promise.resolve(); // until the requests are written
  const endMs = performance.now() + 150;
  while (performance.now() < endMs); // a process that is busy, or stopped
  await assertRejects(() => acquiring, QuorumError);
});

Deno.test("Lock that is not extended aborts its signal before the TTL, and is not held any more", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  const startMs = performance.now();
  await using lock = await redlock.acquire("ends", ENDING);
  const endMs = await abortedAt(lock.signal);
  assertLess(endMs, startMs + ENDING.ttlMs);
  assertGreater(endMs, startMs + 900);
  assertEquals([lock.held, lock.remainingMs()], [false, 0]);
  assert(lock.signal.reason instanceof LockLostError);
  assertEquals(lock.signal.reason.message, 'Cannot keep lock "ends": its validity has ended');
  assertEquals(lock.signal.reason.code, "LOCK_LOST");
});

Deno.test("Lock aborts its signal before the TTL if another lock is extended just before", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: 5_000 });
  await warmUp(redlock, servers);
  await using other = await redlock.acquire("goes on", { ttlMs: 60_000, autoExtend: true });
  const startMs = performance.now();
  await using lock = await redlock.acquire("ends", ENDING);
  await eventually(() => lock.remainingMs() < 200);
  await other.extend();
  assertLess(await abortedAt(lock.signal), startMs + ENDING.ttlMs);
});

/** Replaces the wall clock for the rest of the block. */
function stepWallClock(stepMs: number): Disposable {
  const { now } = Date;
  Date.now = () => now() + stepMs;
  return {
    [Symbol.dispose]() {
      Date.now = now;
    },
  };
}

Deno.test("Lock counts as lost where the wall clock steps ahead, as after the machine slept", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  await using lock = await redlock.acquire("slept", { ttlMs: 30_000 });
  const { signal } = lock;
  using _clock = stepWallClock(60_000);
  assertEquals([lock.held, lock.remainingMs()], [false, 0]);
  await deadline(abortedAt(signal), 250 + SLACK_MS); // noticed without being asked
});

Deno.test("Lock ends at its validity where the wall clock steps back", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  const startMs = performance.now();
  await using lock = await redlock.acquire("stepped back", ENDING);
  using _clock = stepWallClock(-60_000);
  assertEquals(lock.held, true);
  assertLess(await abortedAt(lock.signal), startMs + ENDING.ttlMs);
  assertEquals(lock.held, false);
});

// Extensions

Deno.test("extend() does not steal keys of another, and succeeds on the other nodes", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  await using lock = await redlock.acquire("partly taken", { ttlMs: 20_000 });
  await setOnAll(servers, "partly taken", lock);
  await holdByAnother(servers.slice(0, 2), "partly taken", 5_000);
  await lock.extend({ ttlMs: 60_000 });
  assertGreater(lock.remainingMs(), 50_000);
  assertEquals(
    await onAll(servers, "GET", "partly taken"),
    [ANOTHER, ANOTHER, lock.value, lock.value, lock.value],
  );
  for (const pttl of await onAll(servers.slice(0, 2), "PTTL", "partly taken")) {
    assertLessOrEqual(Number(pttl), 5_000);
  }
});

Deno.test("extend() whose replies come after the old validity has ended does not prolong the lock", async () => {
  await using servers = shared.lend(3);
  await using proxies = await startProxies(servers);
  await using redlock = createRedlock(proxies.urls, {
    nodeTimeoutMs: 5_000,
  });
  await warmUp(redlock, servers);
  const startMs = performance.now();
  await using lock = await redlock.acquire("late", ENDING);
  const aborted = abortedAt(lock.signal);
  for (const proxy of proxies) proxy.hang("replies");
  await assertRejects(
    () => deadline(lock.extend({ ttlMs: 60_000 }), 2_000 + SLACK_MS),
    LockLostError,
    'Cannot keep lock "late": its validity has ended',
  );
  assertLess(await aborted, startMs + ENDING.ttlMs);
  for (const proxy of proxies) proxy.resume();
  assertEquals([lock.held, lock.extensions], [false, 0]);
  // The nodes have prolonged the keys by a minute; they are taken back.
  await gone(servers, "late");
});

for (const first of ["extend", "release"] as const) {
  for (const scripts of ["loaded", "flushed", "flushed but for the release"]) {
    Deno.test(`${first}() first, release() and extend() at once leave no key, scripts ${scripts}`, async () => {
      await using servers = shared.lend();
      await using redlock = createRedlock(servers.urls);
      await warmUp(redlock, servers);
      const lock = await redlock.acquire("raced");
      if (scripts !== "loaded") await onAll(servers, "SCRIPT", "FLUSH");
      if (scripts === "flushed but for the release") {
        const other = await redlock.acquire("other");
        await eventually(() => other.votes.length === 5);
        await other.release();
        await gone(servers, "other");
      }
      const extending = first === "extend" ? lock.extend() : undefined;
      const releasing = lock.release();
      const extended = (extending ?? lock.extend()).then(() => undefined, (error) => error);
      assertEquals(await releasing, true);
      const error = await extended;
      assert(error === undefined || error instanceof LockLostError);
      assertEquals(lock.held, false);
      await redlock.close(); // whatever is on its way is answered
      assertEquals(await onAll(servers, "EXISTS", "raced"), [0, 0, 0, 0, 0]);
    });
  }
}

Deno.test("Lock that is extended by itself outlives its TTL", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  await using lock = await redlock.acquire("kept", { ttlMs: KEPT_TTL_MS, autoExtend: true });
  await eventually(() => lock.extensions >= 3 || lock.signal.aborted);
  assertEquals([lock.held, lock.signal.reason], [true, undefined]);
  await setOnAll(servers, "kept", lock);
});

Deno.test("Lock that is extended by itself and released at any moment leaves no key", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  const names = Array.from({ length: 40 }, (_, index) => `raced ${index}`);
  const ends = names.map(async (name, index) => {
    const lock = await redlock.acquire(name, { ttlMs: 90, autoExtend: true });
    await new Promise((resolve) => setTimeout(resolve, 15 + index));
    await lock.release();
  });
  await Promise.all(ends);
  await redlock.close();
  assertEquals(await onAll(servers, "EXISTS", ...names), [0, 0, 0, 0, 0]);
});

Deno.test("Lock that is extended by itself tries again after an error, and is kept", async () => {
  await using servers = shared.lend(3);
  const types: string[] = [];
  await using redlock = createRedlock(servers.urls, {
    onEvent: ({ type }) => types.push(type),
  });
  await using lock = await redlock.acquire("watched", { ttlMs: KEPT_TTL_MS, autoExtend: true });
  await onAll(servers, "REPLICAOF", "127.0.0.1", 1);
  await eventually(() => types.includes("extend-failed"));
  await onAll(servers, "REPLICAOF", "NO", "ONE");
  await eventually(() => lock.extensions >= 3 || lock.signal.aborted);
  assertEquals([lock.held, lock.signal.reason], [true, undefined]);
});

Deno.test("Lock with a short TTL is extended thrice a TTL, not without a pause", async () => {
  await using servers = shared.lend(1);
  await using redlock = createRedlock(servers.urls);
  await warmUp(redlock, servers);
  await servers[0].resetCommandCounts();
  const startMs = performance.now();
  await using lock = await redlock.acquire("short", { ttlMs: 30, autoExtend: true });
  await eventually(() => !lock.held || performance.now() - startMs > 300);
  const elapsedMs = performance.now() - startMs;
  const { evalsha = 0, eval: whole = 0 } = await servers[0].commandCounts();
  assertLess(evalsha + whole, 2 * elapsedMs / 10 + 5);
});

// Locks that are lost

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
  await gone(servers, "flushed");
  assertEquals(await lock.release(), false);
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
  await gone(servers, "restarted");
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
