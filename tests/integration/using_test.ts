import { assertEquals, assertLess, assertMatch, assertRejects } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, type Lock, LockLostError } from "../../mod.ts";
import { abortedAt, eventually } from "../support/eventually.ts";
import type { FaultProxy } from "../../src/testing/mod.ts";
import { type Group, type RedisServer, startServers } from "../support/servers.ts";
import {
  gone,
  onAll,
  setOnAll,
  shareServers,
  startProxies,
  warmUp,
} from "../support/shared_servers.ts";
import { IN_THIRDS, KEPT_TTL_MS, SLACK_MS } from "../support/times.ts";

const shared = shareServers(5);

Deno.test("using() resolves to what the routine returns, with the lock held while it runs and gone after it", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  let lock: Lock | undefined;
  const result = await redlock.using("job", { ttlMs: 20_000 }, async (given) => {
    lock = given;
    assertEquals([given.held, given.resources], [true, ["job"]]);
    await eventually(async () =>
      assertEquals(await onAll(servers, "GET", "job"), Array(5).fill(given.value))
    );
    return 42;
  });
  assertEquals(result, 42);
  assertEquals([lock!.held, lock!.signal.aborted], [false, false]);
  await gone(servers, "job");
});

Deno.test("using() extends the lock for as long as the routine runs", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  await redlock.using("long", { ttlMs: KEPT_TTL_MS }, async (lock) => {
    await eventually(() => lock.extensions >= 3 || lock.signal.aborted);
    assertEquals([lock.held, lock.signal.reason], [true, undefined]);
  });
  await redlock.close();
  assertEquals(await onAll(servers, "EXISTS", "long"), [0, 0, 0, 0, 0]);
});

Deno.test("using() does not extend where autoExtend is false", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  const error = await assertRejects(
    () =>
      redlock.using("short", { ttlMs: 300, autoExtend: false }, async (lock) => {
        await abortedAt(lock.signal);
        assertEquals(lock.extensions, 0);
      }),
    LockLostError,
  );
  assertEquals(error.message, 'Cannot keep lock "short": its validity has ended');
});

Deno.test("using() rejects with what the routine throws, and releases", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  const own = new Error("the routine's own");
  const error = await assertRejects(() =>
    redlock.using("failing", () => {
      throw own;
    })
  );
  assertEquals(error, own);
  await gone(servers, "failing");
});

for (const outcome of ["result", "error"]) {
  Deno.test(`using() gives the routine's ${outcome} where the release fails`, async () => {
    await using servers = shared.lend();
    await using redlock = createRedlock(servers.urls, { ttlMs: 20_000, nodeTimeoutMs: 200 });
    const own = new Error("the routine's own");
    const settled = deadline(
      redlock.using("unreleased", async () => {
        await Promise.all(servers.slice(0, 3).map((server) => server.pause()));
        if (outcome === "error") throw own;
        return "done";
      }),
      200 + SLACK_MS,
    );
    if (outcome === "error") assertEquals(await assertRejects(() => settled), own);
    else assertEquals(await settled, "done");
  });
}

/** What takes the majority from a lock that `using` extends. */
const LOSSES: [string, (servers: readonly RedisServer[], proxies: Group<FaultProxy>) => unknown][] =
  [
    ["hung", (servers) => Promise.all(servers.slice(0, 3).map((server) => server.pause()))],
    ["killed", (servers) => Promise.all(servers.slice(0, 3).map((server) => server.kill()))],
    ["partitioned away", (_servers, proxies) => {
      for (const proxy of proxies.slice(0, 3)) proxy.hang();
    }],
    ["half open", (_servers, proxies) => {
      for (const proxy of proxies.slice(0, 3)) proxy.halfOpen();
    }],
    [
      "refusing connections",
      (_servers, proxies) => Promise.all(proxies.slice(0, 3).map((proxy) => proxy.refuse())),
    ],
    ["without replies", (_servers, proxies) => {
      for (const proxy of proxies.slice(0, 3)) proxy.hang("replies");
    }],
    ["refusing to write", (servers) => onAll(servers.slice(0, 3), "REPLICAOF", "127.0.0.1", 1)],
  ];

for (const [what, strike] of LOSSES) {
  Deno.test(`using() aborts lock.signal before the TTL with the majority ${what}, and rejects though the routine resolves`, async () => {
    await using servers = await startServers(5);
    await using proxies = await startProxies(servers);
    await using redlock = createRedlock(proxies.urls);
    await warmUp(redlock, servers);
    const startMs = performance.now();
    let abortMs = Infinity;
    const error = await assertRejects(
      () =>
        deadline(
          redlock.using("lost", IN_THIRDS, async (lock) => {
            const aborted = abortedAt(lock.signal);
            await setOnAll(servers, "lost", lock);
            await strike(servers, proxies);
            abortMs = await aborted;
            assertEquals([lock.held, lock.remainingMs()], [false, 0]);
          }),
          IN_THIRDS.ttlMs + SLACK_MS,
        ),
      LockLostError,
    );
    assertLess(abortMs, startMs + IN_THIRDS.ttlMs);
    assertMatch(
      error.message,
      /^Cannot keep lock "lost": its validity has ended before an extension succeeded: [012] of 5 nodes extended it(, [123] (failed|timed out))?, 3 are needed(; first error: .+)?$/,
    );
  });
}

Deno.test("using() gives the routine's own error where the lock was lost too", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  const own = new Error("the routine's own");
  const error = await assertRejects(() =>
    redlock.using("lost", { ttlMs: 300 }, async (lock) => {
      await onAll(servers, "FLUSHALL");
      await abortedAt(lock.signal);
      throw own;
    })
  );
  assertEquals(error, own);
});

Deno.test("using() gives lock.signal's reason where the routine passes it on", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  const error = await assertRejects(
    () =>
      redlock.using("lost", { ttlMs: KEPT_TTL_MS }, async (lock) => {
        await onAll(servers, "FLUSHALL");
        await abortedAt(lock.signal);
        lock.signal.throwIfAborted();
      }),
    LockLostError,
  );
  assertEquals(
    error.message,
    'Cannot keep lock "lost": a majority of the nodes no longer holds it',
  );
});

Deno.test("using() passes an abort of its signal on to the routine, whose result wins", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  const controller = new AbortController();
  const reason = new Error("stop");
  const result = await redlock.using("stopped", { signal: controller.signal }, async (lock) => {
    const aborted = abortedAt(lock.signal);
    controller.abort(reason);
    await aborted;
    assertEquals(lock.signal.reason, reason);
    assertEquals(lock.held, true); // the lock itself stands until the routine is over
    return "stopped in good order";
  });
  assertEquals(result, "stopped in good order");
  await gone(servers, "stopped");
});
