import { assert } from "@std/assert";
import { startFakeClock } from "../../../src/testing/mod.ts";
import { systemClock } from "../../../src/time/clock.ts";

/** Longer than any test. */
const LONG_MS = 1_000_000;

function fired(delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    systemClock.keepAlive(systemClock.setTimer(resolve, delayMs), true);
  });
}

Deno.test("a fake clock takes timers over, and gives back those that are left", async () => {
  const long = fired(LONG_MS);
  const cleared = systemClock.setTimer(() => assert(false), LONG_MS);
  const short = fired(20);
  let over = false;
  short.then(() => over = true);
  {
    using clock = startFakeClock();
    systemClock.clearTimer(cleared);
    await clock.tick(LONG_MS);
    await long;
    assert(over);
  }
  const clock = startFakeClock();
  const left = [fired(30), fired(40)];
  const [first, second] = [1, 2].map(() => systemClock.setTimer(() => assert(false), 25));
  await clock.tick(20);
  systemClock.clearTimer(first);
  clock.restore();
  systemClock.clearTimer(second);
  await Promise.all(left);
});
