import { assertEquals } from "@std/assert";
import { Bench } from "../../support/connection_bench.ts";
import { advanceUntil, runMicrotasks } from "../../support/fake_clock.ts";
import { wire } from "../../support/fake_transport.ts";

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
