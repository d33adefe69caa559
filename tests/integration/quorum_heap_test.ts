import { assertEquals, assertLess } from "@std/assert";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createRedlock, type Lock } from "../../mod.ts";
import { startServers } from "../support/servers.ts";
import { LONG_NODE_TIMEOUT_MS, TTL_MS } from "../support/times.ts";

/** Collects garbage as a test needs it, and returns how much of the heap is in use. */
function heapUsedBytes(): number {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  return Deno.memoryUsage().heapUsed;
}

/** What one acquisition may leave on the heap; peers leave 5 to 9 kB. */
const GROWTH_BYTES_MAX = 400;

for (const state of ["dead", "hung"]) {
  Deno.test(`acquire() and release() by the thousand with a ${state} node of five don't fill the heap`, async () => {
    await using servers = await startServers(5);
    // Longer than the test takes: a connection that counts as silent is made again, and its queue
    // fills again.
    const nodeTimeoutMs = LONG_NODE_TIMEOUT_MS;
    await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS, nodeTimeoutMs });
    const rounds = async (count: number) => {
      for (let round = 0; round < count; round += 50) {
        await Promise.all(Array.from({ length: 50 }, async (_, index) => {
          const lock: Lock = await redlock.acquire(`heap ${round + index}`);
          assertEquals(await lock.release(), true);
        }));
      }
    };
    if (state === "dead") await servers[4].kill();
    else await servers[4].pause();
    // The commands to a hung node wait for their replies, up to a limit that these reach.
    await rounds(26_000);
    // What leaks grows every time; other growth, of compiled code for example, comes to an end.
    let leastBytes = Infinity;
    for (let tries = 0; tries < 4 && leastBytes >= GROWTH_BYTES_MAX; tries++) {
      const beforeBytes = heapUsedBytes();
      await rounds(20_000);
      leastBytes = Math.min(leastBytes, (heapUsedBytes() - beforeBytes) / 20_000);
    }
    assertLess(leastBytes, GROWTH_BYTES_MAX);
  });
}
