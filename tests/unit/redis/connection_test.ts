import {
  assert,
  assertEquals,
  assertGreaterOrEqual,
  assertInstanceOf,
  assertLessOrEqual,
  assertStrictEquals,
} from "@std/assert";
import { parseAddress } from "../../../src/redis/address.ts";
import type { ReplyReceiver } from "../../../src/redis/command_queue.ts";
import {
  Connection,
  type ConnectionOptions,
  QUEUE_LENGTH_MAX,
} from "../../../src/redis/connection.ts";
import { encodeCommand } from "../../../src/redis/encoder.ts";
import { type ConnectionError, ProtocolError, ReplyError } from "../../../src/redis/errors.ts";
import type { RawReply } from "../../../src/redis/reply.ts";
import { TimerWheel } from "../../../src/timer_wheel.ts";
import { advanceUntil, FakeClock, runMicrotasks } from "../../support/fake_clock.ts";
import { FakeNetwork, FakeTransport, wire } from "../../support/fake_transport.ts";

const PING = wire("PING");

/** A connection on faked time and streams, and what its commands were told. */
class Bench implements ReplyReceiver {
  readonly clock = new FakeClock();
  readonly network = new FakeNetwork();
  readonly events: unknown[] = [];
  readonly replies: unknown[][] = [];
  readonly errors: ConnectionError[] = [];
  readonly wheel: TimerWheel;
  readonly connection: Connection;
  fraction = 0.5;

  constructor(options: Partial<ConnectionOptions> = {}, address = "redis://h") {
    const random = { value: () => "value", fraction: () => this.fraction };
    this.wheel = new TimerWheel(this.clock, random);
    this.connection = new Connection(parseAddress(address), {
      connect: this.network.connect,
      connectTimeoutMs: 1_000,
      stallTimeoutMs: 2_000,
      tls: {},
      clientName: undefined,
      onConnected: () => this.events.push("connected"),
      onDisconnected: (error) => this.events.push(error.message),
      ...options,
    }, this.wheel);
  }

  submit(context: unknown, ...words: string[]): void {
    const command = words.length > 0 ? words : ["PING"];
    this.connection.submit(encodeCommand(command), this, context, 0);
  }

  /** Makes the first connection without a command. */
  async open(): Promise<FakeTransport> {
    this.submit("first");
    await runMicrotasks();
    const transport = this.network.last;
    transport.feed("+PONG\r\n");
    await runMicrotasks();
    this.replies.length = 0;
    this.events.length = 0;
    transport.writes.length = 0;
    return transport;
  }

  onReply(reply: RawReply, context: unknown): void {
    this.replies.push([context, reply]);
  }

  onFailure(error: ConnectionError, context: unknown): void {
    this.replies.push([context, error.message, error.outcome]);
    this.errors.push(error);
  }
}

Deno.test("Connection connects for the first command and not before", async () => {
  const bench = new Bench();
  await runMicrotasks();
  assertEquals(bench.network.targets, []);
  bench.submit(1);
  await runMicrotasks();
  assertEquals(bench.network.targets, [{ kind: "tcp", hostname: "h", port: 6379 }]);
  assertEquals(bench.network.last.writes, [PING]);
  await advanceUntil(bench.clock, bench.connection.close());
});

for (
  const [address, target] of [
    ["redis://[::1]:7", { kind: "tcp", hostname: "::1", port: 7 }],
    ["rediss://h", { kind: "tls", hostname: "h", port: 6379, tls: { serverName: "s" } }],
    ["redis+unix:///run/r.sock", { kind: "unix", path: "/run/r.sock" }],
  ] as const
) {
  Deno.test(`Connection asks for the target of ${address}`, async () => {
    const bench = new Bench({ tls: { serverName: "s" } }, address);
    bench.submit(1);
    await runMicrotasks();
    assertEquals(bench.network.targets, [target]);
    await advanceUntil(bench.clock, bench.connection.close());
  });
}

