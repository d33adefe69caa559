import { assertEquals, assertInstanceOf } from "@std/assert";
import { ProtocolError } from "../../../src/redis/errors.ts";
import { Bench } from "../../support/connection_bench.ts";
import { advanceUntil, runMicrotasks } from "../../support/fake_clock.ts";
import { FakeTransport, PING } from "../../support/fake_transport.ts";

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
