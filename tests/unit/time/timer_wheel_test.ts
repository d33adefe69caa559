import { assert, assertEquals, assertGreaterOrEqual, assertLess } from "@std/assert";
import fc from "fast-check";
import { TimerEntry, TimerWheel } from "../../../src/time/timer_wheel.ts";
import { FakeClock } from "../../support/fake_clock.ts";

const SEED = 86_400;
const ENTRIES = 8;

/** What is done to a wheel, from outside or by an entry that is called. */
type Action =
  | { do: "schedule"; index: number; ms: number }
  | { do: "cancel"; index: number }
  | { do: "ref" | "unref" | "announce" | "close" | "throw" };

/** What is done to the clocks. */
type Passing = { do: "advance" | "block" | "step back"; ms: number };

/** A wheel whose entries do what they were given to do, and a model of what waits. */
class Bench {
  readonly clock: FakeClock;
  readonly wheel: TimerWheel;
  readonly #entries: BenchEntry[];
  readonly #scripts: Action[][];
  /** When each entry that waits is due. */
  readonly waiting = new Map<number, number>();
  /** The entries that were called since {@linkcode pass}, and when. */
  readonly called: { index: number; atMs: number }[] = [];
  refs = 0;
  /** Whether the wheel is being closed: then an entry is out before its `onClosed`. */
  #closing = false;
  /** How deep calls are nested: an entry that is called by an action of another. */
  #depth = 0;

  constructor(nowMs: number | undefined, scripts: readonly Action[][]) {
    this.clock = new FakeClock(nowMs);
    this.wheel = new TimerWheel(this.clock);
    this.#scripts = [...scripts];
    this.#entries = Array.from({ length: ENTRIES }, (_, index) => new BenchEntry(this, index));
  }

  onCalled(index: number): void {
    const atMs = this.clock.monotonicMs();
    assertGreaterOrEqual(atMs, this.waiting.get(index) ?? Infinity);
    this.waiting.delete(index);
    this.called.push({ index, atMs });
    this.run(this.#scripts.shift() ?? []);
  }

  onClosed(index: number): void {
    assert(this.waiting.has(index), "onClosed() of an entry that does not wait");
    if (this.#closing) this.waiting.delete(index);
    if (this.#depth < 3) this.run(this.#scripts.shift() ?? []);
  }

  /** Does `actions`, and compares the wheel with the model. */
  run(actions: readonly Action[]): void {
    this.#depth++;
    try {
      for (const action of actions) this.#do(action);
    } finally {
      this.#depth--;
    }
    this.compare();
  }

  compare(): void {
    assertEquals(this.wheel.size, this.waiting.size);
    const scheduled = this.#entries.map(({ scheduled }) => scheduled);
    assertEquals(scheduled, this.#entries.map((_, index) => this.waiting.has(index)));
  }

  pass({ do: what, ms }: Passing): void {
    this.called.length = 0;
    if (what === "advance") this.clock.advanceSync(ms);
    else if (what === "block") this.clock.block(ms);
    else this.clock.stepWall(-ms);
  }

  #do(action: Action): void {
    const { wheel, clock } = this;
    switch (action.do) {
      case "schedule":
        this.waiting.set(action.index, clock.monotonicMs() + action.ms);
        return wheel.schedule(
          this.#entries[action.index],
          clock.monotonicMs() + action.ms,
          action.index % 4 === 1,
        );
      case "cancel":
        this.waiting.delete(action.index);
        return wheel.cancel(this.#entries[action.index]);
      case "ref":
        this.refs++;
        return wheel.ref();
      case "unref":
        if (this.refs > 0) wheel.unref();
        this.refs = Math.max(this.refs - 1, 0);
        return;
      case "announce":
        return this.#close(false, () => wheel.announceClose());
      case "close":
        return this.#close(true, () => wheel.close());
      case "throw":
        throw new Error("thrown on purpose");
    }
  }

  #close(closing: boolean, act: () => void): void {
    const before = this.#closing;
    this.#closing = closing;
    try {
      act();
    } finally {
      this.#closing = before;
    }
  }
}

class BenchEntry extends TimerEntry {
  readonly #bench: Bench;
  readonly #index: number;

  constructor(bench: Bench, index: number) {
    super();
    this.#bench = bench;
    this.#index = index;
  }

  override onDue(): void {
    this.#bench.onCalled(this.#index);
  }

  override onClosed(): void {
    this.#bench.onClosed(this.#index);
  }
}

const constants = <Word extends string>(...words: Word[]) =>
  fc.constantFrom(...words).map((word) => ({ do: word }));
const ms = fc.oneof(fc.nat(40), fc.nat(3_000), fc.nat(100_000), fc.integer({ min: -500, max: 0 }));
const index = fc.nat(ENTRIES - 1);
const ordinary: fc.Arbitrary<Action> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("schedule" as const), index, ms }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("cancel" as const), index }) },
);
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 9, arbitrary: ordinary },
  { weight: 3, arbitrary: constants("ref", "unref", "announce", "throw") },
  { weight: 1, arbitrary: constants("close") },
);
const passing: fc.Arbitrary<Passing> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("advance" as const), ms: fc.nat(5_000) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom("block" as const, "step back" as const),
      ms: fc.nat(5_000),
    }),
  },
);

