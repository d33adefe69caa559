import { assert, assertEquals } from "@std/assert";
import { resolveOptions } from "../../../src/options.ts";
import { TimerWheel } from "../../../src/time/timer_wheel.ts";
import { pause } from "../../../src/time/pause.ts";
import { PollingWaiter } from "../../../src/waiting/polling.ts";
import { FakeClock, runMicrotasks } from "../../support/fake_clock.ts";
import { countListeners } from "../../support/fake_nodes.ts";

/** Waits on faked time. */
class Bench {
  readonly clock = new FakeClock();
  readonly wheel: TimerWheel;
  /** How many fractions were drawn. */
  drawn = 0;
  fraction = 0.5;

  constructor() {
    const fraction = () => {
      this.drawn++;
      return this.fraction;
    };
    this.wheel = new TimerWheel(this.clock, { value: () => "value", fraction });
  }

  waiter(retryDelayMs: number, retryDelayMaxMs: number): PollingWaiter {
    return new PollingWaiter(
      this.wheel,
      resolveOptions("test", { retryDelayMs, retryDelayMaxMs }),
    );
  }

  /** How long `wait` takes, in whole milliseconds. */
  async durationMs(wait: Promise<void>): Promise<number> {
    const over = watch(wait);
    const startMs = this.clock.monotonicMs();
    await this.clock.advance(0);
    await runMicrotasks();
    while (!over()) {
      assert(this.clock.monotonicMs() - startMs < 60_000);
      await this.clock.advance(1);
      await runMicrotasks();
    }
    return this.clock.monotonicMs() - startMs;
  }
}

/** Says whether `promise` has resolved. */
function watch(promise: Promise<void>): () => boolean {
  let resolved = false;
  promise.then(() => resolved = true);
  return () => resolved;
}

// pause

for (const delayMs of [0, 1, 7, 249, 250, 251, 5_000]) {
  Deno.test(`pause() of ${delayMs} ms resolves then and no sooner, and leaves nothing`, async () => {
    const bench = new Bench();
    assertEquals(await bench.durationMs(pause(bench.wheel, delayMs, undefined)), delayMs);
    assertEquals([bench.wheel.size, bench.clock.timersAlive], [0, 0]);
    bench.wheel.close();
    assertEquals(bench.clock.timers, 0);
  });
}

Deno.test("pause() keeps the process alive", () => {
  const bench = new Bench();
  pause(bench.wheel, 1_000, undefined);
  assertEquals([bench.wheel.size, bench.clock.timersAlive], [1, 1]);
});

Deno.test("pause() with a signal that was aborted before resolves at once, and waits nowhere", async () => {
  const bench = new Bench();
  const signal = AbortSignal.abort();
  const listeners = countListeners(signal);
  await pause(bench.wheel, 1_000, signal);
  assertEquals([bench.wheel.size, bench.clock.timers, listeners()], [0, 0, 0]);
});

Deno.test("pause() resolves when its signal aborts, and leaves no timer and no listener", async () => {
  const bench = new Bench();
  const controller = new AbortController();
  const listeners = countListeners(controller.signal);
  const over = watch(pause(bench.wheel, 1_000, controller.signal));
  await bench.clock.advance(100);
  assertEquals([over(), listeners()], [false, 1]);
  controller.abort();
  await runMicrotasks();
  assertEquals([over(), listeners()], [true, 0]);
  assertEquals([bench.wheel.size, bench.clock.timersAlive], [0, 0]);
});

Deno.test("pause() that is over leaves no listener, and a later abort changes nothing", async () => {
  const bench = new Bench();
  const controller = new AbortController();
  const listeners = countListeners(controller.signal);
  await bench.durationMs(pause(bench.wheel, 10, controller.signal));
  assertEquals(listeners(), 0);
  const other = watch(pause(bench.wheel, 100, undefined));
  controller.abort();
  await runMicrotasks();
  assertEquals([other(), bench.clock.timersAlive], [false, 1]);
});

