import { assert, assertEquals, assertGreater, assertLess, assertLessOrEqual } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, LockLostError } from "../../mod.ts";
import { abortedAt, eventually } from "../support/eventually.ts";
import {
  ANOTHER,
  gone,
  holdByAnother,
  onAll,
  setOnAll,
  shareServers,
  warmUp,
} from "../support/shared_servers.ts";
import { ENDING, IN_THIRDS, KEPT_TTL_MS, SLACK_MS } from "../support/times.ts";

const shared = shareServers(5);

// The first validity

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
