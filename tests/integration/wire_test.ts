import { assert, assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import { connect, ConnectionError, ProtocolError, ReplyError } from "../../src/redis/mod.ts";
import { eventually } from "../support/eventually.ts";
import { shareServers, withClientOf } from "../support/shared_servers.ts";

/** The tests send commands of all kinds. */
const shared = shareServers(1, { rights: ["+@all"] });
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

Deno.test("send() puts U+FFFD in the place of a lone surrogate, and counts its bytes", async () => {
  await withClient(async (client) => {
    await client.send(["SET", "key", "a\ud800b"]);
    assertEquals(await client.send(["GET", "key"]), "a\ufffdb");
    assertEquals(await client.send(["STRLEN", "key"]), 5);
  });
});

Deno.test("send() writes numbers and bigints as digits", async () => {
  await withClient(async (client) => {
    assertEquals(await client.send(["ECHO", Number.MIN_SAFE_INTEGER]), "-9007199254740991");
    assertEquals(await client.send(["ECHO", 2n ** 64n]), "18446744073709551616");
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

Deno.test("sendRaw() keeps bytes apart that send() reads as the same text", async () => {
  await withClient(async (client) => {
    await client.send(["SET", "key", new Uint8Array([0xff, 0xfe])]);
    assertEquals(await client.send(["GET", "key"]), "\ufffd\ufffd");
    assertEquals(await client.sendRaw(["GET", "key"]), new Uint8Array([0xff, 0xfe]));
  });
});

Deno.test("send() mixes binary and textual commands in one tick without disorder", async () => {
  await withClient(async (client) => {
    const echoes = Array.from({ length: 300 }, (_, index) => `${index}`);
    const replies = await Promise.all(
      echoes.map((text, index) =>
        client.send(["ECHO", index % 3 === 0 ? new TextEncoder().encode(text) : text])
      ),
    );
    assertEquals(replies, echoes);
  });
});

Deno.test("send() carries 5 MB of text there and back", async () => {
  await withClient(async (client) => {
    const text = "é\r\n".repeat(1_250_000);
    assertEquals(await client.send(["SET", "key", text]), "OK");
    assertEquals(await client.send(["STRLEN", "key"]), 5_000_000);
    const [read, pong] = await Promise.all([client.send(["GET", "key"]), client.send(["PING"])]);
    assert(read === text);
    assertEquals(pong, "PONG");
  });
});

Deno.test("sendRaw() carries 5 MB of bytes there and back", async () => {
  await withClient(async (client) => {
    const bytes = new Uint8Array(5_000_000).map((_, index) => index * 7);
    await client.sendRaw(["SET", "key", bytes]);
    const read = await client.sendRaw(["GET", "key"]) as Uint8Array;
    assertEquals(read.length, bytes.length);
    assert(read.every((byte, index) => byte === bytes[index]));
  });
});

Deno.test("send() rejects deeper nesting, and the next connection works", async () => {
  await withClient(async (client) => {
    const error = await assertRejects(
      () => client.send(["EVAL", nested(33), 0]),
      ConnectionError,
      "was lost",
    );
    assertEquals(error.outcome, "unknown");
    assertInstanceOf(error.cause, ProtocolError);
    assertEquals(error.cause.message, "Cannot read reply as arrays are nested deeper than 32");
    await eventually(async () => await client.send(["PING"]) === "PONG");
  });
});

function nested(depth: number): string {
  return `local reply = 'inside' for _ = 1, ${depth} do reply = {reply} end return reply`;
}

Deno.test("send() reads an error inside the array of EXEC as an element", async () => {
  await withClient(async (client) => {
    const replies = await Promise.all([
      client.send(["MULTI"]),
      client.send(["SET", "text", "1"]),
      client.send(["LPUSH", "text", "2"]),
      client.send(["GET", "text"]),
      client.send(["EXEC"]),
      client.send(["PING"]),
    ]);
    const [ok, error, one] = replies[4] as unknown[];
    assertInstanceOf(error, ReplyError);
    assertEquals(error.prefix, "WRONGTYPE");
    assertEquals([ok, one, replies[5]], ["OK", "1", "PONG"]);
  });
});

Deno.test("send() reads *-1, the reply of an EXEC that WATCH aborted, as null", async () => {
  await using servers = shared.lend();
  await using client = await connect(servers.urls[0]!);
  await client.send(["WATCH", "key"]);
  await servers[0]!.command("SET", "key", "changed");
  const replies = await Promise.all([
    client.send(["MULTI"]),
    client.send(["SET", "key", "mine"]),
    client.send(["EXEC"]),
    client.send(["GET", "key"]),
  ]);
  assertEquals(replies, ["OK", "QUEUED", null, "changed"]);
});