Deno.test("TimerWheel calls each entry once at its time, and in order, whatever is scheduled, moved and cancelled", () => {
  fc.assert(
    fc.property(
      fc.nat(100_000),
      fc.array(fc.oneof(ordinary, passing), { maxLength: 60, size: "max" }),
      (nowMs, steps) => {
        const bench = new Bench(nowMs, []);
        for (const step of steps) {
          if (step.do !== "advance") {
            if ("index" in step) bench.run([step]);
            else bench.pass(step as Passing);
            continue;
          }
          const beforeMs = bench.clock.monotonicMs();
          const endMs = beforeMs + step.ms;
          const due = [...bench.waiting].filter(([, dueMs]) => dueMs <= endMs)
            .map(([index, dueMs]) => ({ index, atMs: Math.max(dueMs, beforeMs) }));
          bench.pass(step as Passing);
          const times = bench.called.map(({ atMs }) => atMs);
          assertEquals(times, times.toSorted((a, b) => a - b));
          const byTime = (a: typeof due[0], b: typeof due[0]) =>
            a.atMs - b.atMs || a.index - b.index;
          assertEquals(bench.called.toSorted(byTime), due.sort(byTime));
          bench.compare();
        }
        bench.run([{ do: "close" }]);
        assertEquals(bench.clock.timers, 0);
      },
    ),
    { seed: SEED, numRuns: 300 },
  );
});

/** Calls `act`, and again as often as it throws on purpose; any other error is the test's. */
function insist(act: () => void): void {
  for (let tries = 0; tries < 100; tries++) {
    try {
      return act();
    } catch (error) {
      if ((error as Error).message !== "thrown on purpose") throw error;
    }
  }
}

Deno.test("TimerWheel calls what waits whatever is done from inside a call, and nothing else", () => {
  const script = fc.array(action, { maxLength: 4 });
  fc.assert(
    fc.property(script, fc.array(script, { maxLength: 12, size: "max" }), (first, scripts) => {
      const bench = new Bench(undefined, scripts);
      insist(() => bench.run(first.filter((action) => action.do !== "throw")));
      insist(() => bench.clock.advanceSync(1_400_000)); // longer than one script after another
      // An exception left nothing behind: whatever waits is called.
      assertEquals([[...bench.waiting], bench.wheel.size], [[], 0]);
      while (bench.refs-- > 0) bench.wheel.unref();
      insist(() => bench.clock.advanceSync(1_000));
      assertEquals(bench.clock.timers, 0);
    }),
    { seed: SEED, numRuns: 2_000 },
  );
});

/** A wheel, and a function that notes when it calls back. */
function setUp(nowMs?: number) {
  const clock = new FakeClock(nowMs);
  const wheel = new TimerWheel(clock);
  const startMs = clock.monotonicMs();
  const calls: number[] = [];
  const after = (delayMs: number) => {
    return wheel.after(delayMs, () => calls.push(clock.monotonicMs() - startMs));
  };
  return { clock, wheel, calls, after };
}

Deno.test("TimerWheel knows until when the process was stopped, before and after its wake-up, and calls no short stall so", async () => {
  const clock = new FakeClock();
  const wheel = new TimerWheel(clock);
  const nowMs = () => clock.monotonicMs();
  wheel.after(60_000, () => {});
  await clock.advance(10_000);
  clock.block(900);
  await clock.advance(1);
  assertEquals(wheel.stoppedUntilMs(nowMs()), -Infinity);
  clock.block(1_300);
  const untilMs = nowMs();
  assertEquals(wheel.stoppedUntilMs(untilMs), untilMs); // its timer was not called yet
  await clock.advance(500);
  assertLess(wheel.stoppedUntilMs(nowMs()) - untilMs, 100);
  clock.stepWall(5_000); // a machine that slept
  await clock.advance(500);
  assertLess(nowMs() - wheel.stoppedUntilMs(nowMs()), 501);
  await clock.advance(2_000); // no step is taken for one more
  assertLess(2_000, nowMs() - wheel.stoppedUntilMs(nowMs()));
  wheel.close();
});

Deno.test("TimerWheel counts of a delay what has passed since the time that it is asked for", async () => {
  const { clock, wheel } = setUp();
  wheel.after(60_000, () => {});
  clock.block(3_000);
  const sinceMs = wheel.continuous.nowMs();
  clock.block(1_000);
  assertEquals(wheel.delayedSince(sinceMs).stoodMs, 1_000);
  await clock.advance(0);
  assertEquals(wheel.delayedSince(sinceMs).stoodMs, 1_000);
});

Deno.test("TimerWheel counts a delay by a call of its own, for as long as another is late by it", async () => {
  const { clock, wheel } = setUp();
  wheel.after(10, () => clock.block(3_000));
  wheel.after(110, () => {});
  await clock.advance(10);
  assertEquals(wheel.delayedSince(0).stoodMs, 2_900);
});

