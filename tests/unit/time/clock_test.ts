import { assertAlmostEquals, assertEquals, assertLess } from "@std/assert";
import { elapsedBetweenMs, elapsedMs, systemClock } from "../../../src/time/clock.ts";
import { FakeClock } from "../../support/fake_clock.ts";

for (
  const [what, monotonicMs, wallMs, elapsed] of [
    ["both clocks agree", 1_234.5, 1_234.5, 1_234.5],
    ["the machine slept", 10, 60_000, 60_000],
    ["the wall clock was stepped back", 10, -60_000, 10],
    ["the wall clock was stepped back at once", 0, -60_000, 0],
    ["both clocks went back", -1, -2, 0],
  ] as const
) {
  Deno.test(`elapsedMs() and elapsedBetweenMs() are ${elapsed} if ${what}`, () => {
    const clock = new FakeClock();
    const start = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
    clock.block(monotonicMs);
    clock.stepWall(wallMs - monotonicMs);
    assertEquals(elapsedMs(clock, start), elapsed);
    assertEquals(elapsedBetweenMs(start, clock.monotonicMs(), clock.wallMs()), elapsed);
  });
}

Deno.test("systemClock reads the runtime's clocks", () => {
  assertLess(Math.abs(systemClock.wallMs() - Date.now()), 1_000);
  assertAlmostEquals(systemClock.monotonicMs(), performance.now(), 1_000);
});

Deno.test("systemClock.setTimer() calls back after the delay, unless it is cleared", async () => {
  let cleared = false;
  systemClock.clearTimer(systemClock.setTimer(() => cleared = true, 1));
  const startMs = systemClock.monotonicMs();
  const timer = await new Promise((resolve) => {
    const timer = systemClock.setTimer(() => resolve(timer), 5);
    systemClock.keepAlive(timer, true);
  });
  assertLess(4, systemClock.monotonicMs() - startMs);
  assertEquals(cleared, false);
  systemClock.clearTimer(timer); // one that has fired is ignored
});
