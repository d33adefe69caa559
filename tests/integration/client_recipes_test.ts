import { assert, assertEquals, assertGreater, assertRejects } from "@std/assert";
import { Logger } from "@valkey/valkey-glide";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { QuorumError, Redlock } from "../../mod.ts";
import { commandNode } from "../../src/nodes/mod.ts";
import { check, list } from "../../src/operate/mod.ts";
import { startProxy, testLockNode } from "../../src/testing/mod.ts";
import { ioredisNode } from "../examples/ioredis.ts";
import { clusterNode } from "../examples/ioredis_cluster.ts";
import { nodeRedisNode } from "../examples/node_redis.ts";
import { glideNode } from "../examples/valkey_glide.ts";
import { brokenNode } from "../support/broken_node.ts";
import { type Recipe, runCrowd } from "../support/crowd.ts";
import { CROWD_SIZE, expectExclusion } from "../support/crowd_size.ts";
import { eventually } from "../support/eventually.ts";
import { onStore, realStore } from "../support/nodes_to_test.ts";
import { breakConnections } from "../support/reconnecting.ts";
import { startServer, startServers } from "../support/servers.ts";
import { shareServers } from "../support/shared_servers.ts";
import { testQueue } from "./queue_cases.ts";

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

Deno.test("ioredis_cluster.ts locks, waits, fences and shares on a cluster if all keys have one hash tag", async () => {
  await using servers = await startServers(2, {
    config: ["cluster-enabled yes", "cluster-announce-ip 127.0.0.1"],
    // of the client, which finds the nodes, and of a server from which a key moves
    rights: [
      ...["+cluster|slots", "+cluster|info", "+info", "+command", "+readonly"],
      ...["+select", "+restore", "+restore-asking"],
    ],
  });
  const [ofTag, server] = servers; // "{locks}" has the slot 1236
  await ofTag.command("CLUSTER", "ADDSLOTSRANGE", 0, 8_191);
  await server.command("CLUSTER", "ADDSLOTSRANGE", 8_192, 16_383);
  await server.command("CLUSTER", "MEET", "127.0.0.1", ofTag.port);
  await eventually(async () => {
    for (const each of servers) {
      assert(String(await each.command("CLUSTER", "INFO")).includes("cluster_state:ok"));
      assertEquals((await each.command("CLUSTER", "SLOTS") as unknown[]).length, 2);
    }
  });
  const startup = [{ host: "127.0.0.1", port: server.port }];
  const [one, other] = await Promise.all([clusterNode(startup), clusterNode(startup)]);
  {
    await using redlock = new Redlock([one.node], { keyPrefix: "{locks}:" });
    await using second = new Redlock([other.node]); // with a tag in each name instead
    const lock = await redlock.acquire("a", { fencing: true });
    assertEquals(await second.tryAcquire("{locks}:a"), undefined);
    const waiting = second.acquire("{locks}:a", { fencing: true });
    await eventually(async () => assertEquals((await redlock.inspect("a")).waiters, 1));
    // where scripts look for it
    assertEquals((await ofTag.command("PUBSUB", "CHANNELS") as unknown[]).length, 1);
    await lock.release();
    const next = await waiting;
    assert(next.fencingToken > lock.fencingToken);
    await next.extend();
    assertEquals(await next.release(), true);
    assertEquals(await redlock.using("a", { mode: "shared" }, () => "done"), "done");
    assertEquals(await redlock.using(["a", "b"], () => "done"), "done");
    const error = await assertRejects(
      () => second.acquire(["one", "two"], { waitMs: 0 }),
      QuorumError,
    );
    assert(error.message.includes("a hash tag in each resource"), error.message);

    // While the slot moves, a script finds the lock's key, and no queue: calls wait.
    const reader = await redlock.acquire("a", { mode: "shared" });
    const from = String(await ofTag.command("CLUSTER", "MYID"));
    const to = String(await server.command("CLUSTER", "MYID"));
    await server.command("CLUSTER", "SETSLOT", 1_236, "IMPORTING", from);
    await ofTag.command("CLUSTER", "SETSLOT", 1_236, "MIGRATING", to);
    const held = second.acquire("{locks}:a", { waitMs: 500 });
    await assertRejects(() => held, QuorumError, "a non local key in a cluster node");

    // Of the slot, the lock's key has moved, and the set of its readers has not.
    await ofTag.command("MIGRATE", "127.0.0.1", server.port, "{locks}:a", 0, 10_000);
    await assertRejects(() => redlock.tryAcquire("a", { mode: "shared" }), QuorumError);
    assertEquals(reader.held, true);
    for (const each of [server, ofTag]) await each.command("CLUSTER", "SETSLOT", 1_236, "NODE", to);
  }
  for (const { cluster } of [one, other]) {
    const ended = new Promise((resolve) => cluster.once("end", resolve));
    cluster.disconnect();
    await ended;
  }
});

/** Runs with a lock client on ioredis, and its own client for comparison. */
async function withIoredis(
  keyPrefix: string,
  run: (redlock: Redlock, redis: Redis) => Promise<void>,
): Promise<void> {
  await using server = await startServer();
  const redis = new Redis(server.url, { keyPrefix });
  const ended = new Promise<void>((resolve) => redis.once("end", () => resolve()));
  try {
    const send = ([name, ...args]: string[]) => redis.call(name, args);
    await using redlock = new Redlock([commandNode({ name: "a", send, resends: false })]);
    await run(redlock, redis);
  } finally {
    redis.disconnect();
    await ended;
  }
}

Deno.test("ioredis with a keyPrefix: locks exclude, and list() and inspect() reject and say what to do", async () => {
  await withIoredis("app:", async (redlock) => {
    await using lock = await redlock.acquire("invoice:42", { mode: "shared" });
    assert(lock.held);
    assertEquals(await redlock.tryAcquire("invoice:42"), undefined);
    const why = "Cannot read keys of a as its client adds a prefix: " +
      "give the node a client that adds none, and 'keyPrefix' to Redlock";
    const reading = [() => redlock.inspect("invoice:42"), () => Array.fromAsync(list(redlock))];
    for (const read of reading) {
      const error = await assertRejects(read, QuorumError);
      assert(error.message.includes(why), error.message);
      assert(await redlock.acquire("invoice:42", { mode: "shared" }).then((it) => it.release()));
    }
  });
});

Deno.test("ioredis without a keyPrefix: list() and inspect() find what a lock client with one locks", async () => {
  await withIoredis("", async (redlock, redis) => {
    const send = ([name, ...args]: string[]) => redis.call(name, args);
    const node = commandNode({ name: "b", send, resends: false });
    await using prefixed = new Redlock([node], { keyPrefix: "app:" });
    await using _lock = await prefixed.acquire("invoice:42");
    const [listed] = await Array.fromAsync(list(prefixed));
    assertEquals([listed.resource, listed.held], ["invoice:42", true]);
    assertEquals((await redlock.inspect("app:invoice:42")).held, true);
  });
});
