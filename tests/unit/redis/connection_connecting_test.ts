import {
  assertEquals,
  assertGreaterOrEqual,
  assertLessOrEqual,
  assertStrictEquals,
} from "@std/assert";
import { Bench } from "../../support/connection_bench.ts";
import { advanceUntil, runMicrotasks } from "../../support/fake_clock.ts";
import { FakeTransport, PING } from "../../support/fake_transport.ts";

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
