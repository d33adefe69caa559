import { assert, assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import { connect, ConnectionError } from "../../src/redis/mod.ts";
import { startProxy } from "../../src/testing/mod.ts";
import { eventually } from "../support/eventually.ts";
import { shareServers, withClientOf } from "../support/shared_servers.ts";

/** The tests send commands of all kinds. */
const shared = shareServers(1, { rights: ["+@all"] });
const { test } = shared;
const withClient = withClientOf(shared);

const PAYLOADS: Record<string, string> = {
  "what looks like an integer reply": ":5\r\n",
  "what looks like an error reply": "-foo\r\n",
  "what looks like a status reply": "+OK\r\n",
  "what looks like an array": "*2\r\n$1\r\na\r\n$1\r\nb\r\n",
  "what looks like a null": "$-1\r\n",
  "what looks like a bulk string": "$5\r\nhello\r\n",
  "what looks like a command": "*1\r\n$8\r\nFLUSHALL\r\n",
  "CR": "\r",
  "LF": "\n",
  "CR LF": "\r\n",
  "NUL": "a\0b",
  "the empty string": "",
  "two-byte characters": "äöü",
  "four-byte characters": "🔒🔑",
  "a byte order mark": "\ufeffa",
};

for (const [what, payload] of Object.entries(PAYLOADS)) {
  Deno.test(`send() carries ${what} as a value, a key and an element`, async () => {
    await withClient(async (client) => {
      const replies = await Promise.all([
        client.send(["SET", payload, payload]),
        client.send(["GET", payload]),
        client.send(["RPUSH", "list", "before", payload, "after"]),
        client.send(["LRANGE", "list", 0, -1]),
        client.send(["STRLEN", payload]),
        client.send(["PING"]),
      ]);
      const bytes = new TextEncoder().encode(payload).length;
      const list = ["before", payload, "after"];
      assertEquals(replies, ["OK", payload, 3, list, bytes, "PONG"]);
    });
  });
}

Deno.test("sendRaw() carries all byte values there and back", async () => {
  await withClient(async (client) => {
    const bytes = Uint8Array.from({ length: 256 }, (_, byte) => byte);
    await client.sendRaw(["SET", bytes, bytes]);
    assertEquals(await client.sendRaw(["GET", bytes]), bytes);
    assertEquals(await client.sendRaw(["KEYS", "*"]), [bytes]);
  });
});

test("send() sends 5 000 commands of one tick once each and in order", async (servers) => {
  const server = servers[0]!;
  await using client = await connect(server.url);
  await server.resetCommandCounts();
  const commands = Array.from({ length: 5_000 }, () => client.send(["INCR", "count"]));
  const replies = await Promise.all(commands);
  assertEquals(replies, Array.from({ length: 5_000 }, (_, index) => index + 1));
  assertEquals((await server.commandCounts()).incr, 5_000);
});

test("send() answers or refuses each of 40 000 commands of one tick, and sends no refused one", async (servers) => {
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

test("send() does not hand a late reply to the next command", async (servers) => {
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
