/** Other people's clients on nodes in memory. */
import { assertEquals, assertRejects } from "@std/assert";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { startNodes } from "../../src/testing/mod.ts";

/** A TTL that no test outlives. */
const LONG_MS = 60_000;

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
