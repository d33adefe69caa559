import { assert, assertEquals, assertGreaterOrEqual, assertThrows } from "@std/assert";
import fc from "fast-check";
import { TimerEntry, TimerWheel } from "../../../src/time/timer_wheel.ts";
import { FakeClock } from "../../support/fake_clock.ts";

const SEED = 31_536;

function setUp(): { clock: FakeClock; wheel: TimerWheel } {
  const clock = new FakeClock();
  return { clock, wheel: new TimerWheel(clock) };
}

Deno.test("TimerWheel.announceClose() in a wake-up calls what else was due in it", () => {
  const { clock, wheel } = setUp();
  const closed: string[] = [];
  wheel.after(10, () => wheel.announceClose(), () => closed.push("first"));
  wheel.after(10, () => {}, () => closed.push("second"));
  wheel.after(10, () => {}, () => closed.push("third"));
  clock.advanceSync(10);
  assertEquals(closed.sort(), ["second", "third"]);
});

Deno.test("TimerWheel.close() in a wake-up calls onClosed of what else was due in it, once", () => {
  const { clock, wheel } = setUp();
  const closed: string[] = [];
  wheel.after(10, () => wheel.close(), () => closed.push("first"));
  wheel.after(10, () => {}, () => closed.push("second"));
  wheel.after(20, () => {}, () => closed.push("third"));
  clock.advanceSync(1_000);
  assertEquals(closed.sort(), ["second", "third"]);
  assertEquals([wheel.size, clock.timers], [0, 0]);
});

Deno.test("TimerWheel calls the others although one entry throws", () => {
  const { clock, wheel } = setUp();
  const called: string[] = [];
  wheel.after(10, () => called.push("first"));
  wheel.after(10, () => {
    throw new Error("an entry's own");
  });
  wheel.after(10, () => called.push("third"));
  wheel.after(500, () => called.push("later"));
  assertThrows(() => clock.advanceSync(10), Error, "an entry's own");
  clock.advanceSync(1_000);
  assertEquals(called, ["first", "third", "later"]);
  assertEquals(clock.timers, 0);
});

Deno.test("TimerWheel.schedule() after a wake-up that threw is not forgotten", () => {
  const { clock, wheel } = setUp();
  wheel.after(10, () => {
    throw new Error("an entry's own");
  });
  assertThrows(() => clock.advanceSync(10), Error, "an entry's own");
  let called = false;
  wheel.after(10, () => called = true);
  clock.advanceSync(10);
  assert(called);
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

Deno.test("TimerWheel calls a deadline in time while others keep coming", () => {
  const { clock, wheel } = setUp();
  const called: number[] = [];
  for (let delayMs = 1; delayMs <= 100; delayMs++) {
    wheel.deadline(delayMs, () => called.push(clock.monotonicMs()));
  }
  const startMs = clock.monotonicMs();
  clock.advanceSync(100);
  assertEquals(called, Array.from({ length: 100 }, (_, index) => startMs + index + 1));
});

Deno.test("TimerWheel.deadline() is cancelled and told of closing while it waits for the sockets", () => {
  const { clock, wheel } = setUp();
  const told: string[] = [];
  const cancelled = wheel.deadline(10, () => told.push("called"), () => told.push("closed"));
  wheel.deadline(10, () => told.push("called"), () => told.push("closed"));
  wheel.after(10, () => {
    clock.setTimer(() => {
      wheel.cancel(cancelled);
      wheel.close();
    }, 0);
  });
  clock.advanceSync(1_000);
  assertEquals(told, ["closed"]);
});

/** What an entry does when it is called. */
type Action =
  | { do: "schedule"; index: number; ms: number }
  | { do: "cancel"; index: number }
  | { do: "ref" | "unref" | "announce" | "close" | "throw" };

const ENTRIES = 6;
const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("schedule" as const),
      index: fc.nat(ENTRIES - 1),
      ms: fc.oneof(fc.integer({ min: -20, max: 20 }), fc.nat(3_000)),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("cancel" as const), index: fc.nat(ENTRIES - 1) }),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      { do: "ref" as const },
      { do: "unref" as const },
      { do: "announce" as const },
      { do: "throw" as const },
    ),
  },
  { weight: 1, arbitrary: fc.constant({ do: "close" as const }) },
);
const script = fc.array(action, { maxLength: 4 });

