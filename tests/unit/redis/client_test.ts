import { assertEquals, assertInstanceOf, assertRejects, assertStrictEquals } from "@std/assert";
import { connect, RedisClient } from "../../../src/redis/client.ts";
import { QUEUE_LENGTH_MAX } from "../../../src/redis/connection.ts";
import { ConnectionError, ReplyError } from "../../../src/redis/errors.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { countListeners } from "../../support/count_listeners.ts";
import { FakedSystemTime } from "../../support/faked_system_time.ts";
import { assertGrowth } from "../../support/growth.ts";
import { FakeNetwork, type FakeTransport, PING, wire } from "../../support/fake_transport.ts";
import { NAME, testOn } from "../../support/stream_bench.ts";

const reason = new Error("changed my mind");

/** A client on faked streams, and a signal for its calls. */
class Bench {
  readonly network = new FakeNetwork();
  readonly client: RedisClient = new RedisClient("redis://h", { connect: this.network.connect });
  readonly controller = new AbortController();
  readonly signal = this.controller.signal;
  /** How many listeners the signal has. */
  readonly listeners: () => number = countListeners(this.signal);

  get transport(): FakeTransport {
    return this.network.last;
  }

  /** Opens the connection. */
  async open(): Promise<this> {
    const sent = this.client.send(["PING"]);
    await runMicrotasks();
    this.transport.feed("+PONG\r\n");
    await sent;
    this.transport.writes.length = 0;
    return this;
  }

  /** Aborts a call, which rejects with the reason and leaves no listener. */
  async abort(call: Promise<unknown>): Promise<void> {
    this.controller.abort(reason);
    assertStrictEquals(await assertRejects(() => call), reason);
    assertEquals(this.listeners(), 0);
  }

  /** Sends a command that is answered. */
  async ping(replies = "+PONG\r\n"): Promise<void> {
    const sent = this.client.send(["PING"], { signal: this.signal });
    this.transport.feed(replies);
    assertEquals(await sent, "PONG");
  }

  close(): Promise<void> {
    return this.client.close();
  }
}

const test = Object.assign(testOn(() => new Bench()), { open: testOn(() => new Bench().open()) });

for (
  const [method, reply, expected] of [
    ["send", "*3\r\n$3\r\nné\r\n$-1\r\n$4\r\n\ufeffx\r\n", ["né", null, "\ufeffx"]],
    ["sendRaw", "$3\r\né\0\r\n", new Uint8Array([0xc3, 0xa9, 0])],
  ] as const
) {
  test.open(`RedisClient.${method}() reads bulk strings as ${method === "send" ? "text" : "bytes"}`, async ({ client, transport }) => {
    const sent = client[method](["GET", "k"]);
    transport.feed(reply);
    assertEquals<unknown>(await sent, expected);
  });
}

test.open("RedisClient.send() sends all commands of a tick in one write, and rejects with the error of its own", async ({ client, transport }) => {
  const sent = [client.send(["PING"]), client.send(["LPUSH", "é"]), client.send(["EXEC"])];
  await runMicrotasks();
  assertEquals(transport.writes, [PING + wire("LPUSH", "é") + wire("EXEC")]);
  transport.feed("+PONG\r\n-WRONGTYPE no list\r\n*2\r\n:1\r\n-ERR no\r\n");
  assertEquals(await sent[0], "PONG");
  const error = await assertRejects(() => sent[1], ReplyError);
  assertEquals([error.message, error.prefix], ["WRONGTYPE no list", "WRONGTYPE"]);
  const [one, element] = await sent[2] as unknown[];
  assertEquals(one, 1);
  assertInstanceOf(element, ReplyError);
});

test.open("RedisClient.send() rejects a malformed command without sending anything", async ({ client, transport }) => {
  await assertRejects(() => client.send([]), TypeError);
  await assertRejects(() => client.send(["SET", "k", 1.5]), RangeError);
  await runMicrotasks();
  assertEquals(transport.writes, []);
});

// Signals

test("RedisClient.send() rejects with the reason of a signal that was aborted before, and does not connect", async ({ client, network }) => {
  const sending = client.send(["PING"], { signal: AbortSignal.abort(reason) });
  assertStrictEquals(await assertRejects(() => sending), reason);
  assertEquals(network.targets, []);
});

test("RedisClient.send() aborted while connecting is never written", async (bench) => {
  bench.network.mode = "wait";
  const sending = bench.client.send(["SET", "k", "v"], { signal: bench.signal });
  const other = bench.client.send(["PING"]);
  await bench.abort(sending);
  bench.network.pending[0].accept();
  await runMicrotasks();
  assertEquals(bench.transport.written, PING);
  bench.transport.feed("+PONG\r\n");
  assertEquals(await other, "PONG");
});

test.open("RedisClient.send() aborted behind a write under way is never written", async (bench) => {
  bench.transport.writeBytesMax = 4;
  const first = bench.client.send(["PING"]);
  await Promise.resolve();
  await bench.abort(bench.client.send(["SET", "k", "v"], { signal: bench.signal }));
  await runMicrotasks();
  assertEquals(bench.transport.written, PING);
  bench.transport.feed("+PONG\r\n");
  assertEquals(await first, "PONG");
});

