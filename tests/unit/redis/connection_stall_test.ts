import { assertEquals } from "@std/assert";
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