Deno.test("pause() resolves when the client closes, which it says it waited for", async () => {
  const bench = new Bench();
  const { signal } = new AbortController();
  const listeners = countListeners(signal);
  const over = watch(pause(bench.wheel, 1_000, signal));
  assertEquals(bench.wheel.announceClose(), true);
  await runMicrotasks();
  assertEquals([over(), listeners()], [true, 0]);
  assertEquals([bench.wheel.size, bench.clock.timersAlive], [0, 0]);
  bench.wheel.close();
  assertEquals(bench.clock.timers, 0);
});

Deno.test("pause() lets go of the process once, though its signal aborts while the client closes", async () => {
  const bench = new Bench();
  const controller = new AbortController();
  bench.wheel.ref(); // somebody else's
  const over = watch(pause(bench.wheel, 1_000, controller.signal));
  // Told of the close first, as it hangs in the same slot and came later.
  bench.wheel.after(1_000, () => {}, () => controller.abort());
  assertEquals(bench.wheel.announceClose(), true);
  await runMicrotasks();
  assertEquals([over(), bench.clock.timersAlive], [true, 1]);
  bench.wheel.unref();
  assertEquals(bench.clock.timersAlive, 0);
});

Deno.test("pause() is not cut short by a wall clock that steps ahead", async () => {
  const bench = new Bench();
  const over = watch(pause(bench.wheel, 1_000, undefined));
  await bench.clock.advance(100);
  bench.clock.stepWall(60_000);
  await bench.clock.advance(899);
  await runMicrotasks();
  assertEquals(over(), false);
  await bench.clock.advance(1);
  await runMicrotasks();
  assertEquals(over(), true);
});

// PollingWaiter

for (
  const [attempt, fraction, delayMs] of [
    [0, 0.5, 50],
    [1, 0.5, 100],
    [2, 0.5, 200],
    [3, 0.5, 400],
    [4, 0.5, 500],
    [5, 0.5, 500],
    [5_000, 0.5, 500],
    [0, 0, 0],
    [3, 0, 0],
    [0, 0.99, 99],
    [9, 0.99, 990],
  ] as const
) {
  Deno.test(`PollingWaiter.wait() after ${attempt} failures and ${fraction} drawn takes ${delayMs} ms`, async () => {
    const bench = new Bench();
    bench.fraction = fraction;
    const waiter = bench.waiter(100, 1_000);
    assertEquals(await bench.durationMs(waiter.wait(attempt, Infinity, undefined)), delayMs);
    assertEquals(bench.drawn, 1);
  });
}

Deno.test("PollingWaiter.wait() takes no longer than its limit", async () => {
  const bench = new Bench();
  const waiter = bench.waiter(1_000, 1_000);
  assertEquals(await bench.durationMs(waiter.wait(0, 20, undefined)), 20);
  assertEquals(await bench.durationMs(waiter.wait(0, 499, undefined)), 499);
  assertEquals(await bench.durationMs(waiter.wait(0, 501, undefined)), 500);
});

Deno.test("PollingWaiter.wait() draws anew each time", async () => {
  const bench = new Bench();
  const waiter = bench.waiter(100, 100);
  const delaysMs = [];
  for (const fraction of [0.1, 0.9, 0.3]) {
    bench.fraction = fraction;
    delaysMs.push(await bench.durationMs(waiter.wait(0, Infinity, undefined)));
  }
  assertEquals(delaysMs, [10, 90, 30]);
});

Deno.test("PollingWaiter.wait() resolves when its signal aborts, before and during the wait", async () => {
  const bench = new Bench();
  const waiter = bench.waiter(1_000, 1_000);
  const controller = new AbortController();
  const over = watch(waiter.wait(0, Infinity, controller.signal));
  await bench.clock.advance(100);
  assertEquals(over(), false);
  controller.abort();
  await runMicrotasks();
  assertEquals(over(), true);
  assertEquals(await bench.durationMs(waiter.wait(0, Infinity, controller.signal)), 0);
});

Deno.test("PollingWaiter.wait() resolves when the client closes", async () => {
  const bench = new Bench();
  const over = watch(bench.waiter(1_000, 1_000).wait(0, Infinity, undefined));
  assertEquals(bench.wheel.announceClose(), true);
  await runMicrotasks();
  assertEquals([over(), bench.clock.timersAlive], [true, 0]);
});