test.open("RedisClient.send() ignores an abort after its reply", async (bench) => {
  await bench.ping();
  assertEquals(bench.listeners(), 0);
  bench.controller.abort(reason);
  const next = bench.client.send(["PING"]);
  bench.transport.feed("+PONG\r\n");
  assertEquals(await next, "PONG");
});

test.open("RedisClient.send() leaves no listener on a long-lived signal, and no reply to another call", async (bench) => {
  for (let times = 0; times < 20; times++) {
    const { signal } = bench;
    const controller = new AbortController();
    const aborted = bench.client.send(["GET", "k"], { signal: controller.signal });
    const failing = bench.client.send(["GET", "k"], { signal });
    await runMicrotasks();
    controller.abort(reason);
    assertStrictEquals(await assertRejects(() => aborted), reason);
    await Promise.all([
      bench.ping("$4\r\nlate\r\n-ERR no\r\n+PONG\r\n"),
      assertRejects(() => failing, ReplyError),
    ]);
  }
  assertEquals(bench.listeners(), 0);
});

Deno.test("RedisClient.send() aborted by one signal of many calls takes time in proportion to their number", async () => {
  const closings: Promise<unknown>[] = [];
  /** Returns how long it takes to abort so many calls that wait for a connection, in milliseconds. */
  const abortMs = (count: number) => {
    const bench = new Bench();
    bench.network.mode = "wait";
    const { client, signal } = bench;
    const calls = Array.from({ length: count }, () => client.send(["PING"], { signal }));
    assertEquals(bench.listeners(), 1);
    const startMs = performance.now();
    bench.controller.abort(reason);
    const tookMs = performance.now() - startMs;
    closings.push(Promise.allSettled(calls), client.close());
    return tookMs;
  };
  assertGrowth(80, () => abortMs(1_000), () => abortMs(16_000));
  await Promise.all(closings);
});

// Limits and closing

test("RedisClient.send() refuses one command more than may wait", async ({ client, network }) => {
  network.mode = "wait";
  const waiting = Array.from({ length: QUEUE_LENGTH_MAX }, () => client.send(["PING"]));
  const settled = Promise.allSettled(waiting);
  const { message, outcome } = await assertRejects(() => client.send(["PING"]), ConnectionError);
  const reason = `has ${QUEUE_LENGTH_MAX} commands waiting for replies already`;
  assertEquals([message, outcome], [`Connection to ${NAME} ${reason}`, "not-sent"]);
  await client.close();
  await settled;
});

test("RedisClient.close() rejects what waits, and every later command", async ({ client, network }) => {
  network.mode = "wait";
  const rejected = assertRejects(() => client.send(["PING"]), ConnectionError);
  await client.close();
  await client.close();
  const errors = [
    await rejected,
    await assertRejects(() => client.send(["PING"]), ConnectionError),
  ];
  for (const { message, outcome } of errors) {
    assertEquals([message, outcome], [`Connection to ${NAME} was closed`, "not-sent"]);
  }
});

Deno.test("RedisClient.address shows no credentials", async () => {
  await using named = new RedisClient("redis://user:hunter2@h/2");
  assertEquals(named.address, "redis://h:6379/2");
  assertEquals(Deno.inspect(named, { depth: 10 }).includes("hunter2"), false);
});

// connect()

Deno.test("connect() resolves once the server replies", async () => {
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
    ["a server that sends one byte now and then", "redis://h", "$1000\r\nxxxxxxxx"],
    ["a server that accepts the login as slowly", "redis://:pw@h", "+OOOOOOOOOOOOOOOO"],
  ] as const
) {
  Deno.test(`connect() to ${what} rejects after connectTimeoutMs, and tries no further`, async () => {
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
    const message = `Connection to ${NAME} could not be made: no answer within 500 ms`;
    assertEquals((await rejected).message, message);
    await time.advance(5_000);
    assertEquals(network.targets.length, 1);
    assertEquals(network.transports.every(({ closed }) => closed), true);
  });
}

for (
  const [what, reply, message] of [
    ["cannot be reached", undefined, "could not be made: connection refused"],
    ["refuses the login", "WRONGPASS invalid", "was refused: WRONGPASS invalid"],
  ]
) {
  Deno.test(`connect() to a server that ${what} rejects with the cause, and tries no further`, async () => {
    const network = new FakeNetwork();
    if (reply === undefined) network.mode = "refuse";
    const connecting = connect("redis://:hunter2@h", { connect: network.connect });
    const rejected = assertRejects(() => connecting, ConnectionError);
    await runMicrotasks();
    if (reply !== undefined) network.last.feed(`-${reply}\r\n`);
    const error = await rejected;
    assertEquals(error.message, `Connection to ${NAME} ${message}`);
    if (reply === undefined) assertStrictEquals(error.cause, network.refusal);
    else assertInstanceOf(error.cause, ReplyError);
    assertEquals([network.targets.length, network.transports.some(({ closed }) => !closed)], [
      1,
      false,
    ]);
  });
}
