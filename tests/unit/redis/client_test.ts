import {
  assertEquals,
  assertInstanceOf,
  assertRejects,
  assertStrictEquals,
  assertThrows,
} from "@std/assert";
import { type ClientOptions, connect, RedisClient } from "../../../src/redis/client.ts";
import { QUEUE_LENGTH_MAX } from "../../../src/redis/connection.ts";
import { ConnectionError, ReplyError } from "../../../src/redis/errors.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { countListeners } from "../../support/fake_nodes.ts";
import { FakedSystemTime } from "../../support/faked_system_time.ts";
import { assertGrowth } from "../../support/growth.ts";
import { FakeNetwork, type FakeTransport, PING, wire } from "../../support/fake_transport.ts";

function client(network: FakeNetwork, address = "redis://h"): RedisClient {
  return new RedisClient(address, { connect: network.connect });
}

/** A client whose connection is open and has nothing to do. */
async function openClient(): Promise<{ client: RedisClient; transport: FakeTransport }> {
  const network = new FakeNetwork();
  const opened = client(network);
  const sent = opened.send(["PING"]);
  await runMicrotasks();
  const transport = network.last;
  transport.feed("+PONG\r\n");
  await sent;
  transport.writes.length = 0;
  return { client: opened, transport };
}

Deno.test("RedisClient.send() reads bulk strings as text", async () => {
  const { client, transport } = await openClient();
  await using _client = client;
  const sent = client.send(["GET", "k"]);
  transport.feed("*2\r\n$3\r\nné\r\n$-1\r\n");
  assertEquals(await sent, ["né", null]);
});

Deno.test("RedisClient.sendRaw() leaves bulk strings as bytes", async () => {
  const { client, transport } = await openClient();
  await using _client = client;
  const sent = client.sendRaw(["GET", "k"]);
  transport.feed(new Uint8Array([36, 50, 13, 10, 255, 0, 13, 10]));
  assertEquals(await sent, new Uint8Array([255, 0]));
});

Deno.test("RedisClient.send() pipelines what is not awaited in between in one write", async () => {
  const { client, transport } = await openClient();
  await using _client = client;
  const sent = Promise.all([client.send(["PING"]), client.send(["ECHO", "é"])]);
  await runMicrotasks();
  assertEquals(transport.writes, [PING + wire("ECHO", "é")]);
  transport.feed("+PONG\r\n$2\r\né\r\n");
  assertEquals(await sent, ["PONG", "é"]);
});

Deno.test("RedisClient.send() rejects with the server's error, and the next reply fits again", async () => {
  const { client, transport } = await openClient();
  await using _client = client;
  const failing = client.send(["LPUSH", "k"]);
  const good = client.send(["PING"]);
  transport.feed("-WRONGTYPE no list\r\n+PONG\r\n");
  const error = await assertRejects(() => failing, ReplyError);
  assertEquals([error.message, error.prefix], ["WRONGTYPE no list", "WRONGTYPE"]);
  assertEquals(await good, "PONG");
});

Deno.test("RedisClient.send() gives an error inside an array as an element of it", async () => {
  const { client, transport } = await openClient();
  await using _client = client;
  const sent = client.send(["EXEC"]);
  transport.feed("*2\r\n:1\r\n-ERR no\r\n");
  const [one, error] = await sent as unknown[];
  assertEquals(one, 1);
  assertInstanceOf(error, ReplyError);
});

Deno.test("RedisClient.send() rejects a malformed command without sending anything", async () => {
  const { client, transport } = await openClient();
  await using _client = client;
  await assertRejects(() => client.send([]), TypeError);
  await assertRejects(() => client.send(["SET", "k", 1.5]), RangeError);
  await runMicrotasks();
  assertEquals(transport.writes, []);
});

const reason = new Error("changed my mind");

Deno.test("RedisClient.send() rejects with the reason of a signal that was aborted before, and does not connect", async () => {
  const network = new FakeNetwork();
  await using aborted = client(network);
  const sending = aborted.send(["PING"], { signal: AbortSignal.abort(reason) });
  assertStrictEquals(await assertRejects(() => sending), reason);
  assertEquals(network.targets, []);
});

