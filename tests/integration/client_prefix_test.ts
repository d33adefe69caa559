import { assert, assertEquals, assertRejects } from "@std/assert";
import { Redis } from "ioredis";
import { QuorumError, Redlock } from "../../mod.ts";
import { commandNode } from "../../src/nodes/mod.ts";
import { list } from "../../src/operate/mod.ts";
import { startServer } from "../support/servers.ts";

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
    const reading = [
      () => redlock.inspect("invoice:42"),
      () => Array.fromAsync(list(redlock)),
    ];
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
