import { assertEquals, assertLess } from "@std/assert";
import { systemClock } from "../../../src/time/clock.ts";

Deno.test("systemClock reads the runtime's clocks", () => {
  assertLess(Math.abs(systemClock.wallMs() - Date.now()), 1_000);
  assertLess(Math.abs(systemClock.monotonicMs() - performance.now()), 1_000);
});

Deno.test("systemClock.setTimer() gives the runtime no negative delay, about which Node warns", async () => {
  const { setTimeout } = globalThis;
  const delaysMs: unknown[] = [];
  globalThis.setTimeout = ((callback: () => void, delayMs?: number) => {
    delaysMs.push(delayMs);
    return setTimeout(callback, delayMs);
  }) as typeof setTimeout;
  try {
    await new Promise<void>((resolve) => {
      systemClock.keepAlive(systemClock.setTimer(resolve, -76.2), true);
    });
  } finally {
    globalThis.setTimeout = setTimeout;
  }
  assertEquals(delaysMs, [0]);
});