Deno.test("RedisClient.send() aborted while connecting is never written", async () => {
  const network = new FakeNetwork();
  network.mode = "wait";
  await using connecting = client(network);
  const controller = new AbortController();
  const listeners = countListeners(controller.signal);
  const sending = connecting.send(["SET", "k", "v"], { signal: controller.signal });
  const other = connecting.send(["PING"]);
  controller.abort(reason);
  assertStrictEquals(await assertRejects(() => sending), reason);
  const transport = network.pending[0].accept();
  await runMicrotasks();
  assertEquals(transport.written, PING);
  transport.feed("+PONG\r\n");
  assertEquals(await other, "PONG");
  assertEquals(listeners(), 0);
});

Deno.test("RedisClient.send() aborted in the tick that queued it is never written", async () => {
  const { client, transport } = await openClient();
  await using _client = client;
  const controller = new AbortController();
  const sending = client.send(["SET", "k", "v"], { signal: controller.signal });
  controller.abort(reason);
  assertStrictEquals(await assertRejects(() => sending), reason);
  await runMicrotasks();
  assertEquals(transport.writes, []);
});

Deno.test("RedisClient.send() aborted behind a write under way is never written", async () => {
  const { client, transport } = await openClient();
  await using _client = client;
  transport.writeBytesMax = 4;
  const first = client.send(["PING"]);
  const controller = new AbortController();
  await Promise.resolve();
  const sending = client.send(["SET", "k", "v"], { signal: controller.signal });
  controller.abort(reason);
  assertStrictEquals(await assertRejects(() => sending), reason);
  await runMicrotasks();
  assertEquals(transport.written, PING);
  transport.feed("+PONG\r\n");
  assertEquals(await first, "PONG");
});

Deno.test("RedisClient.send() aborted after it was written leaves its late reply to nobody", async () => {
  const { client, transport } = await openClient();
  await using _client = client;
  const controller = new AbortController();
  const listeners = countListeners(controller.signal);
  const sending = client.send(["GET", "k"], { signal: controller.signal });
  await runMicrotasks();
  controller.abort(reason);
  assertStrictEquals(await assertRejects(() => sending), reason);
  const next = client.send(["PING"]);
  transport.feed("$4\r\nlate\r\n+PONG\r\n");
  assertEquals(await next, "PONG");
  assertEquals(listeners(), 0);
});

Deno.test("RedisClient.send() ignores an abort after its reply", async () => {
  const { client, transport } = await openClient();
  await using _client = client;
  const controller = new AbortController();
  const listeners = countListeners(controller.signal);
  const sending = client.send(["PING"], { signal: controller.signal });
  transport.feed("+PONG\r\n");
  assertEquals(await sending, "PONG");
  assertEquals(listeners(), 0);
  controller.abort(reason);
  const next = client.send(["PING"]);
  transport.feed("+PONG\r\n");
  assertEquals(await next, "PONG");
});

Deno.test("RedisClient.send() leaves no listener on a long-lived signal", async () => {
  const { client, transport } = await openClient();
  await using _client = client;
  const { signal } = new AbortController();
  const listeners = countListeners(signal);
  for (let times = 0; times < 20; times++) {
    const sending = client.send(["PING"], { signal });
    transport.feed(times % 2 ? "-ERR no\r\n" : "+PONG\r\n");
    await sending.catch(() => {});
  }
  assertEquals(listeners(), 0);
});

Deno.test("RedisClient.send() refuses one command more than may wait", async () => {
  const network = new FakeNetwork();
  network.mode = "wait";
  const crowded = client(network);
  const waiting = Array.from({ length: QUEUE_LENGTH_MAX }, () => crowded.send(["PING"]));
  const settled = Promise.allSettled(waiting);
  const error = await assertRejects(() => crowded.send(["PING"]), ConnectionError);
  assertEquals(
    error.message,
    `Connection to redis://h:6379 has ${QUEUE_LENGTH_MAX} commands waiting for replies already`,
  );
  assertEquals(error.outcome, "not-sent");
  await crowded.close();
  await settled;
});

