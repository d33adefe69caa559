import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertLess,
  assertRejects,
  assertStrictEquals,
} from "@std/assert";
import { deadline } from "@std/async/deadline";
import { delay } from "@std/async/delay";
import {
  connect,
  ConnectionError,
  ProtocolError,
  RedisClient,
  ReplyError,
} from "../../src/redis/mod.ts";
import { eventually } from "../support/eventually.ts";
import { startFakeServer } from "../support/fake_server.ts";
import { startProxy } from "../support/proxy.ts";
import { shareServers } from "../support/shared_servers.ts";
import { startServer } from "../support/servers.ts";

const shared = shareServers(1);

/** Runs `fn` with a client of the file's server, which is empty. */
async function withClient(fn: (client: RedisClient) => Promise<void>): Promise<void> {
  await using servers = shared.lend();
  await using client = await connect(servers.urls[0]!);
  await fn(client);
}

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

Deno.test("send() reads nested arrays", async () => {
  await withClient(async (client) => {
    const script = "return {1, {2, {3, {}}}, 'x', {'', {ok='fine'}}, false}";
    assertEquals(await client.send(["EVAL", script, 0]), [
      1,
      [2, [3, []]],
      "x",
      ["", "fine"],
      null,
    ]);
  });
});

Deno.test("send() reads arrays nested 32 deep", async () => {
  await withClient(async (client) => {
    let reply = await client.send(["EVAL", nested(32), 0]);
    for (let depth = 0; depth < 32; depth++) {
      assert(Array.isArray(reply));
      reply = reply[0]!;
    }
    assertEquals(reply, "inside");
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

Deno.test("send() reads an error inside the nested array of a script as an element", async () => {
  await withClient(async (client) => {
    const script = "return {1, {redis.error_reply('OWN words of it'), 2}}";
    const [one, [error, two]] = await client.send(["EVAL", script, 0]) as [number, unknown[]];
    assertInstanceOf(error, ReplyError);
    assertEquals([one, error.prefix, error.message, two], [1, "OWN", "OWN words of it", 2]);
  });
});

Deno.test("send() reads $-1 as null", async () => {
  await withClient(async (client) => {
    assertStrictEquals(await client.send(["GET", "missing"]), null);
    assertEquals(await client.send(["MGET", "missing", "missing"]), [null, null]);
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

Deno.test("send() reads *0 as an empty array", async () => {
  await withClient(async (client) => {
    const replies = await Promise.all([
      client.send(["LRANGE", "missing", 0, -1]),
      client.send(["PING"]),
    ]);
    assertEquals(replies, [[], "PONG"]);
  });
});

Deno.test("send() reads integers at the limits of 64 bits exactly", async () => {
  await withClient(async (client) => {
    await client.send(["MSET", "most", "9223372036854775806", "least", "-9223372036854775807"]);
    assertStrictEquals(await client.send(["INCR", "most"]), 9223372036854775807n);
    assertStrictEquals(await client.send(["DECR", "least"]), -9223372036854775808n);
  });
});

Deno.test("send() reads integers as numbers up to the safe limits, beyond as bigints", async () => {
  await withClient(async (client) => {
    await client.send(["MSET", "up", "9007199254740990", "down", "-9007199254740990"]);
    assertStrictEquals(await client.send(["INCR", "up"]), 9007199254740991);
    assertStrictEquals(await client.send(["INCR", "up"]), 9007199254740992n);
    assertStrictEquals(await client.send(["DECR", "down"]), -9007199254740991);
    assertStrictEquals(await client.send(["DECR", "down"]), -9007199254740992n);
    assertStrictEquals(await client.send(["INCRBY", "zero", 0]), 0);
  });
});

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
  await using proxy = startProxy(servers[0]!, { delayMs: 100 });
  await using client = await connect(proxy.url);
  const startMs = performance.now();
  await Promise.all(Array.from({ length: 1_000 }, () => client.send(["PING"])));
  assertLess(performance.now() - startMs, 10_000); // one after the other they would take 200 000
  assertEquals(proxy.acceptedTotal, 1);
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
  await using proxy = startProxy(servers[0]!);
  await using client = await connect(proxy.url);
  const settled = await Promise.allSettled(
    Array.from({ length: 1_000 }, () => client.send(["NOSUCH"])),
  );
  assert(settled.every((result) => result.status === "rejected"));
  assertEquals(await client.send(["PING"]), "PONG");
  assertEquals(proxy.acceptedTotal, 1);
});

Deno.test("send() does not hand a late reply to the next command", async () => {
  await using servers = shared.lend();
  await using proxy = startProxy(servers[0]!);
  await using client = await connect(proxy.url);
  await client.send(["MSET", "first", "1", "second", "2"]);
  proxy.stallReplies();
  const controller = new AbortController();
  const givenUp = client.send(["GET", "first"], { signal: controller.signal });
  await eventually(() => proxy.held.replyBytes > 0);
  controller.abort(new Error("enough"));
  await assertRejects(() => givenUp, Error, "enough");
  const next = client.send(["GET", "second"]);
  proxy.resume();
  assertEquals(await next, "2");
  assertEquals(await client.send(["GET", "first"]), "1");
  assertEquals(proxy.acceptedTotal, 1);
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
  await using proxy = startProxy(servers[0]!);
  await using client = await connect(proxy.url);
  proxy.stallReplies();
  const failing = assertRejects(() => client.send(["INCR", "count"]), ConnectionError, "was lost");
  await eventually(() => proxy.held.replyBytes > 0);
  proxy.cut();
  await failing;
  proxy.resume();
  await eventually(async () => await client.send(["PING"]) === "PONG");
  assertEquals(await client.send(["GET", "count"]), "1");
});

Deno.test("a connection that is silent for stallTimeoutMs is made anew", async () => {
  await using servers = shared.lend();
  await using proxy = startProxy(servers[0]!);
  await using client = await connect(proxy.url, { stallTimeoutMs: 200 });
  proxy.stallReplies();
  const sent = deadline(client.send(["PING"]), 10_000);
  const error = await assertRejects(() => sent, ConnectionError);
  assertEquals(error.message, `Connection to ${proxy.url} was silent for 200 ms`);
  assertEquals(error.outcome, "unknown");
  proxy.resume();
  await eventually(async () => await client.send(["PING"]) === "PONG");
  assertEquals(proxy.acceptedTotal, 2);
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
  "a negative length": ["*-2\r\n", "Cannot read reply as a number has a byte that is no digit"],
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
    await using server = startFakeServer(answer);
    await using client = new RedisClient(server.url);
    const error = await assertRejects(() => client.send(["PING"]), ConnectionError);
    assertEquals(error.message, `Connection to ${server.url} was lost: ${message}`);
    assertInstanceOf(error.cause, ProtocolError);
    assertEquals(error.cause.message, message);
  });
}

Deno.test("a reply that nobody asked for closes the connection", async () => {
  await using server = startFakeServer("+PONG\r\n+surplus\r\n");
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
  await using proxy = startProxy(servers[0]!);
  await using client = await connect(proxy.url);
  proxy.stallReplies();
  const sent = client.send(["SET", "key", "value"]);
  await eventually(() => proxy.held.replyBytes > 0);
  const resumed = delay(30).then(() => proxy.resume());
  const [reply] = await Promise.all([sent, client.close(), resumed]);
  assertEquals(reply, "OK");
});

Deno.test("close() rejects what is not answered in a moment, and every later command", async () => {
  await using servers = shared.lend();
  await using proxy = startProxy(servers[0]!);
  await using client = await connect(proxy.url);
  proxy.stallReplies();
  const message = `Connection to ${proxy.url} was closed`;
  const pending = assertRejects(() => client.send(["PING"]), ConnectionError, message);
  await client.close();
  assertEquals((await pending).outcome, "unknown");
  const later = await assertRejects(() => client.send(["PING"]), ConnectionError, message);
  assertEquals(later.outcome, "not-sent");
});
