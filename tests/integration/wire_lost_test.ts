import { assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { delay } from "@std/async/delay";
import { connect, ConnectionError, ProtocolError, RedisClient } from "../../src/redis/mod.ts";
import { eventually } from "../support/eventually.ts";
import { answering, startFakeServer } from "../support/fake_server.ts";
import { startProxy } from "../../src/testing/mod.ts";
import { startServer } from "../support/servers.ts";
import { shareServers } from "../support/shared_servers.ts";

const shared = shareServers(1);

Deno.test("send() rejects in flight as unknown, then as not sent, when the server dies; and works when it is back", async () => {
  await using server = await startServer();
  await using client = await connect(server.url);
  await server.pause();
  const inFlight = client.send(["INCR", "count"]);
  const failing = assertRejects(() => inFlight, ConnectionError, "was lost");
  await delay(0); // the command is written at the end of its tick
  await server.kill();
  const unknown = await failing;
  const notSent = await assertRejects(() => client.send(["INCR", "count"]), ConnectionError);
  assertEquals([unknown.outcome, notSent.outcome], ["unknown", "not-sent"]);
  await server.start();
  await eventually(async () => await client.send(["PING"]) === "PONG");
  assertEquals(await client.send(["GET", "count"]), null);
});

Deno.test("a command whose reply was lost is not sent again after the reconnect", async () => {
  await using servers = shared.lend();
  await using proxy = await startProxy(servers[0]!.url);
  await using client = await connect(proxy.address);
  proxy.hang("replies");
  const failing = assertRejects(() => client.send(["INCR", "count"]), ConnectionError, "was lost");
  await eventually(() => proxy.buffered.replies > 0);
  proxy.cut();
  await failing;
  proxy.resume();
  await eventually(async () => await client.send(["PING"]) === "PONG");
  assertEquals(await client.send(["GET", "count"]), "1");
});

Deno.test("a connection that is silent for stallTimeoutMs is replaced", async () => {
  await using servers = shared.lend();
  await using proxy = await startProxy(servers[0]!.url);
  await using client = await connect(proxy.address, { stallTimeoutMs: 200 });
  proxy.hang("replies");
  const sent = deadline(client.send(["PING"]), 10_000);
  const error = await assertRejects(() => sent, ConnectionError);
  assertEquals(error.message, `Connection to ${proxy.address} was silent for 200 ms`);
  assertEquals(error.outcome, "unknown");
  proxy.resume();
  await eventually(async () => await client.send(["PING"]) === "PONG");
  assertEquals(proxy.accepted, 2);
});

const GARBAGE: Record<string, [answer: string, message: string]> = {
  "no RESP2": [
    "HTTP/1.1 400 Bad Request\r\n\r\n",
    "Cannot read reply as a reply begins with byte 72",
  ],
  "a RESP3 map": ["%1\r\n+a\r\n+b\r\n", "Cannot read reply as a reply begins with byte 37"],
  "an absurd length": [
    "$99999999999\r\n",
    "Cannot read reply as a length is more than 536870912",
  ],
  "a negative length": ["*-2\r\n", "Cannot read reply as a number has a byte that is not a digit"],
  "a bulk string that is longer than it says": [
    "$2\r\nabc\r\n",
    "Cannot read reply as a bulk string does not end in CR LF",
  ],
  "an integer beyond 64 bits": [
    ":9223372036854775808\r\n",
    "Cannot read reply as an integer has more than 64 bits",
  ],
};

for (const [what, [answer, message]] of Object.entries(GARBAGE)) {
  Deno.test(`an answer that is ${what} closes the connection with a ProtocolError`, async () => {
    await using server = startFakeServer(answering(answer));
    await using client = new RedisClient(server.url);
    const error = await assertRejects(() => client.send(["PING"]), ConnectionError);
    assertEquals(error.message, `Connection to ${server.url} was lost: ${message}`);
    assertInstanceOf(error.cause, ProtocolError);
    assertEquals(error.cause.message, message);
  });
}

Deno.test("a reply that nobody asked for closes the connection", async () => {
  await using server = startFakeServer(answering("+PONG\r\n+surplus\r\n"));
  await using client = new RedisClient(server.url);
  assertEquals(await client.send(["PING"]), "PONG");
  const error = await assertRejects(() => client.send(["PING"]), ConnectionError);
  assertEquals(
    error.message,
    `Connection to ${server.url} sent a reply that nobody asked for`,
  );
});

Deno.test("close() lets a command in flight finish", async () => {
  await using servers = shared.lend();
  await using proxy = await startProxy(servers[0]!.url);
  await using client = await connect(proxy.address);
  proxy.hang("replies");
  const sent = client.send(["SET", "key", "value"]);
  await eventually(() => proxy.buffered.replies > 0);
  const resumed = delay(30).then(() => proxy.resume());
  const [reply] = await Promise.all([sent, client.close(), resumed]);
  assertEquals(reply, "OK");
});

Deno.test("close() rejects what is not answered in a moment, and every later command", async () => {
  await using servers = shared.lend();
  await using proxy = await startProxy(servers[0]!.url);
  await using client = await connect(proxy.address);
  proxy.hang("replies");
  const message = `Connection to ${proxy.address} was closed`;
  const pending = assertRejects(() => client.send(["PING"]), ConnectionError, message);
  await client.close();
  assertEquals((await pending).outcome, "unknown");
  const later = await assertRejects(() => client.send(["PING"]), ConnectionError, message);
  assertEquals(later.outcome, "not-sent");
});
