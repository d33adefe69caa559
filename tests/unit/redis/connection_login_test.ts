import { assertEquals, assertInstanceOf } from "@std/assert";
import { ReplyError } from "../../../src/redis/errors.ts";
import { Bench } from "../../support/connection_bench.ts";
import { advanceUntil, runMicrotasks } from "../../support/fake_clock.ts";
import { PING, wire } from "../../support/fake_transport.ts";

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