/** A wheel whose entries do what they were given to do, beside a model of what waits. */
class Bench {
  readonly clock = new FakeClock();
  readonly wheel = new TimerWheel(this.clock);
  readonly waiting = new Map<number, number>();
  readonly #entries: TimerEntry[];
  readonly #scripts: Action[][];
  refs = 0;
  /** How deep calls are nested: an entry that is called by an action of another. */
  #depth = 0;

  constructor(scripts: readonly Action[][]) {
    this.#scripts = [...scripts];
    this.#entries = Array.from({ length: ENTRIES }, (_, index) => new BenchEntry(this, index));
  }

  onCalled(index: number): void {
    assertGreaterOrEqual(this.clock.monotonicMs(), this.waiting.get(index) ?? Infinity);
    this.waiting.delete(index);
    this.run(this.#scripts.shift() ?? []);
  }

  onClosed(index: number, closing: boolean): void {
    assert(this.waiting.has(index), "an entry that does not wait was told of closing");
    if (closing) this.waiting.delete(index);
    if (this.#depth < 3) this.run(this.#scripts.shift() ?? []);
  }

  /** Whether the wheel is being closed: then an entry is out before its `onClosed`. */
  closing = false;

  run(actions: readonly Action[]): void {
    this.#depth++;
    try {
      for (const action of actions) this.#do(action);
    } finally {
      this.#depth--;
    }
    assertEquals(this.wheel.size, this.waiting.size);
    for (const [index, entry] of this.#entries.entries()) {
      assertEquals(entry.scheduled, this.waiting.has(index));
    }
  }

  #do(action: Action): void {
    const { wheel, clock } = this;
    switch (action.do) {
      case "schedule":
        this.waiting.set(action.index, clock.monotonicMs() + action.ms);
        return wheel.schedule(this.#entries[action.index], clock.monotonicMs() + action.ms);
      case "cancel":
        this.waiting.delete(action.index);
        return wheel.cancel(this.#entries[action.index]);
      case "ref":
        this.refs++;
        return wheel.ref();
      case "unref":
        if (this.refs === 0) return;
        this.refs--;
        return wheel.unref();
      case "announce":
        return this.#closed(false, () => wheel.announceClose());
      case "close":
        return this.#closed(true, () => wheel.close());
      case "throw":
        throw new Error("thrown on purpose");
    }
  }

  #closed(closing: boolean, act: () => void): void {
    const before = this.closing;
    this.closing = closing;
    try {
      act();
    } finally {
      this.closing = before;
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

  override get isDeadline(): boolean {
    return this.#index % 2 === 1;
  }

  override onDue(): void {
    this.#bench.onCalled(this.#index);
  }

  override onClosed(): boolean {
    this.#bench.onClosed(this.#index, this.#bench.closing);
    return true;
  }
}

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
  fc.assert(
    fc.property(script, fc.array(script, { maxLength: 12 }), (first, scripts) => {
      const bench = new Bench(scripts);
      insist(() => bench.run(first.filter((action) => action.do !== "throw")));
      insist(() => bench.clock.advanceSync(100_000));
      // An exception left nothing behind: whatever waits is called.
      assertEquals([...bench.waiting], []);
      assertEquals(bench.wheel.size, 0);
      while (bench.refs-- > 0) bench.wheel.unref();
      insist(() => bench.clock.advanceSync(1_000));
      assertEquals(bench.clock.timers, 0);
    }),
    { seed: SEED, numRuns: 2_000 },
  );
});
