import { assert, assertEquals, assertInstanceOf, assertLess, assertRejects } from "@std/assert";
import { connect, ConnectionError, ReplyError } from "../../src/redis/mod.ts";
import { eventually } from "../support/eventually.ts";
import { startProxy } from "../../src/testing/mod.ts";
import { shareServers, withClientOf } from "../support/shared_servers.ts";

/** The tests send commands of all kinds. */
const shared = shareServers(1, { rights: ["+@all"] });
const withClient = withClientOf(shared);

Deno.test("send() sends 5 000 commands of one tick once each and in order", async () => {
  await using servers = shared.lend();
  const server = servers[0]!;
  await using client = await connect(server.url);
  await server.resetCommandCounts();
  const commands = Array.from({ length: 5_000 }, () => client.send(["INCR", "count"]));
  const replies = await Promise.all(commands);
  assertEquals(replies, Array.from({ length: 5_000 }, (_, index) => index + 1));
  assertEquals((await server.commandCounts()).incr, 5_000);
});

Deno.test("send() does not wait for one reply before it sends the next command", async () => {
  await using servers = shared.lend();
  await using proxy = await startProxy(servers[0]!.url);
  proxy.delay(100);
  await using client = await connect(proxy.address);
  const startMs = performance.now();
  await Promise.all(Array.from({ length: 1_000 }, () => client.send(["PING"])));
  assertLess(performance.now() - startMs, 10_000); // one after the other they would take 200 000
  assertEquals(proxy.accepted, 1);
});

Deno.test("send() answers or refuses each of 40 000 commands of one tick, and sends no refused one", async () => {
  await using servers = shared.lend();
  const server = servers[0]!;
  await using client = await connect(server.url);
  await server.resetCommandCounts();
  const settled = await Promise.allSettled(
    Array.from({ length: 40_000 }, () => client.send(["INCR", "count"])),
  );
  const refused = settled.filter((result) => result.status === "rejected");
  assert(refused.length > 0 && refused.length < 40_000);
  for (const { reason } of refused) {
    assertInstanceOf(reason, ConnectionError);
    assertEquals(reason.outcome, "not-sent");
  }
  assertEquals((await server.commandCounts()).incr, 40_000 - refused.length);
  assertEquals(await client.send(["PING"]), "PONG");
});

Deno.test("send() rejects with an error reply, which spoils no command beside or after it", async () => {
  await withClient(async (client) => {
    const settled = await Promise.allSettled([
      client.send(["SET", "key", "1"]),
      client.send(["LPUSH", "key", "2"]),
      client.send(["NOSUCH"]),
      client.send(["GET", "key"]),
    ]);
    const outcomes = settled.map((result) =>
      result.status === "fulfilled" ? result.value : (result.reason as ReplyError).prefix
    );
    assertEquals(outcomes, ["OK", "WRONGTYPE", "ERR", "1"]);
    assertEquals(await client.send(["PING"]), "PONG");
  });
});

Deno.test("send() rejects with the server's text without the arguments that it repeats", async () => {
  await withClient(async (client) => {
    const error = await assertRejects(() => client.send(["NOSUCH", "secret"]), ReplyError);
    assertEquals(error.message, "ERR unknown command 'NOSUCH'");
    assert(!Deno.inspect(error).includes("secret"));
  });
});

Deno.test("send() keeps one connection over a thousand error replies", async () => {
  await using servers = shared.lend();
  await using proxy = await startProxy(servers[0]!.url);
  await using client = await connect(proxy.address);
  const settled = await Promise.allSettled(
    Array.from({ length: 1_000 }, () => client.send(["NOSUCH"])),
  );
  assert(settled.every((result) => result.status === "rejected"));
  assertEquals(await client.send(["PING"]), "PONG");
  assertEquals(proxy.accepted, 1);
});

Deno.test("send() does not hand a late reply to the next command", async () => {
  await using servers = shared.lend();
  await using proxy = await startProxy(servers[0]!.url);
  await using client = await connect(proxy.address);
  await client.send(["MSET", "first", "1", "second", "2"]);
  proxy.hang("replies");
  const controller = new AbortController();
  const givenUp = client.send(["GET", "first"], { signal: controller.signal });
  await eventually(() => proxy.buffered.replies > 0);
  controller.abort(new Error("enough"));
  await assertRejects(() => givenUp, Error, "enough");
  const next = client.send(["GET", "second"]);
  proxy.resume();
  assertEquals(await next, "2");
  assertEquals(await client.send(["GET", "first"]), "1");
  assertEquals(proxy.accepted, 1);
});

Deno.test("send() rejects with the signal's reason, and a command given up before its tick ends is not sent", async () => {
  await using servers = shared.lend();
  await using client = await connect(servers.urls[0]!);
  await servers[0]!.resetCommandCounts();
  const controller = new AbortController();
  const before = client.send(["INCR", "count"]);
  const givenUp = client.send(["INCRBY", "count", 100], { signal: controller.signal });
  const after = client.send(["INCR", "count"]);
  controller.abort("enough");
  assertEquals(await givenUp.catch((reason) => reason), "enough");
  assertEquals(await Promise.all([before, after]), [1, 2]);
  assertEquals((await servers[0]!.commandCounts()).incrby, undefined);
});

Deno.test("send() rejects at once where the signal has aborted before", async () => {
  await withClient(async (client) => {
    const signal = AbortSignal.abort("before");
    const reason = await client.send(["SET", "key", "1"], { signal }).catch((reason) => reason);
    assertEquals(reason, "before");
    assertEquals(await client.send(["GET", "key"]), null);
  });
});
