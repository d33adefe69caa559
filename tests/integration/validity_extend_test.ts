import {
  assert,
  assertEquals,
  assertGreater,
  assertLess,
  assertLessOrEqual,
  assertRejects,
} from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, LockLostError } from "../../mod.ts";
import { abortedAt, eventually } from "../support/eventually.ts";
import {
  ANOTHER,
  holdByAnother,
  onAll,
  shareServers,
  startProxies,
  warmUp,
} from "../support/shared_servers.ts";
import { ENDING, KEPT_TTL_MS, SLACK_MS } from "../support/times.ts";

const shared = shareServers(5);

Deno.test("extend() does not steal keys of another, and succeeds on the other nodes", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  await using lock = await redlock.acquire("partly taken", { ttlMs: 20_000 });
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "partly taken"), Array(5).fill(lock.value))
  );
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

Deno.test("extend() reports no success where another holds a majority", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  await using lock = await redlock.acquire("taken", { ttlMs: 20_000 });
  await holdByAnother(servers.slice(0, 2), "taken");
  await assertRejects(() => lock.extend(), LockLostError);
  assertEquals([lock.held, lock.extensions], [false, 0]);
  assertEquals(await onAll(servers.slice(0, 2), "GET", "taken"), [ANOTHER, ANOTHER]);
});

Deno.test("extend() never shortens the TTL nor the validity", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  await using lock = await redlock.acquire("long", { ttlMs: 60_000 });
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "long"), Array(5).fill(lock.value))
  );
  await lock.extend({ ttlMs: 1_000 });
  assertGreater(lock.remainingMs(), 50_000);
  for (const pttl of await onAll(servers, "PTTL", "long")) assertGreater(Number(pttl), 50_000);
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
  await eventually(async () => assertEquals(await onAll(servers, "EXISTS", "late"), [0, 0, 0]));
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
        await eventually(async () =>
          assertEquals(await onAll(servers, "EXISTS", "other"), [0, 0, 0, 0, 0])
        );
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
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "kept"), Array(5).fill(lock.value))
  );
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