Deno.test("RedisClient.close() rejects what waits, and every later command", async () => {
  const network = new FakeNetwork();
  network.mode = "wait";
  const closed = client(network);
  const waiting = closed.send(["PING"]);
  const rejected = assertRejects(() => waiting, ConnectionError);
  await closed.close();
  await closed.close();
  assertEquals((await rejected).message, "Connection to redis://h:6379 was closed");
  const error = await assertRejects(() => closed.send(["PING"]), ConnectionError);
  assertEquals(error.message, "Connection to redis://h:6379 was closed");
  assertEquals(error.outcome, "not-sent");
});

Deno.test("RedisClient.close() leaves no timer, before any command too", async () => {
  await new RedisClient("redis://h", { connect: new FakeNetwork().connect }).close();
  const { client } = await openClient();
  await client.close();
});

Deno.test("RedisClient.address shows no credentials", async () => {
  await using named = client(new FakeNetwork(), "redis://user:hunter2@h/2");
  assertEquals(named.address, "redis://h:6379/2");
  assertEquals(Deno.inspect(named, { depth: 10 }).includes("hunter2"), false);
});

Deno.test("connect() resolves once the server answers", async () => {
  const network = new FakeNetwork();
  const connecting = connect("redis://h", { connect: network.connect });
  await runMicrotasks();
  assertEquals(network.last.written, PING);
  network.last.feed("+PONG\r\n");
  await (await connecting).close();
  assertEquals(network.last.closed, true);
});

for (
  const [what, address, bytes] of [
    ["a port that takes no connection", "redis://h", undefined],
    ["a server that says nothing", "redis://h", ""],
    ["a server that sends one byte now and then", "redis://h", "$1000\r\n" + "x".repeat(1_000)],
    [
      "a server that is as slow to let it in",
      "redis://:pw@h",
      "+OOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOO",
    ],
  ] as const
) {
  Deno.test(`connect() to ${what} rejects after connectTimeoutMs`, async () => {
    using time = new FakedSystemTime();
    const network = new FakeNetwork();
    if (bytes === undefined) network.mode = "wait";
    const connecting = connect(address, { connect: network.connect, connectTimeoutMs: 500 });
    const rejected = assertRejects(() => connecting, ConnectionError);
    await runMicrotasks();
    for (let at = 0; at < 12; at++) {
      if (bytes?.[at]) network.last.feed(bytes[at]);
      await time.advance(50);
    }
    network.pending[0]?.refuse(new Error("aborted")); // as sockets do
    const { message } = await rejected;
    assertEquals(
      message,
      "Connection to redis://h:6379 could not be made: no answer within 500 ms",
    );
    await time.advance(5_000);
    assertEquals(network.targets.length, 1);
    assertEquals(network.transports.every(({ closed }) => closed), true);
  });
}

Deno.test("RedisClient.send() aborted by one signal of many calls takes time in proportion to their number", async () => {
  /** How long it takes to abort so many calls that wait for a connection, in milliseconds. */
  const abortMs = (count: number) => {
    const network = new FakeNetwork();
    network.mode = "wait";
    const waiting = client(network);
    const controller = new AbortController();
    const listeners = countListeners(controller.signal);
    const { signal } = controller;
    const calls = Array.from({ length: count }, () => waiting.send(["PING"], { signal }));
    assertEquals(listeners(), 1);
    closings.push(waiting, Promise.allSettled(calls));
    const startMs = performance.now();
    controller.abort(reason);
    return performance.now() - startMs;
  };
  const closings: (RedisClient | Promise<unknown>)[] = [];
  assertGrowth(80, () => abortMs(1_000), () => abortMs(16_000));
  for (const each of closings) await (each instanceof RedisClient ? each.close() : each);
});

