/** `atLeastMs` and `lead()` on real servers. */

import { assert, assertEquals } from "@std/assert";
import { createRedlock } from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import { onAll, shareServers } from "../support/shared_servers.ts";

const { test } = shareServers(3);

test("using() with atLeastMs runs a job once for clients that come late, also when the first has closed", async (servers) => {
  const runs: number[] = [];
  const options = { waitMs: 0, ttlMs: 60_000, atLeastMs: 60_000 };
  for (const machine of [1, 2, 3]) {
    await using redlock = createRedlock(servers.urls, options);
    await redlock.using("nightly", () => void runs.push(machine)).catch(() => {});
  }
  assertEquals(runs, [1]);
  const lives = await onAll(servers, "PTTL", "nightly") as number[];
  const kept = lives.filter((ms) => ms > 30_000 && ms <= 60_000);
  assert(kept.length >= 2, `${lives}`); // the first may close before it reaches the third
});

test("lead() passes from one client to the next that waits, and ends without a key", async (servers) => {
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
