import { assertEquals, assertInstanceOf, assertLessOrEqual } from "@std/assert";
import { ReplyError } from "../../../src/redis/errors.ts";
import { Bench } from "../../support/connection_bench.ts";
import { advanceUntil, runMicrotasks } from "../../support/fake_clock.ts";
import { FakeTransport, PING, wire } from "../../support/fake_transport.ts";

const NAME = "redis://h:6379";
const LOST = `Connection to ${NAME} was lost: the server closed the connection`;

/** A connection whose owner wants to know whether the server is there. */
function observed(address?: string): { bench: Bench; reported: string[] } {
  const reported: string[] = [];
  const bench = new Bench({
    onAvailable: () => reported.push("available"),
    onUnavailable: ({ message }) => reported.push(message),
  }, address);
  return { bench, reported };
}

/** How often a client with 20 commands a second connects within ten seconds to a server that does `act` with a stream. */
async function connects(act: (transport: FakeTransport) => void, address?: string) {
  const bench = new Bench({}, address);
  bench.network.make = () => {
    const transport = new FakeTransport();
    act(transport);
    return transport;
  };
  for (let id = 0; id < 400; id++) {
    bench.submit(id);
    if (id === 200) bench.network.targets.length = 0;
    await bench.clock.advance(50);
  }
  const count = bench.network.targets.length;
  await advanceUntil(bench.clock, bench.connection.close());
  return { count, errors: bench.errors, last: bench.replies.at(-1)! };
}

const MAX_CLIENTS = "ERR max number of clients reached";

/** Servers that refuse, and what they send. */
const REFUSING: Record<string, (transport: FakeTransport) => void> = {
  "sends an error at once, and hangs up": (transport) => {
    transport.feed(`-${MAX_CLIENTS}\r\n`);
    transport.end();
  },
  "sends an error at once, and leaves the connection open": (transport) => {
    transport.feed(`-${MAX_CLIENTS}\r\n`);
  },
  "answers the first command with an error, and hangs up": (transport) => {
    const write = transport.write.bind(transport);
    transport.write = (bytes) => {
      transport.feed(`-${MAX_CLIENTS}\r\n`);
      transport.end();
      return write(bytes);
    };
  },
};

for (const [what, act] of Object.entries(REFUSING)) {
  for (const address of ["redis://h", "redis://:pw@h"]) {
    Deno.test(`Connection to ${address} backs off from a server that ${what}, and repeats its words`, async () => {
      const { count, errors, last } = await connects(act, address);
      assertLessOrEqual(count, 11);
      if (last[1] instanceof ReplyError) assertEquals(last[1].message, MAX_CLIENTS);
      else assertEquals(last[1], `Connection to ${NAME} was refused: ${MAX_CLIENTS}`);
      for (const { cause } of errors) assertInstanceOf(cause, ReplyError);
    });
  }
}

Deno.test("Connection backs off from a server that lets it in, and hangs up", async () => {
  const { count } = await connects((transport) => {
    transport.feed("+OK\r\n");
    transport.end();
  }, "redis://:pw@h");
  assertLessOrEqual(count, 11);
});

Deno.test("Connection says that it was lost, not refused, after a reply that is no error", async () => {
  const bench = new Bench();
  bench.submit(1);
  bench.submit(2);
  await runMicrotasks();
  bench.network.last.feed("-ERR first\r\n+PONG\r\n");
  bench.network.last.end();
  await runMicrotasks();
  bench.submit(3);
  assertEquals(bench.replies.at(-1), [3, LOST, "not-sent"]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection shows a server's error without our password and without control characters", async () => {
  const bench = new Bench({}, "redis://:hunter2@h");
  bench.submit(1);
  await runMicrotasks();
  bench.network.last.feed("-ERR bad hunter2\x1b[2J\u2028node-2 is fine\r\n");
  await runMicrotasks();
  assertEquals(bench.replies[0].slice(0, 2), [
    1,
    `Connection to ${NAME} was refused: ERR bad ***\\u{1b}[2J\\u{2028}node-2 is fine`,
  ]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection shows what broke it without our password and without control characters, cut off", async () => {
  const bench = new Bench({}, "redis://:hunter2@h");
  bench.network.mode = "refuse";
  bench.network.refusal = new Error(`altnames: DNS:hunter2\nnode-2: fine${"x".repeat(10_000)}`);
  bench.submit(1);
  await runMicrotasks();
  const [, message] = bench.replies[0] as [number, string];
  const prefix = `Connection to ${NAME} could not be made: altnames: DNS:***\\u{a}node-2: fine`;
  assertEquals(message.slice(0, prefix.length), prefix);
  assertLessOrEqual(message.length, 700);
  await advanceUntil(bench.clock, bench.connection.close());
});

// Whether the server is there

Deno.test("Connection calls a server available once it has replied to a command, not before", async () => {
  const { bench, reported } = observed();
  bench.submit(1);
  await runMicrotasks();
  assertEquals([bench.events, reported], [["connected"], []]);
  bench.network.last.feed("-NOSCRIPT no\r\n");
  await runMicrotasks();
  assertEquals(reported, []);
  bench.submit(2);
  bench.network.last.feed("+PONG\r\n");
  await runMicrotasks();
  assertEquals(reported, ["available"]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection calls a server available once it has let us in", async () => {
  const { bench, reported } = observed("redis://:pw@h");
  bench.submit(1);
  await runMicrotasks();
  assertEquals(reported, []);
  bench.network.last.feed("+OK\r\n");
  await runMicrotasks();
  assertEquals(reported, ["available"]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection behind a proxy that accepts and closes calls the server unavailable once, and never available", async () => {
  const { bench, reported } = observed();
  bench.network.make = () => {
    const transport = new FakeTransport();
    transport.end();
    return transport;
  };
  for (let second = 0; second < 20; second++) {
    bench.submit(second);
    await bench.clock.advance(1_000);
  }
  assertEquals(reported, [LOST]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection asks a server that nobody else asks whether it is there again, once", async () => {
  const { bench, reported } = observed();
  const transport = await bench.open();
  assertEquals(reported, ["available"]);
  transport.end();
  await bench.clock.advance(1_200);
  assertEquals(bench.network.last.writes, [PING]);
  bench.network.last.feed("+PONG\r\n");
  await bench.clock.advance(10_000);
  assertEquals(bench.network.last.writes, [PING]);
  assertEquals(reported, ["available", LOST, "available"]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection asks a server nothing of its own accord where a command does, or where nobody wants to know", async () => {
  const { bench, reported } = observed();
  (await bench.open()).end();
  await bench.clock.advance(100);
  bench.submit(1, "GET", "k");
  await runMicrotasks();
  bench.network.last.feed("$-1\r\n");
  await bench.clock.advance(10_000);
  assertEquals(bench.network.last.writes, [wire("GET", "k")]);
  assertEquals(reported.at(-1), "available");
  await advanceUntil(bench.clock, bench.connection.close());
  const alone = new Bench();
  (await alone.open()).end();
  await alone.clock.advance(10_000);
  assertEquals(alone.network.last.writes, []);
  await advanceUntil(alone.clock, alone.connection.close());
});
