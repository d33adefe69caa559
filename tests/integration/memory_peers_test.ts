/**
 * Other people's clients on nodes in memory: node-redlock 4 and 5 against ours, and ioredis by
 * itself.
 */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { createRedlock, LockHeldError, type Redlock } from "../../mod.ts";
import { connect } from "../../src/redis/mod.ts";
import { startNodes, type TestNodes } from "../../src/testing/mod.ts";
import { eventually } from "../support/eventually.ts";
import { openPeer, type Peer, type PeerName } from "../support/peers.ts";

/** A TTL that no test outlives. */
const LONG_MS = 60_000;

/** What stands under `key` on each node. */
function valuesOf(nodes: TestNodes, key: string): Promise<unknown[]> {
  return Promise.all(nodes.addresses.map(async (address) => {
    await using client = await connect(address);
    return await client.send(["GET", key]);
  }));
}

/** For how long `key` lives on each node, in milliseconds. */
function livesOf(nodes: TestNodes, key: string): Promise<number[]> {
  return Promise.all(nodes.addresses.map(async (address) => {
    await using client = await connect(address);
    return Number(await client.send(["PTTL", key]));
  }));
}

function test(
  name: PeerName,
  what: string,
  run: (peer: Peer, redlock: Redlock, nodes: TestNodes) => Promise<void>,
): void {
  Deno.test(`on nodes in memory ${name}: ${what}`, async () => {
    await using nodes = await startNodes(3);
    await using peer = await openPeer(name, nodes.addresses);
    await using redlock = createRedlock(nodes.addresses);
    await run(peer, redlock, nodes);
  });
}

for (const name of ["redlock4", "redlock5"] as const) {
  test(name, "its lock excludes ours until it is released", async (peer, redlock, nodes) => {
    const theirs = (await peer.tryAcquire(["job"], LONG_MS))!;
    assertEquals(new Set(await valuesOf(nodes, "job")).size, 1);
    assertEquals(await redlock.tryAcquire("job"), undefined);
    await assertRejects(() => redlock.acquire("job", { waitMs: 0 }), LockHeldError);
    await theirs.release();
    const ours = await redlock.acquire("job", { waitMs: 0 });
    assert(await ours.release());
  });

  test(name, "our lock excludes its until it is released", async (peer, redlock, nodes) => {
    const ours = await redlock.acquire("job", { ttlMs: LONG_MS });
    assertEquals(await peer.tryAcquire(["job"], LONG_MS), undefined);
    assert(ours.held);
    assert(await ours.release());
    // A release settles at a quorum: the last node may still be at it.
    await eventually(async () => assertEquals(await valuesOf(nodes, "job"), [null, null, null]));
    const theirs = (await peer.tryAcquire(["job"], LONG_MS))!;
    await theirs.release();
    assertEquals(await valuesOf(nodes, "job"), [null, null, null]);
  });

  test(name, "it extends its lock, which goes on excluding ours", async (peer, redlock, nodes) => {
    const theirs = (await peer.tryAcquire(["job"], 10_000))!;
    const extended = await theirs.extend(LONG_MS);
    for (const lifeMs of await livesOf(nodes, "job")) assert(lifeMs > LONG_MS - 5_000);
    assertEquals(await redlock.tryAcquire("job"), undefined);
    await extended.release();
    assert(await (await redlock.acquire("job", { waitMs: 0 })).release());
  });

  test(
    name,
    "it can't extend a lock that ran out and is ours now",
    async (peer, redlock, nodes) => {
      const theirs = (await peer.tryAcquire(["job"], LONG_MS))!;
      for (const node of nodes) node.flush();
      const ours = await redlock.acquire("job", { ttlMs: LONG_MS });
      await assertRejects(() => theirs.extend(LONG_MS));
      await eventually(async () =>
        assertEquals(await valuesOf(nodes, "job"), new Array(3).fill(ours.value))
      );
      assert(await ours.release());
    },
  );

  test(name, "several resources are locked all or none, either way", async (peer, redlock) => {
    const ours = await redlock.acquire("b");
    assertEquals(await peer.tryAcquire(["a", "b"], LONG_MS), undefined);
    await ours.release();
    await eventually(async () => (await redlock.inspect("b")).votes.length === 3);
    const theirs = (await peer.tryAcquire(["a", "c"], LONG_MS))!;
    assertEquals(await redlock.tryAcquire(["c", "d"]), undefined);
    const free = await redlock.acquire("d", { waitMs: 0 });
    await free.release();
    await theirs.release();
  });
}

Deno.test("ioredis works with a node in memory: login, database, name, pipeline, sorted sets, channels", async () => {
  await using nodes = await startNodes(1, { password: "s/cret" });
  const options = { db: 2, connectionName: "tests", lazyConnect: true };
  const client = new Redis(nodes.addresses[0], options);
  const subscriber = client.duplicate();
  try {
    await Promise.all([client.connect(), subscriber.connect()]);
    assertEquals(await client.set("a", "1", "PX", LONG_MS, "NX"), "OK");
    assertEquals(await client.set("a", "2", "PX", LONG_MS, "NX"), null);
    assertEquals(await client.client("GETNAME"), "tests");
    const replies = await client.pipeline().incr("a").zadd("l", 2, "y").zadd("l", 1, "x").zrange(
      "l",
      "0",
      "0",
    )
      .exec();
    assertEquals(replies, [[null, 2], [null, 1], [null, 1], [null, ["x"]]]);
    await assertRejects(
      () => client.get("l"),
      Error,
      "WRONGTYPE Operation against a key holding the wrong kind of value",
    );
    const message = new Promise((resolve) =>
      subscriber.once("message", (channel, text) => resolve([channel, text]))
    );
    assertEquals(await subscriber.subscribe("news"), 1);
    assertEquals(await client.publish("news", "hello"), 1);
    assertEquals(await message, ["news", "hello"]);
    assertEquals(await subscriber.unsubscribe("news"), 0);
    assertEquals(await client.publish("news", "hello"), 0);
    assertEquals(await client.quit(), "OK");
  } finally {
    for (const it of [client, subscriber]) {
      const ended = new Promise<void>((resolve) => it.once("end", () => resolve()));
      if (it.status === "end") continue;
      it.disconnect();
      await ended;
    }
  }
});

for (const RESP of [2, 3] as const) {
  Deno.test(`node-redis works with a node in memory by RESP${RESP}: login, script, scores, channels`, async () => {
    await using nodes = await startNodes(1, { password: "s/cret" });
    const client = createClient({ url: nodes.addresses[0], RESP, name: "tests" });
    const subscriber = client.duplicate();
    await Promise.all([client.connect(), subscriber.connect()]);
    try {
      assertEquals(await client.clientGetName(), "tests");
      const source =
        "return { redis.call('SET', KEYS[1], ARGV[1]), redis.call('GET', KEYS[1]), 3 }";
      const reply = await client.eval(source, { keys: ["a"], arguments: ["1"] });
      assertEquals(reply as unknown, ["OK", "1", 3]);
      assertEquals(await client.get("missing"), null);
      await client.zAdd("l", [{ score: 1.5, value: "x" }]);
      assertEquals(await client.zScore("l", "x"), 1.5);
      assertEquals(await client.zRangeWithScores("l", 0, -1), [{ value: "x", score: 1.5 }]);
      const message = Promise.withResolvers<string>();
      await subscriber.subscribe("news", (text) => message.resolve(text));
      assertEquals(await client.publish("news", "hello"), 1);
      assertEquals(await message.promise, "hello");
    } finally {
      await Promise.all([client.close(), subscriber.close()]);
    }
  });
}
