import { assertEquals, assertGreaterOrEqual, assertLessOrEqual } from "@std/assert";
import { type ConnectionBench, test } from "../../support/connection_bench.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { NAME } from "../../support/stream_bench.ts";

for (const lastMs of [10, 240, 260, 740, 990, 1_010, 30_000 - 10]) {
  test(`Connection is silent for stallTimeoutMs and at most a quarter more, from a command ${lastMs} ms after the one before`, async (bench) => {
    bench.use({ stallTimeoutMs: 1_000 });
    const { transport } = await bench.open();
    await bench.advance(lastMs);
    await bench.submit(1);
    await bench.advance(980);
    assertEquals(bench.replies, []);
    await bench.advance(290);
    const message = `Connection to ${NAME} was silent for 1000 ms`;
    assertEquals([bench.replies, transport.closed], [[[1, message, "unknown"]], true]);
    await bench.advance(100);
    assertEquals(bench.network.transports.length, 2);
  });
}

for (const count of [1, 2]) {
  test(`Connection waits for stallTimeoutMs also if the clock stood still around its last look, before ${count} at once`, async (bench) => {
    await bench.submit(0);
    bench.clock.block(1_000);
    await bench.feed("+PO");
    await bench.advance(0);
    await bench.feed("NG\r\n");
    await bench.advance(990);
    bench.connection.submit({ args: Array(count).fill("PING"), count, name: 1 }, bench);
    await bench.advance(1_980);
    assertEquals(bench.replies, [[0, "PONG"]]);
  });
}

test("Connection is silent also if commands keep coming behind a write that never ends", async (bench) => {
  const { transport } = await bench.open();
  transport.writesHang = true;
  await bench.submit(0);
  await bench.feed("+PONG\r\n");
  for (let id = 1; id < 28; id++) {
    bench.queue(id);
    await bench.advance(100);
  }
  assertEquals([bench.replies[0], transport.closed], [[0, "PONG"], true]);
});

test("Connection goes on while some reply is always due, but each comes in time", async (bench) => {
  bench.use({ stallTimeoutMs: 1_000, replyTimeoutMs: 4_000 });
  await bench.open();
  for (let id = 0; id < 20; id++) {
    await bench.submit(id);
    await bench.advance(900);
    await bench.feed("+PONG\r\n");
  }
  assertEquals([bench.replies.length, bench.errors], [20, []]);
});

/**
 * Delivers `bytes` again and again until the stream is closed or the time is over; returns the time
 * that passed.
 */
async function trickle(bench: ConnectionBench, bytes: string, everyMs: number, limitMs: number) {
  const { transport } = bench;
  let passedMs = 0;
  for (; !transport.closed && passedMs < limitMs; passedMs += everyMs) {
    await bench.clock.advance(everyMs);
    transport.feed(bytes);
    await runMicrotasks();
  }
  return passedMs;
}

for (
  const [what, commands, head, piece, everyMs] of [
    ["whose reply never ends", 2, "$100000\r\n", "x", 100],
    ["behind replies that come one by one", 100, "", "+PONG\r\n", 500],
  ] as const
) {
  test(`Connection gives up a command ${what} after replyTimeoutMs, and at most twice that`, async (bench) => {
    bench.use({ stallTimeoutMs: 1_000, replyTimeoutMs: 4_000 });
    await bench.open();
    await bench.advance(1_000);
    for (let id = 0; id < commands; id++) bench.queue(id);
    if (head !== "") await bench.feed(head);
    const passedMs = await trickle(bench, piece, everyMs, 60_000);
    assertGreaterOrEqual(passedMs, 4_000);
    assertLessOrEqual(passedMs, 8_000);
    const message = `Connection to ${NAME} left a command without a whole reply for 4000 ms`;
    assertEquals(bench.replies.at(-1), [commands - 1, message, "unknown"]);
  });
}
