import { assert, assertEquals, assertGreater, assertGreaterOrEqual } from "@std/assert";
import type { LockNode } from "../../mod.ts";
import { testLockNode } from "../../src/testing/mod.ts";
import { ioredisNode } from "../examples/ioredis.ts";
import { upstashNode } from "../examples/upstash.ts";
import { type Recipe, runCrowd } from "../support/crowd.ts";
import { MapNode } from "../support/map_node.ts";
import { onStore, realStore } from "../support/nodes_to_test.ts";
import { startServers } from "../support/servers.ts";
import { startBridge } from "../support/upstash_bridge.ts";

/** How many locks each crowd takes; a long run has `HASP_LOCKS=10000`. */
const LOCKS = Number(Deno.env.get("HASP_LOCKS") ?? 300);
/** How many faults each crowd survives at least. */
const FAULTS = 8;

const ioredis: Recipe = async (url) => {
  const { node, redis } = await ioredisNode(url);
  const ended = new Promise<void>((resolve) => redis.once("end", () => resolve()));
  return {
    node,
    close: async () => {
      const connected = redis.status === "ready";
      redis.disconnect();
      if (connected) await ended; // a client that is reconnecting emits nothing more
    },
  };
};

const prefixed = (recipe: string) => (name: string, run: () => Promise<void>) => {
  Deno.test(`${recipe}: ${name}`, run);
};

testLockNode(() => onStore(realStore, ioredis), { test: prefixed("ioredis") });

testLockNode(
  () =>
    onStore(realStore, (url) => {
      const bridge = startBridge(url);
      return { node: upstashNode(bridge.url, bridge.token), close: () => bridge.close() };
    }),
  { test: prefixed("Upstash's REST protocol"), without: ["queue"] },
);

Deno.test({
  name: "ioredis: no two clients hold the lock at once while nodes die and hang",
  sanitizeOps: false, // a client that is closed while it reconnects leaves a timer
  sanitizeResources: false,
  async fn() {
    await using servers = await startServers(5);
    expectExclusion(await runCrowd(ioredis, servers, { locks: LOCKS, faults: FAULTS }));
  },
});

Deno.test("Upstash's REST protocol: no two clients hold the lock at once while nodes die and hang, and requests are late or lost", async () => {
  await using servers = await startServers(5);
  const bridges = new Map(servers.map(({ url }) => [
    url,
    startBridge(url, {
      delayMs: () => Math.random() < 0.03 ? Math.random() * 100 : 0,
      losesReply: () => Math.random() < 0.01,
    }),
  ]));
  const recipe: Recipe = (url) => {
    const bridge = bridges.get(url)!;
    return { node: upstashNode(bridge.url, bridge.token), close: () => {} };
  };
  const report = await runCrowd(recipe, servers, { locks: LOCKS, faults: FAULTS });
  for (const bridge of bridges.values()) await bridge.close();
  expectExclusion(report);
});

Deno.test("a crowd without a lock that excludes is found out", async () => {
  await using servers = await startServers(5);
  const nodes = new Map(servers.map(({ url }) => [url, new MapNode("acquires what is held")]));
  const recipe: Recipe = (url) => ({ node: named(url, nodes.get(url)!), close: () => {} });
  const { overlaps } = await runCrowd(recipe, servers, { locks: 50, faults: 0 });
  assertGreater(overlaps, 0);
});

/** One store under a name of its own. */
function named(name: string, store: MapNode): LockNode {
  return {
    name,
    acquire: (request, nodeIndex) => store.acquire(request, nodeIndex),
    extend: (request, nodeIndex) => store.extend(request, nodeIndex),
    release: (request, nodeIndex) => store.release(request, nodeIndex),
    inspect: (key) => store.inspect(key),
  };
}

function expectExclusion(report: Awaited<ReturnType<typeof runCrowd>>): void {
  assertEquals(report.overlaps, 0);
  assertGreaterOrEqual(report.locks, LOCKS);
  assertGreaterOrEqual(report.faults, FAULTS);
  assert(report.lost < report.locks);
}
