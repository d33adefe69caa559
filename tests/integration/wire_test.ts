import { assert, assertEquals, assertInstanceOf } from "@std/assert";
import { connect, ConnectionError } from "../../src/redis/mod.ts";
import { shareServers, withClientOf } from "../support/shared_servers.ts";

/** The tests send commands of all kinds. */
const shared = shareServers(1, { rights: ["+@all"] });
const { test } = shared;
const withClient = withClientOf(shared);

/** What looks like something else on the wire, and characters of all lengths. */
const PAYLOADS = [
  ...[":5\r\n", "-foo\r\n", "+OK\r\n", "*2\r\n$1\r\na\r\n$1\r\nb\r\n", "$-1\r\n"],
  ...["$5\r\nhello\r\n", "*1\r\n$8\r\nFLUSHALL\r\n", "\r", "\n", "\r\n", "a\0b", ""],
  ...["äöü", "🔒🔑", "\ufeffa"],
];

Deno.test("send() carries any text as a value, a key and an element", async () => {
  await withClient(async (client) => {
    for (const payload of PAYLOADS) {
      const replies = await Promise.all([
        client.send(["SET", payload, payload]),
        client.send(["GET", payload]),
        client.send(["RPUSH", "list", "before", payload, "after"]),
        client.send(["LRANGE", "list", 0, -1]),
        client.send(["STRLEN", payload]),
        client.send(["DEL", "list"]),
      ]);
      const bytes = new TextEncoder().encode(payload).length;
      const list = ["before", payload, "after"];
      assertEquals(replies, ["OK", payload, 3, list, bytes, 1]);
    }
  });
});

Deno.test("sendRaw() carries all byte values there and back", async () => {
  await withClient(async (client) => {
    const bytes = Uint8Array.from({ length: 256 }, (_, byte) => byte);
    await client.sendRaw(["SET", bytes, bytes]);
    assertEquals(await client.sendRaw(["GET", bytes]), bytes);
    assertEquals(await client.sendRaw(["KEYS", "*"]), [bytes]);
  });
});

test("send() answers in order or refuses each of 40 000 commands of one tick, and sends no refused one", async (servers) => {
  const server = servers[0]!;
  await using client = await connect(server.url);
  await server.resetCommandCounts();
  const settled = await Promise.allSettled(
    Array.from({ length: 40_000 }, () => client.send(["INCR", "count"])),
  );
  const refused = settled.filter((result) => result.status === "rejected");
  const replies = settled.flatMap((it) => it.status === "fulfilled" ? [it.value] : []);
  assertEquals(replies, Array.from(replies, (_, index) => index + 1));
  assert(refused.length > 0 && refused.length < 40_000);
  for (const { reason } of refused) {
    assertInstanceOf(reason, ConnectionError);
    assertEquals(reason.outcome, "not-sent");
  }
  assertEquals((await server.commandCounts()).incr, 40_000 - refused.length);
  assertEquals(await client.send(["PING"]), "PONG");
});
