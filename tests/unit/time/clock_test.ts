import { assertAlmostEquals, assertEquals, assertLess } from "@std/assert";
import { elapsedBetweenMs, elapsedMs, systemClock } from "../../../src/time/clock.ts";
import { FakeClock } from "../../support/fake_clock.ts";

function elapsed(monotonicMs: number, wallMs: number): number {
  const clock = new FakeClock();
  const start = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
  clock.block(monotonicMs);
  clock.stepWall(wallMs - monotonicMs);
  return elapsedMs(clock, start);
}

Deno.test("elapsedMs() is what both clocks say where they agree", () => {
  assertEquals(elapsed(1_234.5, 1_234.5), 1_234.5);
});

Deno.test("elapsedMs() is the wall clock's where the machine slept", () => {
  assertEquals(elapsed(10, 60_000), 60_000);
});

Deno.test("elapsedMs() is the monotonic clock's where the wall clock was stepped back", () => {
  assertEquals(elapsed(10, -60_000), 10);
});

Deno.test("elapsedMs() is never negative", () => {
  assertEquals(elapsed(0, -60_000), 0);
  assertEquals(elapsedBetweenMs({ monotonicMs: 5, wallMs: 5 }, 4, 3), 0);
});

Deno.test("elapsedBetweenMs() takes the greater of both differences", () => {
  assertEquals(elapsedBetweenMs({ monotonicMs: 100, wallMs: 1_000 }, 150, 1_020), 50);
  assertEquals(elapsedBetweenMs({ monotonicMs: 100, wallMs: 1_000 }, 150, 1_070), 70);
});

Deno.test("systemClock reads the runtime's clocks", () => {
  assertLess(Math.abs(systemClock.wallMs() - Date.now()), 1_000);
  assertAlmostEquals(systemClock.monotonicMs(), performance.now(), 1_000);
});

Deno.test("systemClock.setTimer() calls back after the delay", async () => {
  const startMs = systemClock.monotonicMs();
  const timer = await new Promise((resolve) => {
    const timer = systemClock.setTimer(() => resolve(timer), 5);
    systemClock.keepAlive(timer, true);
  });
  assertLess(4, systemClock.monotonicMs() - startMs);
  systemClock.clearTimer(timer); // one that has fired is ignored
});

Deno.test("systemClock.clearTimer() forgets a timer", async () => {
  let fired = false;
  systemClock.clearTimer(systemClock.setTimer(() => fired = true, 1));
  await new Promise<void>((resolve) => {
    systemClock.keepAlive(systemClock.setTimer(resolve, 5), true);
  });
  assertEquals(fired, false);
});
