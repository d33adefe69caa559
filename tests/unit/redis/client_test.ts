import { assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import { getEventListeners } from "node:events";
import { connect, RedisClient } from "../../../src/redis/client.ts";
import { ConnectionError, ReplyError } from "../../../src/redis/errors.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { startFakeClock } from "../../../src/testing/mod.ts";
import { FakeNetwork, type FakeTransport } from "../../support/fake_transport.ts";
import { NAME, testOn } from "../../support/stream_bench.ts";

const reason = new Error("changed my mind");

/** A client on faked streams, and a signal for its calls. */
class Bench {
  readonly network = new FakeNetwork();
  readonly client: RedisClient = new RedisClient("redis://h", { connect: this.network.connect });
  readonly controller = new AbortController();
  readonly signal = this.controller.signal;
  /** How many listeners the signal has. */
  readonly listeners: () => number = () => getEventListeners(this.signal, "abort").length;

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

const bytes = (text: string) => new TextEncoder().encode(text);

for (
  const [words, shown] of [
    ...["SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE"].map(
      (name) => [[name, "secret"], name] as const,
    ),
    ...["MONITOR", "SYNC", "RESET"].map((name) => [[name], name] as const),
    [["PSYNC", "?", "-1"], "PSYNC"],
    [["replconf", "listening-port", 1], "REPLCONF"],
    [["subscribe", "news"], "SUBSCRIBE"],
    [[bytes("Monitor")], "MONITOR"],
    [["Select", 3], "SELECT"],
    [["CLIENT", "reply", "OFF"], "CLIENT REPLY"],
    [["client", bytes("REPLY"), "SKIP"], "CLIENT REPLY"],
    [["HELLO", 3], "HELLO 3"],
    [["hello", "3", "AUTH", "user", "secret"], "HELLO 3"],
  ] as const
) {
  test.open(`RedisClient.send() refuses ${words.join(" ")}, and sends nothing`, async ({ client, transport }) => {
    const error = await assertRejects(() => client.send(words), TypeError);
    const why = shown === "SELECT"
      ? "the next connection forgets it: name the database in the address"
      : "the replies behind it match no commands any more";
    assertEquals(error.message, `Cannot send ${shown} as ${why}`);
    await runMicrotasks();
    assertEquals(transport.writes, []);
  });
}

for (const signal of [{}, { addEventListener() {} }, "abort"]) {
  test.open(`RedisClient.send() refuses ${JSON.stringify(signal)} as a signal`, async ({ client }) => {
    const call = () => client.send(["PING"], { signal: signal as unknown as AbortSignal });
    const { message } = await assertRejects(call, TypeError);
    assertEquals(message.split(":")[0], "Cannot send command as 'signal' must be an AbortSignal");
  });
}

test.open("RedisClient.send() rejects a malformed command, or one whose signal was aborted, without sending anything", async ({ client, transport }) => {
  await assertRejects(() => client.send([]), TypeError);
  await assertRejects(() => client.send(["SET", "k", 1.5]), RangeError);
  const aborted = client.send(["PING"], { signal: AbortSignal.abort(reason) });
  assertStrictEquals(await assertRejects(() => aborted), reason);
  await runMicrotasks();
  assertEquals(transport.writes, []);
});

// Signals

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

Deno.test("RedisClient.address shows no credentials", async () => {
  await using named = new RedisClient("redis://user:hunter2@h/2");
  assertEquals(named.address, "redis://h:6379/2");
  assertEquals(Deno.inspect(named, { depth: 10 }).includes("hunter2"), false);
});

// connect()

Deno.test("connect() takes it for a reply if a server that cannot save its data refuses PING, and rejects if a replica without its primary does", async () => {
  const network = new FakeNetwork();
  const connecting = connect("redis://h", { connect: network.connect });
  await runMicrotasks();
  network.last.feed("-MISCONF no snapshots\r\n");
  await (await connecting).close();
  const refused = connect("redis://h", { connect: network.connect });
  await runMicrotasks();
  network.last.feed("-MASTERDOWN no link\r\n");
  await assertRejects(() => refused, ReplyError, "MASTERDOWN");
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
    using clock = startFakeClock();
    const network = new FakeNetwork();
    if (bytes === undefined) network.mode = "wait";
    const connecting = connect(address, { connect: network.connect, connectTimeoutMs: 500 });
    const rejected = assertRejects(() => connecting, ConnectionError);
    await runMicrotasks();
    for (let at = 0; at < 12; at++) {
      if (bytes?.[at]) network.last.feed(bytes[at]);
      await clock.tick(50);
    }
    network.pending[0]?.refuse(new Error("aborted")); // as sockets do
    const message = `Connection to ${NAME} could not be made: no answer within 500 ms`;
    assertEquals((await rejected).message, message);
    await clock.tick(5_000);
    assertEquals(network.targets.length, 1);
    assertEquals(network.transports.every(({ closed }) => closed), true);
  });
}
