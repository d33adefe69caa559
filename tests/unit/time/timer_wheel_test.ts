import { assert, assertEquals, assertGreaterOrEqual, assertLess } from "@std/assert";
import fc from "fast-check";
import { TimerEntry, TimerWheel } from "../../../src/time/timer_wheel.ts";
import { FakeClock } from "../../support/fake_clock.ts";

const SEED = 86_400;

/** An entry that notes when it was called. */
class Entry extends TimerEntry {
  readonly calls: number[] = [];
  closed = 0;
  then: () => void = () => {};
  readonly #clock: FakeClock;

  constructor(clock: FakeClock) {
    super();
    this.#clock = clock;
  }

  override onDue(): void {
    this.calls.push(this.#clock.monotonicMs());
    this.then();
  }

  override onClosed(): boolean {
    this.closed++;
    return true;
  }
}

function setUp(nowMs?: number): { clock: FakeClock; wheel: TimerWheel; startMs: number } {
  const clock = new FakeClock(nowMs);
  return { clock, wheel: new TimerWheel(clock), startMs: clock.monotonicMs() };
}

Deno.test("TimerWheel calls entries in the order of their times, whatever the order of scheduling", () => {
  const { clock, wheel, startMs } = setUp();
  const order: number[] = [];
  for (const delayMs of [30, 1, 2_500, 7, 8, 9, 0, 900, 15, 16, 250, 251]) {
    wheel.after(delayMs, () => {
      assertEquals(clock.monotonicMs() - startMs, delayMs);
      order.push(delayMs);
    });
  }
  clock.advanceSync(3_000);
  assertEquals(order, [0, 1, 7, 8, 9, 15, 16, 30, 250, 251, 900, 2_500]);
});

Deno.test("TimerWheel calls an entry once", () => {
  const { clock, wheel, startMs } = setUp();
  const entry = new Entry(clock);
  wheel.schedule(entry, startMs + 10);
  clock.advanceSync(10_000);
  assertEquals(entry.calls, [startMs + 10]);
  assertEquals(entry.scheduled, false);
});

Deno.test("TimerWheel never calls an entry before its time, fractions counted", () => {
  const { clock, wheel, startMs } = setUp(1_000.25);
  const entry = new Entry(clock);
  wheel.schedule(entry, startMs + 3.5);
  clock.advanceSync(100);
  assertGreaterOrEqual(entry.calls[0], startMs + 3.5);
  assertLess(entry.calls[0], startMs + 4.5 + 1);
});

for (const delayMs of [2_047, 2_048, 2_049, 5_000, 60_000, 86_400_000 / 24]) {
  Deno.test(`TimerWheel calls an entry ${delayMs} ms ahead at its time`, () => {
    const { clock, wheel, startMs } = setUp();
    const entry = new Entry(clock);
    wheel.schedule(entry, startMs + delayMs);
    clock.advanceSync(delayMs - 1);
    assertEquals(entry.calls, []);
    clock.advanceSync(1);
    assertEquals(entry.calls, [startMs + delayMs]);
  });
}

Deno.test("TimerWheel calls an entry whose time is past with the next wake-up", () => {
  for (const pastMs of [0, 1, 8, 300, 2_048, 100_000]) {
    const { clock, wheel, startMs } = setUp();
    const before = new Entry(clock);
    wheel.schedule(before, startMs + 5_000);
    clock.advanceSync(5_000);
    const entry = new Entry(clock);
    wheel.schedule(entry, clock.monotonicMs() - pastMs);
    assertEquals(entry.calls, []);
    clock.advanceSync(0);
    assertEquals(entry.calls, [startMs + 5_000]);
  }
});

Deno.test("TimerWheel calls everything that a busy event loop kept it from calling", () => {
  for (const blockedMs of [100, 2_047, 2_048, 2_049, 10_000]) {
    const { clock, wheel, startMs } = setUp();
    const entries = Array.from({ length: 40 }, () => new Entry(clock));
    entries.forEach((entry, index) => wheel.schedule(entry, startMs + index * blockedMs / 40));
    clock.block(blockedMs);
    clock.advanceSync(0);
    assertEquals(entries.map(({ calls }) => calls.length), entries.map(() => 1));
  }
});

Deno.test("TimerWheel.schedule() moves an entry that waits already", () => {
  const { clock, wheel, startMs } = setUp();
  const entry = new Entry(clock);
  wheel.schedule(entry, startMs + 10);
  wheel.schedule(entry, startMs + 50);
  assertEquals(wheel.size, 1);
  clock.advanceSync(49);
  assertEquals(entry.calls, []);
  wheel.schedule(entry, startMs + 50.5);
  clock.advanceSync(10);
  assertEquals(entry.calls, [startMs + 51]);
});

Deno.test("TimerWheel lets an entry schedule itself anew while it is called", () => {
  const { clock, wheel, startMs } = setUp();
  const entry = new Entry(clock);
  entry.then = () => wheel.schedule(entry, clock.monotonicMs() + 100);
  wheel.schedule(entry, startMs + 100);
  clock.advanceSync(350);
  assertEquals(entry.calls, [startMs + 100, startMs + 200, startMs + 300]);
});

Deno.test("TimerWheel lets an entry that is called schedule another for this very moment", () => {
  const { clock, wheel, startMs } = setUp();
  const [first, second] = [new Entry(clock), new Entry(clock)];
  first.then = () => wheel.schedule(second, clock.monotonicMs());
  wheel.schedule(first, startMs + 100);
  clock.advanceSync(100);
  assertEquals(second.calls, [startMs + 100]);
});

Deno.test("TimerWheel.cancel() takes an entry out", () => {
  const { clock, wheel, startMs } = setUp();
  const [first, second, third] = [new Entry(clock), new Entry(clock), new Entry(clock)];
  for (const entry of [first, second, third]) wheel.schedule(entry, startMs + 10);
  wheel.cancel(second);
  assertEquals([wheel.size, second.scheduled], [2, false]);
  wheel.cancel(second);
  clock.advanceSync(100);
  assertEquals([first, second, third].map(({ calls }) => calls.length), [1, 0, 1]);
});

Deno.test("TimerWheel.cancel() spares an entry that is due in the same wake-up", () => {
  const { clock, wheel, startMs } = setUp();
  const entries = [new Entry(clock), new Entry(clock), new Entry(clock)];
  for (const entry of entries) {
    entry.then = () => entries.forEach((other) => other !== entry && wheel.cancel(other));
    wheel.schedule(entry, startMs + 10);
  }
  clock.advanceSync(100);
  assertEquals(entries.reduce((total, { calls }) => total + calls.length, 0), 1);
  assertEquals(wheel.size, 0);
});

Deno.test("TimerWheel.schedule() puts off an entry that is due in the same wake-up", () => {
  const { clock, wheel, startMs } = setUp();
  const entries = [new Entry(clock), new Entry(clock)];
  for (const entry of entries) {
    entry.then = () => {
      entry.then = () => {};
      const other = entries.find((other) => other !== entry)!;
      if (other.calls.length === 0) wheel.schedule(other, startMs + 500);
    };
    wheel.schedule(entry, startMs + 10);
  }
  clock.advanceSync(1_000);
  const calls = entries.flatMap(({ calls }) => calls).sort((a, b) => a - b);
  assertEquals(calls, [startMs + 10, startMs + 500]);
});

Deno.test("TimerWheel keeps a cancelled entry usable", () => {
  const { clock, wheel, startMs } = setUp();
  const entry = new Entry(clock);
  wheel.schedule(entry, startMs + 10);
  wheel.cancel(entry);
  wheel.schedule(entry, startMs + 20);
  clock.advanceSync(100);
  assertEquals(entry.calls, [startMs + 20]);
});

Deno.test("TimerWheel sets one timer for any number of entries", () => {
  const { clock, wheel, startMs } = setUp();
  for (let index = 0; index < 1_000; index++) wheel.schedule(new Entry(clock), startMs + index);
  assertEquals(clock.timers, 1);
  clock.advanceSync(500);
  assertEquals(clock.timers, 1);
});

Deno.test("TimerWheel never sleeps longer than 250 ms while an entry waits, nor wakes up while none does", () => {
  const { clock, wheel, startMs } = setUp();
  wheel.schedule(new Entry(clock), startMs + 3_000);
  clock.advanceSync(2_999);
  assert(clock.delaysMs.every((delayMs) => delayMs <= 250));
  clock.advanceSync(1_000);
  assertEquals(clock.timers, 0);
});

Deno.test("TimerWheel tells every entry within 250 ms that the wall clock jumped ahead", () => {
  const { clock, wheel, startMs } = setUp();
  const entries = [10, 700, 5_000, 100_000].map((delayMs) => {
    const entry = new Entry(clock);
    wheel.schedule(entry, startMs + delayMs);
    return entry;
  });
  clock.advanceSync(5);
  clock.stepWall(1_000);
  clock.advanceSync(250);
  assertEquals(entries.map(({ calls }) => calls.length), [1, 1, 1, 1]);
});

Deno.test("TimerWheel takes a jump for one, also where it came while nothing waited", () => {
  const { clock, wheel, startMs } = setUp();
  clock.stepWall(60_000);
  const entry = new Entry(clock);
  wheel.schedule(entry, startMs + 1_000);
  clock.advanceSync(999);
  assertEquals(entry.calls, []);
});

Deno.test("TimerWheel changes nothing when the wall clock steps back", () => {
  const { clock, wheel, startMs } = setUp();
  const entry = new Entry(clock);
  wheel.schedule(entry, startMs + 1_000);
  clock.advanceSync(10);
  clock.stepWall(-60_000);
  clock.advanceSync(989);
  assertEquals(entry.calls, []);
  clock.advanceSync(1);
  assertEquals(entry.calls, [startMs + 1_000]);
});

Deno.test("TimerWheel.after() calls back at its time and not at a jump", () => {
  const { clock, wheel, startMs } = setUp();
  const calls: number[] = [];
  wheel.after(1_000, () => calls.push(clock.monotonicMs()));
  clock.stepWall(60_000);
  clock.advanceSync(2_000);
  assertEquals(calls, [startMs + 1_000]);
});

Deno.test("TimerWheel.after() can be cancelled", () => {
  const { clock, wheel } = setUp();
  wheel.cancel(wheel.after(10, () => assert(false)));
  clock.advanceSync(100);
  assertEquals(wheel.size, 0);
});

Deno.test("TimerWheel.hold() keeps the process alive until the last release()", () => {
  const { clock, wheel, startMs } = setUp();
  wheel.schedule(new Entry(clock), startMs + 10_000);
  assertEquals(clock.timersAlive, 0);
  wheel.ref();
  wheel.ref();
  assertEquals(clock.timersAlive, 1);
  clock.advanceSync(1_000);
  assertEquals(clock.timersAlive, 1);
  wheel.unref();
  assertEquals(clock.timersAlive, 1);
  wheel.unref();
  assertEquals(clock.timersAlive, 0);
});

Deno.test("TimerWheel.hold() keeps the process alive while nothing is scheduled", () => {
  const { clock, wheel } = setUp();
  wheel.ref();
  clock.advanceSync(1_000);
  assertEquals(clock.timersAlive, 1);
  wheel.unref();
  assertEquals(clock.timersAlive, 0);
  clock.advanceSync(1_000);
  assertEquals(clock.timers, 0);
});

Deno.test("TimerWheel.close() leaves no entry and no timer", () => {
  const { clock, wheel, startMs } = setUp();
  const entries = [1, 100, 10_000].map((delayMs) => {
    const entry = new Entry(clock);
    wheel.schedule(entry, startMs + delayMs);
    return entry;
  });
  wheel.close();
  wheel.close();
  assertEquals([wheel.size, clock.timers], [0, 0]);
  clock.advanceSync(20_000);
  assertEquals(entries.map(({ calls, scheduled }) => [calls.length, scheduled]), [
    [0, false],
    [0, false],
    [0, false],
  ]);
});

Deno.test("TimerWheel.close() in a wake-up spares what else was due", () => {
  const { clock, wheel, startMs } = setUp();
  const entries = [new Entry(clock), new Entry(clock)];
  for (const entry of entries) {
    entry.then = () => wheel.close();
    wheel.schedule(entry, startMs + 10);
  }
  clock.advanceSync(10);
  assertEquals(entries.reduce((total, { calls }) => total + calls.length, 0), 1);
  assertEquals(clock.timers, 0);
});

Deno.test("TimerWheel.hold() after close() sets no timer", () => {
  const { clock, wheel } = setUp();
  wheel.close();
  wheel.ref();
  wheel.unref();
  assertEquals(clock.timers, 0);
});

Deno.test("TimerWheel.announceClose() tells every entry once, and says whether there was one", () => {
  const { clock, wheel, startMs } = setUp();
  assertEquals(wheel.announceClose(), false);
  const entries = [new Entry(clock), new Entry(clock)];
  wheel.schedule(entries[0], startMs + 10);
  wheel.schedule(entries[1], startMs + 10_000);
  assertEquals(wheel.announceClose(), true);
  assertEquals(entries.map(({ closed }) => closed), [1, 1]);
});

Deno.test("TimerWheel behaves like a sorted list under any sequence of calls", () => {
  const delay = fc.oneof(
    fc.nat(40),
    fc.nat(3_000),
    fc.nat(100_000),
    fc.integer({ min: -500, max: 0 }),
  );
  const index = fc.nat(9);
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant("schedule" as const), index, ms: delay }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("cancel" as const), index, ms: delay }) },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant("advance" as const),
        index,
        ms: fc.oneof(fc.nat(20), fc.nat(5_000)),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant("block" as const), index, ms: fc.nat(5_000) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant("step back" as const), index, ms: fc.nat(5_000) }),
    },
  );
  fc.assert(
    fc.property(fc.nat(100_000), fc.array(step, { maxLength: 60 }), (nowMs, steps) => {
      const { clock, wheel } = setUp(nowMs);
      const called: { id: number; atMs: number }[] = [];
      const entries = Array.from({ length: 10 }, (_, id) => {
        const entry = new Entry(clock);
        entry.then = () => called.push({ id, atMs: clock.monotonicMs() });
        return entry;
      });
      const model = new Map<number, number>();
      for (const { do: action, index, ms } of steps) {
        if (action === "schedule") {
          wheel.schedule(entries[index], clock.monotonicMs() + ms);
          model.set(index, clock.monotonicMs() + ms);
        } else if (action === "cancel") {
          wheel.cancel(entries[index]);
          model.delete(index);
        } else if (action === "block") {
          clock.block(ms);
        } else if (action === "step back") {
          clock.stepWall(-ms);
        } else {
          const beforeMs = clock.monotonicMs();
          called.length = 0;
          clock.advanceSync(ms);
          const due = [...model].filter(([, dueMs]) => dueMs <= clock.monotonicMs())
            .map(([id, dueMs]) => ({ id, atMs: Math.max(dueMs, beforeMs) }));
          const byTime = (a: typeof due[0], b: typeof due[0]) => a.atMs - b.atMs || a.id - b.id;
          assertEquals(called.toSorted(byTime), due.sort(byTime));
          const times = called.map(({ atMs }) => atMs);
          assertEquals(times, times.toSorted((a, b) => a - b));
          for (const { id } of due) model.delete(id);
        }
        assertEquals(wheel.size, model.size);
        assertEquals(
          entries.map(({ scheduled }) => scheduled),
          entries.map((_, id) => model.has(id)),
        );
      }
      wheel.close();
      assertEquals(clock.timers, 0);
    }),
    { seed: SEED, numRuns: 300 },
  );
});