Deno.test("Connection writes what one tick queued in one piece", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.submit(1, "SET", "k", "é");
  bench.submit(2);
  queueMicrotask(() => bench.submit(3));
  await runMicrotasks();
  assertEquals(transport.writes.join(""), wire("SET", "k", "é") + PING + PING);
  assertLessOrEqual(transport.writes.length, 2);
  bench.submit(4);
  bench.submit(5);
  transport.writes.length = 0;
  await runMicrotasks();
  assertEquals(transport.writes, [PING + PING]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection goes on with what a short write left over", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  transport.writeBytesMax = 3;
  bench.submit(1, "GET", "key");
  bench.submit(2);
  await runMicrotasks();
  assertEquals(transport.written, wire("GET", "key") + PING);
  assert(transport.writes.every((text) => text.length <= 3));
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection keeps commands in order that are queued while a write is under way", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  transport.writeBytesMax = 5;
  for (let index = 0; index < 20; index++) {
    bench.submit(index, "GET", `${index}`);
    await Promise.resolve();
  }
  await runMicrotasks();
  const expected = Array.from({ length: 20 }, (_, index) => wire("GET", `${index}`)).join("");
  assertEquals(transport.written, expected);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection hands replies out first in, first out, errors among them", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.submit(1);
  bench.submit(2);
  bench.submit(3);
  transport.feed(":1\r\n-ERR no\r\n:");
  await runMicrotasks();
  transport.feed("3\r\n");
  await runMicrotasks();
  const [first, second, third] = bench.replies;
  assertEquals(first, [1, 1]);
  assertInstanceOf(second[1], ReplyError);
  assertEquals(third, [3, 3]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection has commands wait while the first connection is being made", async () => {
  const bench = new Bench();
  bench.network.mode = "wait";
  bench.submit(1);
  bench.submit(2);
  await bench.clock.advance(900);
  assertEquals(bench.replies, []);
  assertEquals(bench.connection.readyAtMs, Infinity);
  const transport = bench.network.pending[0].accept();
  await runMicrotasks();
  assertEquals(transport.writes, [PING + PING]);
  assertEquals(bench.connection.readyAtMs, bench.clock.monotonicMs());
  assertEquals(bench.events, ["connected"]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection gives up connecting after connectTimeoutMs", async () => {
  const bench = new Bench({ connectTimeoutMs: 300 });
  bench.network.mode = "wait";
  bench.submit(1);
  await bench.clock.advance(299);
  assertEquals(bench.replies, []);
  await bench.clock.advance(2);
  const message = "Connection to redis://h:6379 could not be made: no answer within 300 ms";
  assertEquals(bench.replies, [[1, message, "not-sent"]]);
  assertEquals((bench.errors[0].cause as Error).message, "no answer within 300 ms");
  assertEquals(bench.network.signals[0].aborted, true);
  assertEquals(bench.events, [message]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection counts logging in towards connectTimeoutMs", async () => {
  const bench = new Bench({ connectTimeoutMs: 300 }, "redis://:pw@h");
  bench.submit(1);
  await bench.clock.advance(301);
  assertEquals(bench.replies, [[
    1,
    "Connection to redis://h:6379 could not be made: no answer within 300 ms",
    "not-sent",
  ]]);
  assertEquals(bench.network.last.closed, true);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection closes a stream that opens after connecting was given up", async () => {
  const bench = new Bench({ connectTimeoutMs: 300 });
  bench.network.mode = "wait";
  bench.submit(1);
  await bench.clock.advance(301);
  const transport = bench.network.pending[0].accept();
  await runMicrotasks();
  assertEquals(transport.closed, true);
  assertEquals(transport.writes, []);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection fails the waiting commands when the first connection cannot be made", async () => {
  const bench = new Bench();
  bench.network.mode = "refuse";
  bench.submit(1);
  bench.submit(2);
  await runMicrotasks();
  const message = "Connection to redis://h:6379 could not be made: connection refused";
  assertEquals(bench.replies, [[1, message, "not-sent"], [2, message, "not-sent"]]);
  assertStrictEquals(bench.errors[0].cause, bench.network.refusal);
  assertEquals(bench.errors[0].address, "redis://h:6379");
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection fails a command at once while it is down", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.network.mode = "wait";
  transport.end();
  await bench.clock.advance(100);
  bench.submit(1);
  assertEquals(bench.replies, [[
    1,
    "Connection to redis://h:6379 was lost: the server closed the connection",
    "not-sent",
  ]]);
  assertEquals(bench.network.pending.length, 1); // it is connecting again, and nobody waits for it
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection says of a written command that it may have run, of another that it did not", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  transport.writesHang = true;
  bench.submit(1);
  await runMicrotasks();
  bench.submit(2);
  transport.fail(new Error("reset"));
  await runMicrotasks();
  const message = "Connection to redis://h:6379 was lost: reset";
  assertEquals(bench.replies, [[1, message, "unknown"], [2, message, "not-sent"]]);
  assertEquals((bench.errors[0].cause as Error).message, "reset");
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection is lost when a write fails", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  transport.writeError = new Error("broken pipe");
  bench.submit(1);
  await runMicrotasks();
  assertEquals(bench.replies, [[
    1,
    "Connection to redis://h:6379 was lost: broken pipe",
    "unknown",
  ]]);
  assertEquals((bench.errors[0].cause as Error).message, "broken pipe");
  assertEquals(transport.closed, true);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection is lost when the stream ends inside a reply", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.submit(1);
  await runMicrotasks();
  transport.feed("$5\r\nhel");
  transport.end();
  await runMicrotasks();
  assertEquals(bench.replies, [[
    1,
    "Connection to redis://h:6379 was lost: the server closed the connection",
    "unknown",
  ]]);
  assertEquals((bench.errors[0].cause as Error).message, "the server closed the connection");
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection sends nothing again after it was made anew", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.submit(1, "SET", "k", "v");
  await runMicrotasks();
  transport.end();
  await bench.clock.advance(200);
  assertEquals(bench.network.transports.length, 2);
  assertEquals(bench.network.last.writes, []);
  bench.submit(2);
  await runMicrotasks();
  assertEquals(bench.network.last.writes, [PING]);
  bench.network.last.feed("+PONG\r\n");
  await runMicrotasks();
  assertEquals(bench.replies, [
    [1, "Connection to redis://h:6379 was lost: the server closed the connection", "unknown"],
    [2, "PONG"],
  ]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection ignores what a stream brings that was given up", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.submit(1);
  await runMicrotasks();
  transport.feed("?\r\n+OLD\r\n");
  await bench.clock.advance(200);
  bench.submit(2);
  transport.feed("+OLDER\r\n");
  await runMicrotasks();
  assertEquals(bench.replies.length, 1);
  bench.network.last.feed("+NEW\r\n");
  await runMicrotasks();
  assertEquals(bench.replies[1], [2, "NEW"]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection closes on bytes that are no RESP2, with a ProtocolError as the cause", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.submit(1);
  bench.submit(2);
  await runMicrotasks();
  transport.feed("+OK\r\nHTTP/1.1 400 Bad Request\r\n");
  await runMicrotasks();
  assertEquals(bench.replies, [
    [1, "OK"],
    [
      2,
      "Connection to redis://h:6379 was lost: Cannot read reply as a reply begins with byte 72",
      "unknown",
    ],
  ]);
  assertInstanceOf(bench.errors[0].cause, ProtocolError);
  assertEquals(transport.closed, true);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection closes on a reply that nobody asked for", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  transport.feed("+OK\r\n");
  await runMicrotasks();
  assertEquals(transport.closed, true);
  assertEquals(bench.events, [
    "Connection to redis://h:6379 sent a reply that nobody asked for",
  ]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection gives a command that was not written no reply", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  transport.writesHang = true;
  bench.submit(1);
  await runMicrotasks();
  bench.submit(2);
  transport.feed("+ONE\r\n+TWO\r\n");
  await runMicrotasks();
  assertEquals(bench.replies, [
    [1, "ONE"],
    [2, "Connection to redis://h:6379 sent a reply that nobody asked for", "not-sent"],
  ]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection logs in before the first command", async () => {
  const bench = new Bench({ clientName: "hasp" }, "redis://user:p%40w@h/3");
  bench.submit(1);
  await runMicrotasks();
  const transport = bench.network.last;
  const greeting = wire("AUTH", "user", "p@w") + wire("SELECT", "3") +
    wire("CLIENT", "SETNAME", "hasp");
  assertEquals(transport.written, greeting);
  transport.feed("+OK\r\n+OK\r\n");
  await runMicrotasks();
  assertEquals(transport.written, greeting);
  assertEquals(bench.events, []);
  transport.feed("+OK\r\n");
  await runMicrotasks();
  assertEquals(transport.written, greeting + PING);
  assertEquals(bench.events, ["connected"]);
  transport.feed("+PONG\r\n");
  await runMicrotasks();
  assertEquals(bench.replies, [[1, "PONG"]]);
  await advanceUntil(bench.clock, bench.connection.close());
});

for (
  const [address, greeting] of [
    ["redis://h", ""],
    ["redis://:pw@h", wire("AUTH", "pw")],
    ["redis://user@h", wire("AUTH", "user", "")],
    ["redis://h/1", wire("SELECT", "1")],
  ]
) {
  Deno.test(`Connection logs in again after ${address} was lost`, async () => {
    const bench = new Bench({}, address);
    for (let times = 0; times < 2; times++) {
      bench.submit(times);
      await bench.clock.advance(100);
      const transport = bench.network.last;
      if (times === 0 || greeting !== "") {
        assertEquals(transport.writes[0], greeting === "" ? PING : greeting);
      }
      if (greeting !== "") transport.feed("+OK\r\n");
      await runMicrotasks();
      transport.end();
      await bench.clock.advance(100);
    }
    await advanceUntil(bench.clock, bench.connection.close());
  });
}

for (
  const [step, replies] of [
    ["AUTH", "-WRONGPASS invalid username-password pair or user is disabled.\r\n"],
    ["SELECT", "+OK\r\n-ERR DB index is out of range\r\n"],
    ["CLIENT SETNAME", "+OK\r\n+OK\r\n-ERR unknown subcommand\r\n"],
  ]
) {
  Deno.test(`Connection sends no command when ${step} fails, and says why`, async () => {
    const bench = new Bench({ clientName: "hasp" }, "redis://user:hunter2@h/3");
    bench.submit(1, "SET", "k", "secret");
    await runMicrotasks();
    const transport = bench.network.last;
    transport.feed(replies);
    await runMicrotasks();
    const { cause } = bench.errors[0];
    assertInstanceOf(cause, ReplyError);
    assertEquals(`-${cause.message}\r\n`, replies.slice(replies.indexOf("-")));
    const message = `Connection to redis://h:6379/3 was refused: ${cause.message}`;
    assertEquals(bench.replies, [[1, message, "not-sent"]]);
    assertEquals(transport.written.includes("secret"), false);
    assertEquals(transport.closed, true);
    await advanceUntil(bench.clock, bench.connection.close());
  });
}

Deno.test("Connection shows no password and no arguments in any error", async () => {
  const bench = new Bench({}, "redis://user:hunter2@h");
  bench.submit(1, "SET", "k", "secret");
  await runMicrotasks();
  bench.network.last.feed(
    "-ERR unknown command 'AUTH', with args beginning with: 'user' 'hunter2' \r\n",
  );
  await bench.clock.advance(100);
  bench.network.last.feed("+OK\r\n");
  await runMicrotasks();
  bench.submit(2, "SET", "k", "secret");
  await runMicrotasks();
  bench.network.last.feed("secret\r\n");
  await runMicrotasks();
  bench.submit(3, "SET", "k", "secret");
  await advanceUntil(bench.clock, bench.connection.close());
  bench.submit(4, "SET", "k", "secret");
  assertEquals(bench.errors.length, 4);
  for (const error of bench.errors) {
    const shown = Deno.inspect(error, { depth: 10 }).split("\n")
      .filter((line) => !/^\s*at /u.test(line)).join("\n");
    assertEquals(/hunter2|secret/u.test(shown), false, shown);
  }
});

Deno.test("Connection is made anew after a jittered delay that doubles up to a cap", async () => {
  for (const fraction of [0, 0.5, 0.999_999]) {
    const bench = new Bench();
    bench.fraction = fraction;
    const transport = await bench.open();
    bench.network.mode = "refuse";
    transport.end();
    await runMicrotasks();
    let fromMs = bench.clock.monotonicMs();
    for (const limitMs of [50, 100, 200, 400, 800, 1_600, 2_000, 2_000, 2_000]) {
      const count = bench.network.targets.length;
      while (bench.network.targets.length === count) await bench.clock.advance(1);
      const delayMs = bench.clock.monotonicMs() - fromMs;
      const expectedMs = limitMs * (1 + fraction) / 2;
      assertGreaterOrEqual(delayMs, expectedMs - 1);
      assertLessOrEqual(delayMs, expectedMs + 2);
      fromMs = bench.clock.monotonicMs();
    }
    await advanceUntil(bench.clock, bench.connection.close());
  }
});

/** How often `bench` connected within `ms`. */
async function connectsWithin(bench: Bench, ms: number): Promise<number> {
  const before = bench.network.targets.length;
  await bench.clock.advance(ms);
  return bench.network.targets.length - before;
}

Deno.test("Connection backs off further while logging in is refused again and again", async () => {
  const bench = new Bench({}, "redis://:wrong@h");
  bench.network.make = () => {
    const transport = new FakeTransport();
    transport.feed("-WRONGPASS invalid username-password pair\r\n");
    return transport;
  };
  bench.submit(1);
  await bench.clock.advance(5_000);
  assertLessOrEqual(await connectsWithin(bench, 10_000), 10);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection backs off further from a server that hangs up at once", async () => {
  const bench = new Bench();
  bench.network.make = () => {
    const transport = new FakeTransport();
    transport.end();
    return transport;
  };
  bench.submit(1);
  await bench.clock.advance(5_000);
  assertLessOrEqual(await connectsWithin(bench, 10_000), 10);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection backs off anew after a connection that carried replies", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.network.mode = "refuse";
  transport.end();
  await bench.clock.advance(10_000);
  bench.network.mode = "accept";
  await bench.clock.advance(2_100);
  bench.submit(1);
  bench.network.last.feed("+PONG\r\n");
  await runMicrotasks();
  assertEquals(bench.replies, [[1, "PONG"]]);
  bench.network.last.end();
  assertEquals(await connectsWithin(bench, 60), 1);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection is closed and made anew after silence while a reply is due", async () => {
  const bench = new Bench({ stallTimeoutMs: 1_000 });
  const transport = await bench.open();
  await bench.clock.advance(1_000); // until no watch is left of the first command
  bench.submit(1);
  await bench.clock.advance(990);
  assertEquals(bench.replies, []);
  await bench.clock.advance(520);
  assertEquals(bench.replies, [
    [1, "Connection to redis://h:6379 was silent for 1000 ms", "unknown"],
  ]);
  assertEquals(transport.closed, true);
  await bench.clock.advance(100);
  assertEquals(bench.network.transports.length, 2);
  await advanceUntil(bench.clock, bench.connection.close());
});

for (const lastMs of [10, 250, 490, 510, 740, 990]) {
  Deno.test(`Connection waits stallTimeoutMs for a command sent ${lastMs} ms after the one before`, async () => {
    const bench = new Bench({ stallTimeoutMs: 1_000 });
    const transport = await bench.open();
    await bench.clock.advance(lastMs);
    bench.submit(1);
    await bench.clock.advance(980);
    assertEquals(bench.replies, []);
    transport.feed("+PONG\r\n");
    await runMicrotasks();
    assertEquals(bench.replies, [[1, "PONG"]]);
    await advanceUntil(bench.clock, bench.connection.close());
  });
}

Deno.test("Connection notices silence no later than half a time-out late", async () => {
  for (const lastMs of [10, 250, 490, 510, 740, 990]) {
    const bench = new Bench({ stallTimeoutMs: 1_000 });
    await bench.open();
    await bench.clock.advance(lastMs);
    bench.submit(1);
    await bench.clock.advance(1_510);
    assertEquals(bench.replies.length, 1);
    await advanceUntil(bench.clock, bench.connection.close());
  }
});

Deno.test("Connection lets a slow server take its time as long as bytes come", async () => {
  const bench = new Bench({ stallTimeoutMs: 1_000 });
  const transport = await bench.open();
  bench.submit(1);
  await runMicrotasks();
  transport.feed("$8\r\n");
  for (let index = 0; index < 8; index++) {
    await bench.clock.advance(450);
    transport.feed("x");
  }
  transport.feed("\r\n");
  await runMicrotasks();
  assertEquals(bench.replies, [[1, new TextEncoder().encode("xxxxxxxx")]]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection may be silent for ever while no reply is due", async () => {
  const bench = new Bench({ stallTimeoutMs: 1_000 });
  const transport = await bench.open();
  await bench.clock.advance(100_000);
  assertEquals(transport.closed, false);
  assertEquals(bench.events, []);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection waits for ever with a stallTimeoutMs of Infinity", async () => {
  const bench = new Bench({ stallTimeoutMs: Infinity });
  await bench.open();
  bench.submit(1);
  await bench.clock.advance(100_000);
  assertEquals(bench.replies, []);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection says when it has no room for ordinary commands, and keeps some for undoing", async () => {
  const bench = new Bench();
  await bench.open();
  const command = encodeCommand(["PING"]);
  for (let index = 0; index < QUEUE_LENGTH_MAX; index++) {
    assertEquals(bench.connection.crowded, false);
    bench.connection.submit(command, bench, index, 0);
  }
  assertEquals(bench.connection.crowded, true);
  assertEquals(
    bench.connection.crowdedError().message,
    `Connection to redis://h:6379 has ${QUEUE_LENGTH_MAX} commands waiting for replies already`,
  );
  for (let index = 0; index < QUEUE_LENGTH_MAX; index++) {
    bench.connection.submit(command, bench, index, 0);
  }
  assertEquals(bench.replies, []);
  bench.submit("one more");
  assertEquals(bench.replies, [[
    "one more",
    `Connection to redis://h:6379 has ${2 * QUEUE_LENGTH_MAX} commands waiting for replies already`,
    "not-sent",
  ]]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection.withdraw() takes back a command while connecting", async () => {
  const bench = new Bench();
  bench.network.mode = "wait";
  bench.submit(1);
  bench.submit(2, "GET", "k");
  assertEquals(bench.connection.withdraw(1), true);
  const transport = bench.network.pending[0].accept();
  await runMicrotasks();
  assertEquals(transport.written, wire("GET", "k"));
  transport.feed("$-1\r\n");
  await runMicrotasks();
  assertEquals(bench.replies, [[2, null]]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection.withdraw() takes back a command in the tick that queued it", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.submit(1);
  assertEquals(bench.connection.withdraw(1), true);
  await runMicrotasks();
  assertEquals(transport.writes, []);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection.withdraw() leaves a written command its place, so that replies fit", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.submit(1);
  await runMicrotasks();
  assertEquals(bench.connection.withdraw(1), false);
  bench.submit(2);
  transport.feed(":1\r\n:2\r\n");
  await runMicrotasks();
  assertEquals(bench.replies, [[1, 1], [2, 2]]);
  await advanceUntil(bench.clock, bench.connection.close());
});

for (
  const [state, prepare] of [
    ["that never connected", () => Promise.resolve()],
    ["that is connecting", (bench: Bench) => {
      bench.network.mode = "wait";
      bench.submit(1);
      return runMicrotasks();
    }],
    ["that is logging in", async (bench: Bench) => {
      bench.submit(1);
      await runMicrotasks();
      bench.network.last.writesHang = true;
    }],
    ["that is open", async (bench: Bench) => {
      await bench.open();
    }],
    ["with replies due", async (bench: Bench) => {
      await bench.open();
      bench.submit(1);
      await runMicrotasks();
    }],
    ["with a write that hangs", async (bench: Bench) => {
      (await bench.open()).writesHang = true;
      bench.submit(1);
      bench.submit(2);
      await runMicrotasks();
    }],
    ["whose stream does not even close", async (bench: Bench) => {
      const transport = await bench.open();
      transport.writesHang = transport.closeHangs = true;
      bench.submit(1);
      await runMicrotasks();
    }],
    ["that waits before connecting again", async (bench: Bench) => {
      (await bench.open()).end();
      await runMicrotasks();
    }],
    ["that is connecting again", async (bench: Bench) => {
      const transport = await bench.open();
      bench.network.mode = "wait";
      transport.end();
      await bench.clock.advance(100);
    }],
  ] as const
) {
  Deno.test(`Connection.close() of one ${state} settles, again too, and leaves nothing`, async () => {
    const bench = new Bench({}, state.includes("logging in") ? "redis://:pw@h" : "redis://h");
    await prepare(bench);
    const before = bench.network.targets.length;
    await advanceUntil(bench.clock, bench.connection.close(), 600);
    await bench.connection.close();
    assertEquals(bench.wheel.size, 0);
    for (const transport of bench.network.transports) assertEquals(transport.closed, true);
    for (const { accept } of bench.network.pending) assertEquals(accept().closed, false);
    await bench.clock.advance(10_000);
    for (const transport of bench.network.transports) assertEquals(transport.closed, true);
    assertEquals(bench.network.targets.length, before);
    assertEquals(bench.clock.timersAlive, 0);
    assertEquals(bench.clock.timers, 0);
    for (const reply of bench.replies) {
      assertEquals(reply[1], "Connection to redis://h:6379 was closed");
    }
    bench.replies.length = 0;
    bench.submit("late");
    assertEquals(bench.replies, [["late", "Connection to redis://h:6379 was closed", "not-sent"]]);
  });
}

Deno.test("Connection.close() waits a moment for the replies that are due", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.submit(1, "DEL", "k");
  const closing = bench.connection.close();
  await bench.clock.advance(100);
  assertEquals(transport.written, wire("DEL", "k"));
  assertEquals(transport.closed, false);
  transport.feed(":1\r\n");
  await closing;
  assertEquals(bench.replies, [[1, 1]]);
  assertEquals(transport.closed, true);
});

Deno.test("Connection.close() takes no more commands", async () => {
  const bench = new Bench();
  await bench.open();
  bench.submit(1);
  const closing = bench.connection.close();
  bench.submit(2);
  assertEquals(bench.replies, [[2, "Connection to redis://h:6379 is closed", "not-sent"]]);
  await advanceUntil(bench.clock, closing);
});

Deno.test("Connection.close() tells what is known of the commands that are left", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  transport.writesHang = true;
  bench.submit(1);
  await runMicrotasks();
  bench.submit(2);
  await advanceUntil(bench.clock, bench.connection.close());
  const message = "Connection to redis://h:6379 was closed";
  assertEquals(bench.replies, [[1, message, "unknown"], [2, message, "not-sent"]]);
});

Deno.test("Connection.close() settles when the stream is lost in the meantime", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.submit(1);
  const closing = bench.connection.close();
  await runMicrotasks();
  transport.end();
  await advanceUntil(bench.clock, closing, 100);
  assertEquals(bench.replies, [[
    1,
    "Connection to redis://h:6379 was lost: the server closed the connection",
    "unknown",
  ]]);
  await bench.clock.advance(10_000);
  assertEquals(bench.network.targets.length, 1);
});

Deno.test("Connection survives a connect that throws at once", async () => {
  const bench = new Bench({
    connect: () => {
      throw new Error("no sockets here");
    },
  });
  bench.submit(1);
  await runMicrotasks();
  assertEquals(bench.replies, [[
    1,
    "Connection to redis://h:6379 could not be made: no sockets here",
    "not-sent",
  ]]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection survives a stream whose close throws", async () => {
  const bench = new Bench();
  bench.network.make = () => {
    const transport = new FakeTransport();
    return Object.assign(transport, {
      close() {
        FakeTransport.prototype.close.call(transport);
        throw new Error("closed already");
      },
    });
  };
  const transport = await bench.open();
  bench.submit(1);
  await runMicrotasks();
  transport.end();
  await runMicrotasks();
  const message = "Connection to redis://h:6379 was lost: the server closed the connection";
  assertEquals(bench.replies, [[1, message, "unknown"]]);
  await bench.clock.advance(100);
  assertEquals(bench.network.transports.length, 2);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection lets the process end while it is idle", async () => {
  const bench = new Bench();
  const calls: string[] = [];
  bench.network.make = () =>
    Object.assign(new FakeTransport(), { unref: () => calls.push("unref") });
  await bench.open();
  assertEquals(calls, ["unref"]);
  assertEquals(bench.clock.timersAlive, 0);
  await advanceUntil(bench.clock, bench.connection.close());
});