Deno.test("connect() rejects with the cause where the server cannot be reached, and tries no further", async () => {
  const network = new FakeNetwork();
  network.mode = "refuse";
  const connecting = connect("redis://:hunter2@h", { connect: network.connect });
  const error = await assertRejects(() => connecting, ConnectionError);
  assertEquals(error.message, "Connection to redis://h:6379 could not be made: connection refused");
  assertStrictEquals(error.cause, network.refusal);
  assertEquals(network.targets.length, 1);
});

Deno.test("connect() rejects with the server's error where it does not let us in", async () => {
  const network = new FakeNetwork();
  const connecting = connect("redis://:hunter2@h", { connect: network.connect });
  const rejected = assertRejects(() => connecting, ConnectionError);
  await runMicrotasks();
  network.last.feed("-WRONGPASS invalid username-password pair\r\n");
  const error = await rejected;
  assertEquals(
    error.message,
    "Connection to redis://h:6379 was refused: WRONGPASS invalid username-password pair",
  );
  assertInstanceOf(error.cause, ReplyError);
  assertEquals(network.last.closed, true);
});

const BAD: readonly (readonly [options: object, Class: typeof TypeError, message: string])[] = [
  [
    { connectTimeoutMs: 0 },
    RangeError,
    "'connectTimeoutMs' must be a finite number greater than 0: current value is 0",
  ],
  [
    { connectTimeoutMs: NaN },
    RangeError,
    "'connectTimeoutMs' must be a finite number greater than 0: current value is NaN",
  ],
  [
    { connectTimeoutMs: "1" },
    TypeError,
    "'connectTimeoutMs' must be a number: current type is 'string'",
  ],
  [
    { stallTimeoutMs: -1 },
    RangeError,
    "'stallTimeoutMs' must be a finite number greater than 0: current value is -1",
  ],
  [{ tls: null }, TypeError, "'tls' must be an object"],
  [{ tls: "x" }, TypeError, "'tls' must be an object"],
  [{ connect: {} }, TypeError, "'connect' must be a function"],
  [{ clientName: "a b" }, TypeError, "'clientName' must be printable ASCII without spaces"],
  [{ clientName: "" }, TypeError, "'clientName' must be printable ASCII without spaces"],
  [{ clientName: "a\n" }, TypeError, "'clientName' must be printable ASCII without spaces"],
  [{ clientName: "é" }, TypeError, "'clientName' must be printable ASCII without spaces"],
];

for (const [options, Class, message] of BAD) {
  Deno.test(`RedisClient refuses ${Deno.inspect(options)}`, () => {
    assertEquals(
      assertThrows(() => new RedisClient("redis://h", options as ClientOptions), Class).message,
      `Cannot connect to Redis as ${message}`,
    );
  });
}

Deno.test("RedisClient takes undefined options as left out", async () => {
  const network = new FakeNetwork();
  await using made = new RedisClient("redis://h", {
    connectTimeoutMs: undefined,
    stallTimeoutMs: undefined,
    tls: undefined,
    clientName: undefined,
    connect: network.connect,
  });
  assertEquals(made.address, "redis://h:6379");
});

Deno.test("RedisClient refuses a malformed address", () => {
  assertEquals(
    assertThrows(() => new RedisClient("http://h"), TypeError).message,
    "Cannot use Redis address http://h as its scheme must be 'redis', 'rediss', 'valkey', 'valkeys' or 'redis+unix': current value is 'http'",
  );
});

for (
  const [options, reason] of [
    [null, "'options' must be an object: current value is null"],
    [5, "'options' must be an object: current type is 'number'"],
    [
      { timeoutMs: 5 },
      "option 'timeoutMs' is unknown: valid options are connectTimeoutMs, stallTimeoutMs, replyTimeoutMs, replyBytesMax, replyElementsMax, tls, clientName, connect",
    ],
  ] as const
) {
  Deno.test(`RedisClient refuses the options ${Deno.inspect(options)}`, () => {
    assertEquals(
      assertThrows(() => new RedisClient("redis://h", options as ClientOptions), TypeError).message,
      `Cannot connect to Redis as ${reason}`,
    );
  });
}
