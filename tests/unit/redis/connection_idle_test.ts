import { assertEquals } from "@std/assert";
import { type ConnectionBench, test } from "../../support/connection_bench.ts";
import { FakeTransport, PING } from "../../support/fake_transport.ts";
import { NAME } from "../../support/stream_bench.ts";

const IDLE_MS = 30_000;
const STALL_MS = 2_000;

/** Expects that `written` is written after `ms`, and not before. */
async function expectAfter(bench: ConnectionBench, ms: number, written: string): Promise<void> {
  await bench.advance(ms - 1);
  assertEquals(bench.written, "");
  await bench.advance(1);
  assertEquals(bench.written, written);
}

test.open("Connection sends a PING after each 30 s of silence, and says nothing about the reply", async (bench) => {
  bench.transport.writes.length = 0;
  for (const reply of ["+PONG\r\n", "-NOPERM no 'ping'\r\n", "-ERR unknown command 'PING'\r\n"]) {
    await expectAfter(bench, IDLE_MS, PING);
    await bench.answer(reply);
  }
  assertEquals([bench.events, bench.replies, bench.network.targets.length], [[], [], 1]);
});

test.open("Connection counts the silence from the last reply on", async (bench) => {
  await bench.advance(IDLE_MS - 1_000);
  await bench.submit(1, "GET", "a");
  await bench.answer("$-1\r\n");
  await expectAfter(bench, IDLE_MS, PING);
});

test.open("Connection is replaced if a PING after a long silence has no reply, so that the next command has one", async (bench) => {
  await bench.advance(IDLE_MS);
  const { transport } = bench;
  await bench.advance(1.5 * STALL_MS);
  assertEquals(transport.closed, true);
  assertEquals(bench.events[0], `Connection to ${NAME} was silent for ${STALL_MS} ms`);
  await bench.reconnect();
  assertEquals(bench.events.slice(1), ["connected"]);
  await bench.submit(1, "GET", "a");
  await bench.answer("$-1\r\n");
  assertEquals(bench.replies, [[1, null]]);
});

test.open("Connection sends no PING while replies are due", async (bench) => {
  bench.transport.writes.length = 0;
  await bench.submit(1, "GET", "a");
  for (let waitedMs = 0; waitedMs < IDLE_MS + STALL_MS; waitedMs += STALL_MS / 2) {
    await bench.feed(waitedMs === 0 ? "$1000\r\n" : "x"); // a long reply is on its way
    await bench.advance(STALL_MS / 2);
  }
  assertEquals(bench.transport.writes.length, 1);
});

test("Connection sends no PING on a stream of a runtime that ends it with the request", async (bench) => {
  bench.network.make = () => Object.assign(new FakeTransport(), { unref: undefined });
  await bench.open();
  bench.transport.writes.length = 0;
  await bench.advance(10 * IDLE_MS);
  assertEquals([bench.written, bench.clock.timers], ["", 0]);
});

test.open("Connection wakes the process once in 30 s while it is idle, and keeps it alive by no timer", async (bench) => {
  await bench.advance(IDLE_MS); // the watch for the first reply is over
  await bench.answer("+PONG\r\n");
  await bench.advance(STALL_MS);
  bench.clock.delaysMs.length = 0;
  await bench.advance(IDLE_MS - STALL_MS - 1);
  assertEquals([bench.clock.delaysMs, bench.clock.timers, bench.clock.timersAlive], [[], 1, 0]);
});

test("Connection clears no timer that it has not set, because a clock knows only its own", (bench) => {
  const { clock } = bench;
  const cleared: unknown[] = [];
  const clear = clock.clearTimer.bind(clock);
  clock.clearTimer = (timer) => {
    cleared.push(timer);
    clear(timer);
  };
  bench.network.mode = "wait";
  bench.queue(1);
  bench.connection.close();
  assertEquals(cleared.includes(undefined), false);
  return Promise.resolve();
});
