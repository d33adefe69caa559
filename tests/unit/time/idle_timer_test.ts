import { assertEquals } from "@std/assert";
import { IdleTimer } from "../../../src/time/idle_timer.ts";
import { FakeClock } from "../../support/fake_clock.ts";

/** A timer, and what looks every `everyMs` of its time. */
function bench() {
  const clock = new FakeClock(0);
  const timer = new IdleTimer(clock);
  const looks: [string, number][] = [];
  const lookEvery = (name: string, everyMs: number) => (nowMs: number) => {
    looks.push([name, nowMs]);
    return nowMs + everyMs;
  };
  return { clock, timer, looks, lookEvery };
}

Deno.test("IdleTimer looks at once and whenever it is due, by one timer that keeps no process alive", () => {
  const { clock, timer, looks, lookEvery } = bench();
  timer.add(lookEvery("a", 100));
  timer.add(lookEvery("b", 250));
  assertEquals([clock.timers, clock.timersAlive], [1, 0]);
  clock.advanceSync(100);
  assertEquals(looks, [["a", 0], ["b", 0], ["a", 100], ["b", 100]]);
  clock.advanceSync(100);
  assertEquals(clock.delaysMs, [100, 100, 100]);
});

Deno.test("IdleTimer.delete() ends the looks, and the last one clears the timer", () => {
  const { clock, timer, looks, lookEvery } = bench();
  const [a, b] = [lookEvery("a", 100), lookEvery("b", 100)];
  timer.add(a);
  timer.add(b);
  timer.delete(a);
  timer.delete(a);
  looks.length = 0;
  clock.advanceSync(100);
  assertEquals([looks, clock.timers], [[["b", 100]], 1]);
  timer.delete(b);
  assertEquals(clock.timers, 0);
  timer.add(a);
  assertEquals(clock.timers, 1);
});

Deno.test("IdleTimer looks no more at what a look deletes, and goes on with what it adds", () => {
  const { clock, timer, looks, lookEvery } = bench();
  const added = lookEvery("added", 100);
  const once = (nowMs: number) => {
    if (nowMs > 0) {
      timer.delete(once);
      timer.add(added);
    }
    return nowMs + 100;
  };
  timer.add(once);
  clock.advanceSync(200);
  assertEquals(looks.map(([name]) => name).includes("added"), true);
  assertEquals(clock.timers, 1);
  timer.delete(added);
  assertEquals(clock.timers, 0);
});
