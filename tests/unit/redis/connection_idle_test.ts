import { assertEquals } from "@std/assert";
import { type ConnectionBench, test } from "../../support/connection_bench.ts";
import { FakeTransport, PING } from "../../support/fake_transport.ts";

const IDLE_MS = 30_000;
const STALL_MS = 2_000;

/** Expects that `written` is written after `ms`, and not before. */
async function expectAfter(bench: ConnectionBench, ms: number, written: string): Promise<void> {
  await bench.advance(ms - 1);
  assertEquals(bench.written, "");
  await bench.advance(1);
  assertEquals(bench.written, written);
}

test.open("Connection counts the silence from the last reply on", async (bench) => {
  await bench.advance(IDLE_MS - 1_000);
  await bench.submit(1, "GET", "a");
  await bench.answer("$-1\r\n");
  await expectAfter(bench, IDLE_MS, PING);
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

test("Connection that is closed between the end of its timer and the call sets no other", async (bench) => {
  const { clock } = bench;
  const calls: (() => void)[] = [];
  const setTimer = clock.setTimer.bind(clock);
  // as the runtime's timers do, which call in the client's own async context
  clock.setTimer = (callback, delayMs) =>
    setTimer(delayMs === IDLE_MS ? () => calls.push(callback) : callback, delayMs);
  await bench.open();
  await bench.advance(IDLE_MS);
  await bench.connection.close();
  const { timers } = clock;
  for (const call of calls) call();
  assertEquals([calls.length, clock.timers], [1, timers]);
});
