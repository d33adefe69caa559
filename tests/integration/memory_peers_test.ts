/** Other people's clients on nodes in memory, and what they find by SCAN. */

import { assertEquals } from "@std/assert";
import { createClient } from "redis";
import { encodeCommand, joinCommands } from "../../src/redis/encoder.ts";
import { MemoryRedis, startNodes } from "../../src/testing/mod.ts";
import { startServer } from "../support/servers.ts";

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

Deno.test("MemoryRedis finds the keys by SCAN that redis-server finds, and refuses what it refuses", async () => {
  await using server = await startServer({ rights: ["+@all"] });
  const session = new MemoryRedis().session();
  const memory = (words: readonly string[]) =>
    new TextDecoder("latin1").decode(session.push(joinCommands([encodeCommand(words)])));
  const keys = ["a", "ab", "abc", "a*", "a\\", "b]", "b-", "[a]", "^", "é", ""];
  for (const words of [...keys.map((key) => ["SET", key, "v"]), ["ZADD", "az", "1", "m"]]) {
    memory(words);
    await server.command(...words);
  }
  const patterns = String.raw`* a* a? a\* [ab]* [^a]* [a-b] [b-a]* \[a] a\\ `.split(" "); // and ""
  const options = [[], ["TYPE", "string"], ["type", "ZSET"], ["TYPE", "list"]];
  for (const words of patterns.flatMap((it) => options.map((more) => ["MATCH", it, ...more]))) {
    const [, found] = await server.command("SCAN", "0", "COUNT", "100", ...words) as [
      string,
      string[],
    ];
    const reply = memory(["SCAN", "0", "COUNT", "100", ...words]);
    const same = [...reply.matchAll(/\$\d+\r\n([^]*?)\r\n(?=\$|$)/gu)].slice(1);
    const names = same.map(([, name]) =>
      new TextDecoder().decode(Uint8Array.from(name, (c) => c.charCodeAt(0)))
    );
    assertEquals(names.sort(), found.sort(), words.join(" "));
  }
  let cursor = "0";
  const seen: string[] = [];
  do {
    const reply = memory(["SCAN", cursor, "COUNT", "2"]);
    cursor = reply.split("\r\n")[2];
    seen.push(
      ...[...reply.matchAll(/\r\n\$\d+\r\n([^\r]*)(?=\r\n)/gu)].slice(1).map(([, name]) => name),
    );
  } while (cursor !== "0");
  assertEquals(new Set(seen).size, keys.length + 1);
  for (
    const words of [["SCAN"], ["SCAN", "x"], ["SCAN", "0", "COUNT", "0"], ["SCAN", "0", "FOO", "1"]]
  ) {
    const error = await server.command(...words).catch((error) => error);
    assertEquals(memory(words).trim(), `-${error.message}`);
  }
});