Deno.test("TimerWheel sets one timer for any number of entries, for at most 250 ms, and none while nothing waits", () => {
  const { clock, after } = setUp();
  for (let index = 0; index < 1_000; index++) after(index * 3);
  assertEquals(clock.timers, 1);
  clock.advanceSync(2_500);
  assertEquals(clock.timers, 1);
  clock.advanceSync(1_000);
  assertEquals(clock.timers, 0);
  after(3_000);
  clock.advanceSync(2_999);
  assert(clock.delaysMs.every((delayMs) => delayMs <= 250));
});

// Clocks

Deno.test("TimerWheel keeps a timer that is due, whatever was due earlier: another would be later", () => {
  const { clock, after } = setUp();
  after(10);
  clock.block(15);
  after(-10);
  assertEquals(clock.delaysMs, [10]);
});

Deno.test("TimerWheel calls entries that are due at one time in the order in which they were scheduled", async () => {
  const clock = new FakeClock();
  const wheel = new TimerWheel(clock);
  const called: string[] = [];
  for (const name of ["a", "b", "c"]) wheel.after(10, () => called.push(name));
  for (const name of ["d", "e", "f"]) wheel.deadline(10, () => called.push(name));
  await clock.advance(20);
  assertEquals(called.join(), "a,b,c,d,e,f");
});

Deno.test("TimerWheel calls a deadline after a busy event loop could read its sockets", () => {
  const { clock, wheel } = setUp();
  const order: string[] = [];
  const answered = wheel.deadline(50, () => order.push("no answer"));
  wheel.deadline(50, () => order.push("deadline"));
  wheel.after(50, () => order.push("entry"));
  clock.block(150);
  clock.setTimer(() => {
    order.push("sockets");
    wheel.cancel(answered);
  }, 0);
  clock.advanceSync(0);
  assertEquals(order, ["entry", "sockets", "deadline"]);
});

Deno.test("TimerWheel calls entries in time after the monotonic clock ran backwards, as when fake timers begin or end", () => {
  for (const backMs of [1_000, 90_000, 90_777]) {
    const { clock, wheel } = setUp();
    wheel.after(100_000, () => {});
    clock.advanceSync(100_000);
    clock.block(-backMs);
    const startMs = clock.monotonicMs();
    const called: number[] = [];
    for (const delayMs of [40, 700]) {
      wheel.after(delayMs, () => called.push(clock.monotonicMs() - startMs));
    }
    clock.advanceSync(3_000);
    assertEquals(called, [40, 700]);
  }
});

Deno.test("TimerWheel sets another timer once a test has ended its fake timers, which never fire, and keeps one", async () => {
  const { setTimeout, clearTimeout } = globalThis;
  const wheel = new TimerWheel();
  const waiting = new Set<unknown>();
  const counted = (callback: () => void, ms: number) => {
    const timer = setTimeout(() => waiting.delete(timer) && callback(), ms);
    waiting.add(timer);
    return timer;
  };
  globalThis.clearTimeout = (timer) => waiting.delete(timer) && clearTimeout(timer);
  const use = (setTimer: unknown) => Object.assign(globalThis, { setTimeout: setTimer });
  wheel.ref();
  try {
    use(counted);
    wheel.after(60_000, () => {}); // set a microtask later: by the fake timers that begin meanwhile
    use(() => 0);
    await Promise.resolve();
    use(counted);
    await new Promise<void>((resolve) => wheel.after(300, resolve));
    for (const setTimer of [() => 0, counted, () => 0, counted]) {
      use(setTimer);
      wheel.after(60_000, () => {});
      await Promise.resolve();
    }
    await new Promise<void>((resolve) => wheel.after(600, resolve)); // each of before has fired
    await Promise.resolve();
    assertEquals(waiting.size, 1);
    wheel.close();
    assertEquals(waiting.size, 0);
  } finally {
    Object.assign(globalThis, { setTimeout, clearTimeout });
  }
});

// Keeping the process alive, and closing

Deno.test("TimerWheel.ref() keeps the process alive until the last unref(), also while nothing is scheduled", () => {
  const { clock, wheel, after } = setUp();
  after(1_500);
  assertEquals(clock.timersAlive, 0);
  wheel.ref();
  wheel.ref();
  for (let second = 0; second < 3; second++) {
    assertEquals(clock.timersAlive, 1);
    clock.advanceSync(1_000);
  }
  wheel.unref();
  assertEquals(clock.timersAlive, 1);
  wheel.unref();
  assertEquals(clock.timersAlive, 0);
  clock.advanceSync(1_000);
  assertEquals(clock.timers, 0);
});

Deno.test("TimerWheel.ref() after close() sets no timer", () => {
  const { clock, wheel } = setUp();
  wheel.close();
  wheel.close();
  wheel.ref();
  wheel.unref();
  assertEquals(clock.timers, 0);
});
