import { assertEquals } from "@std/assert";
import { getEventListeners } from "node:events";
import { pause } from "../../../src/time/pause.ts";
import { TimerWheel } from "../../../src/time/timer_wheel.ts";
import { FakeClock } from "../../support/fake_clock.ts";

/** A pause on faked time, and whether it is over. */
function begin(delayMs: number, signal?: AbortSignal) {
  const clock = new FakeClock();
  const wheel = new TimerWheel(clock);
  const bench = { clock, wheel, over: false };
  pause(wheel, delayMs, signal).then(() => bench.over = true);
  return bench;
}

for (const delayMs of [0, 1, 7, 249, 250, 251, 5_000]) {
  Deno.test(`pause() of ${delayMs} ms keeps the process alive until then and no longer, although the wall clock steps ahead`, async () => {
    const bench = begin(delayMs);
    const { clock, wheel } = bench;
    assertEquals([wheel.size, clock.timersAlive], [1, 1]);
    clock.stepWall(60_000);
    if (delayMs > 0) await clock.advance(delayMs - 1);
    assertEquals(bench.over, false);
    await clock.advance(delayMs > 0 ? 1 : 0);
    assertEquals([bench.over, wheel.size, clock.timersAlive], [true, 0, 0]);
    wheel.close();
    assertEquals(clock.timers, 0);
  });
}

Deno.test("pause() with a signal that was aborted before resolves at once, and waits nowhere", async () => {
  const signal = AbortSignal.abort();
  const listeners = () => getEventListeners(signal, "abort").length;
  const bench = begin(1_000, signal);
  await Promise.resolve();
  assertEquals([bench.over, bench.wheel.size, bench.clock.timers, listeners()], [true, 0, 0, 0]);
});

for (const how of ["its signal aborts", "the client closes", "its time is over"]) {
  Deno.test(`pause() resolves when ${how}, and leaves no timer and no listener`, async () => {
    const controller = new AbortController();
    const listeners = () => getEventListeners(controller.signal, "abort").length;
    const bench = begin(1_000, controller.signal);
    const { clock, wheel } = bench;
    await clock.advance(100);
    assertEquals([bench.over, listeners()], [false, 1]);
    if (how === "its signal aborts") controller.abort();
    else if (how === "the client closes") wheel.announceClose();
    await clock.advance(how === "its time is over" ? 900 : 0);
    assertEquals([bench.over, listeners(), wheel.size, clock.timersAlive], [true, 0, 0, 0]);
    controller.abort(); // later, and nothing changes
    assertEquals(clock.timersAlive, 0);
  });
}
