import { assert, assertEquals, assertGreater } from "@std/assert";
import { Logger } from "@valkey/valkey-glide";
import { createClient } from "redis";
import { Redis } from "ioredis";
import { commandNode } from "../../src/nodes/mod.ts";
import { testLockNode } from "../../src/testing/mod.ts";
import { testQueue } from "./queue_cases.ts";
import { Redlock } from "../../mod.ts";
import { check } from "../../src/operate/mod.ts";
import { ioredisNode } from "../examples/ioredis.ts";
import { nodeRedisNode } from "../examples/node_redis.ts";
import { glideNode } from "../examples/valkey_glide.ts";
import { brokenNode } from "../support/broken_node.ts";
import { type Recipe, runCrowd } from "../support/crowd.ts";
import { CROWD_SIZE, expectExclusion } from "../support/crowd_size.ts";
import { onStore, realStore } from "../support/nodes_to_test.ts";
import { startProxy } from "../../src/testing/mod.ts";
import { breakConnections } from "../support/reconnecting.ts";
import { startServer, startServers } from "../support/servers.ts";
import { shareServers } from "../support/shared_servers.ts";

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

/** ioredis with its own options. */
const ioredisDefaults: Recipe = (url) => {
  const redis = new Redis(url).on("error", () => {});
  const send = ([name, ...args]: string[]) => redis.call(name, args);
  return { node: commandNode({ name: url, send }), close: () => redis.disconnect() };
};

/** node-redis with the replies of RESP2 or RESP3. */
const nodeRedis = (protocol: 2 | 3): Recipe => async (url) => {
  const { node, redis } = await nodeRedisNode(url, protocol);
  return { node, close: () => redis.destroy() };
};

/** Valkey GLIDE. */
const glide: Recipe = async (url) => {
  const { node, glide } = await glideNode(url);
  return { node, close: () => glide.close() };
};

/** node-redis with its own options. */
const nodeRedisDefaults: Recipe = async (url) => {
  const redis = await createClient({ url }).on("error", () => {}).connect();
  const send = (args: string[]) => redis.sendCommand(args);
  return { node: commandNode({ name: url, send }), close: () => redis.destroy() };
};

/** Each recipe, beside the client's own options. */
const CROWDS = {
  ioredis: [ioredis, ioredisDefaults],
  "node-redis": [nodeRedis(2), nodeRedisDefaults],
  "Valkey GLIDE": [glide],
};
Logger.setLoggerConfig("off"); // GLIDE logs each error that a server replies with

/**
 * Registers a case. A client that reconnects leaves a timer if it is closed meanwhile, which no
 * sanitizer may mind.
 */
const prefixed = (recipe: string) => (name: string, run: () => Promise<void>) => {
  Deno.test({
    name: `${recipe}: ${name}`,
    sanitizeOps: false,
    sanitizeResources: false,
    fn: run,
  });
};

const store = realStore(shareServers(1));

testLockNode(() => onStore(store, ioredis), { test: prefixed("ioredis") });
testQueue(() => onStore(store, ioredis), prefixed("ioredis"));

testLockNode(() => onStore(store, glide), {
  test: prefixed("Valkey GLIDE"),
  without: ["race"], // the server decides it, whatever the client
});
testQueue(() => onStore(store, glide), prefixed("Valkey GLIDE"));

prefixed("Valkey GLIDE")(
  "check() reads maps, and a script that the server has forgotten is sent again",
  async () => {
    await using server = await startServer({ config: ["appendonly yes", "appendfsync always"] });
    const { node, close } = await glide(server.url);
    const redlock = new Redlock([node]);
    try {
      const [{ appendfsync, refused }] = (await check(redlock)).nodes;
      assertEquals([appendfsync, refused], ["always", undefined]);
      await redlock.using("invoice:42", () => {});
      await server.command("SCRIPT", "FLUSH");
      assert(await redlock.acquire("invoice:42").then((lock) => lock.release()));
    } finally {
      await redlock.close();
      await close();
    }
  },
);

for (const protocol of [2, 3] as const) {
  testLockNode(() => onStore(store, nodeRedis(protocol)), {
    test: prefixed(`node-redis with RESP${protocol}`),
    // replies alone differ
    without: protocol === 3 ? ["race", "hang"] : ["race", "fencing", "adopting", "sharing"],
  });
  testQueue(
    () => onStore(store, nodeRedis(protocol)),
    prefixed(`node-redis with RESP${protocol}`),
  );
}

for (const [client, recipes] of Object.entries(CROWDS)) {
  // GLIDE subscribes again by itself, and does not report it.
  if (recipes[0] !== glide) {
    Deno.test({
      name:
        `${client}: connects and subscribes again after a restart, and replaces a silent connection`,
      sanitizeOps: false,
      sanitizeResources: false,
      async fn() {
        await using server = await startServer();
        await using proxy = await startProxy(server.url);
        const restart = () => server.restart();
        const halfOpen = () => proxy.halfOpen();
        const report = await breakConnections(recipes[0], {
          proxyUrl: proxy.address,
          restart,
          halfOpen,
        });
        assertGreater(report.afterRestart, report.atFirst);
      },
    });
  }

  Deno.test({
    name: `${client}: no two clients hold the lock at once while nodes die and hang`,
    sanitizeOps: false, // a client that is closed while it reconnects leaves a timer
    sanitizeResources: false,
    async fn() {
      await using servers = await startServers(5);
      expectExclusion(await runCrowd(recipes, servers, CROWD_SIZE));
    },
  });
}

Deno.test("a crowd without a lock that excludes is found out", async () => {
  await using servers = await startServers(5);
  const nodes = new Map(servers.map(({ url }) => [url, brokenNode("acquires what is held").node]));
  const recipe: Recipe = (url) => {
    const { acquire, extend, release, inspect } = nodes.get(url)!;
    return { node: { name: url, acquire, extend, release, inspect }, close: () => {} };
  };
  const { overlaps } = await runCrowd([recipe], servers, { locks: 50, faults: 0 });
  assertGreater(overlaps, 0);
});
