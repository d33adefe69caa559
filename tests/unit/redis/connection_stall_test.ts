import { assertEquals, assertGreaterOrEqual, assertLessOrEqual } from "@std/assert";
import { Bench } from "../../support/connection_bench.ts";
import { advanceUntil, runMicrotasks } from "../../support/fake_clock.ts";

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

// Servers that send something, but no reply

/** Has the server send one byte of a reply without end each `everyMs`, until the stream is closed. */
async function trickle(bench: Bench, everyMs: number, limitMs: number): Promise<number> {
  const transport = bench.network.last;
  transport.feed("$100000\r\n");
  let passedMs = 0;
  for (; !transport.closed && passedMs < limitMs; passedMs += everyMs) {
    await bench.clock.advance(everyMs);
    transport.feed("x");
    await runMicrotasks();
  }
  return passedMs;
}

Deno.test("Connection gives a command up that has no whole reply within replyTimeoutMs, though bytes come", async () => {
  const bench = new Bench({ stallTimeoutMs: 1_000, replyTimeoutMs: 4_000 });
  await bench.open();
  await bench.clock.advance(1_000);
  bench.submit(1);
  bench.submit(2);
  const passedMs = await trickle(bench, 100, 60_000);
  assertGreaterOrEqual(passedMs, 4_000);
  assertLessOrEqual(passedMs, 8_000);
  const message = "Connection to redis://h:6379 left a command without a whole reply for 4000 ms";
  assertEquals(bench.replies, [[1, message, "unknown"], [2, message, "unknown"]]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection gives a command up that waits behind replies that come one by one", async () => {
  const bench = new Bench({ stallTimeoutMs: 1_000, replyTimeoutMs: 4_000 });
  const transport = await bench.open();
  await bench.clock.advance(1_000);
  for (let id = 0; id < 100; id++) bench.submit(id);
  await runMicrotasks();
  let passedMs = 0;
  for (; !transport.closed && passedMs < 60_000; passedMs += 500) {
    await bench.clock.advance(500);
    transport.feed("+PONG\r\n");
    await runMicrotasks();
  }
  assertGreaterOrEqual(passedMs, 4_000);
  assertLessOrEqual(passedMs, 8_000);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection lets a server work for ever on many commands, as long as none of them waits too long", async () => {
  const bench = new Bench({ stallTimeoutMs: 4_000, replyTimeoutMs: 4_000 });
  const transport = await bench.open();
  for (let id = 0; id < 100; id++) {
    bench.submit(id); // three seconds before its reply
    if (id >= 3) transport.feed("+PONG\r\n");
    await bench.clock.advance(1_000);
  }
  assertEquals([transport.closed, bench.replies.length], [false, 97]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection lets a server trickle for ever with a replyTimeoutMs of Infinity, and by default", async () => {
  for (const options of [{ replyTimeoutMs: Infinity }, {}]) {
    const bench = new Bench({ stallTimeoutMs: 1_000, ...options });
    await bench.open();
    bench.submit(1);
    assertEquals(await trickle(bench, 500, 30_000), 30_000);
    await advanceUntil(bench.clock, bench.connection.close());
  }
});

Deno.test("Connection looks at replyTimeoutMs without a stallTimeoutMs, too", async () => {
  const bench = new Bench({ stallTimeoutMs: Infinity, replyTimeoutMs: 4_000 });
  const transport = await bench.open();
  bench.submit(1);
  await bench.clock.advance(8_100);
  assertEquals(transport.closed, true);
  await advanceUntil(bench.clock, bench.connection.close());
});
