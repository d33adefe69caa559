/** `atLeastMs` and `lead()` on real servers. */

import { assert, assertEquals, assertGreaterOrEqual, assertLess } from "@std/assert";
import { createRedlock } from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import { onAll, shareServers } from "../support/shared_servers.ts";

const shared = shareServers(3);
const AT_LEAST_MS = 1_500;

Deno.test("using() with atLeastMs runs a job once for clients that come late, also when the first has closed", async () => {
  await using servers = shared.lend();
  const runs: number[] = [];
  const options = { waitMs: 0, ttlMs: 60_000, atLeastMs: 60_000 };
  for (const machine of [1, 2, 3]) {
    await using redlock = createRedlock(servers.urls, options);
    await redlock.using("nightly", () => void runs.push(machine)).catch(() => {});
  }
  assertEquals(runs, [1]);
  const lives = await onAll(servers, "PTTL", "nightly") as number[];
  assert(lives.every((ms) => ms > 30_000 && ms <= 60_000), `${lives}`);
});

Deno.test("a call that waits gets a lock with atLeastMs when that time is over, without a notification", async () => {
  await using servers = shared.lend();
  await using one = createRedlock(servers.urls, { ttlMs: 60_000, atLeastMs: AT_LEAST_MS });
  await using other = createRedlock(servers.urls);
  const startMs = performance.now();
  const lock = await one.acquire("job");
  const waiting = other.acquire("job", { waitMs: 60_000 });
  await eventually(async () => assertEquals((await one.inspect("job")).waiters, 1));
  assertEquals(await lock.release(), true);
  await (await waiting).release();
  const waitedMs = performance.now() - startMs;
  assertGreaterOrEqual(waitedMs, AT_LEAST_MS);
  assertLess(waitedMs, 30_000); // and not the TTL
  await eventually(async () => {
    assertEquals(await onAll(servers, "EXISTS", "job", "hasp:queue:job"), [0, 0, 0]);
  });
});

Deno.test("lead() passes from one client to the next that waits, and ends without a key", async () => {
  await using servers = shared.lend();
  const leaders: string[] = [];
  const stops = [new AbortController(), new AbortController()];
  const leading = stops.map(async ({ signal }, index) => {
    await using redlock = createRedlock(servers.urls);
    await redlock.lead("leader", { signal }, async (lock) => {
      leaders.push(`${index}`);
      await new Promise((resolve) => lock.signal.addEventListener("abort", resolve));
    });
  });
  await eventually(() => assertEquals(leaders.length, 1));
  const first = Number(leaders[0]);
  stops[first].abort();
  await leading[first];
  await eventually(() => assertEquals(leaders, [`${first}`, `${1 - first}`]));
  stops[1 - first].abort();
  await Promise.all(leading);
  assertEquals(await onAll(servers, "EXISTS", "leader"), [0, 0, 0]);
});
