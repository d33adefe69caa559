import { assert, assertEquals, assertGreater, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { createRedlock, LockHeldError } from "../../../mod.ts";
import { MemoryRedis, startFakeClock } from "../../../src/testing/mod.ts";
import { TimerWheel } from "../../../src/time/timer_wheel.ts";
import { FakeClock } from "../../support/fake_clock.ts";

/**
 * A fake clock takes a wake-up that reads the monotonic clock more often for one that may have sent
 * something.
 */
const IDLE_READS = 2;

/** Counts how often the monotonic clock is read. */
class CountingClock extends FakeClock {
  reads = 0;

  override monotonicMs(): number {
    this.reads++;
    return super.monotonicMs();
  }

  /** Fires the next timer; returns how often it read the clock. */
  readsOfNext(): number {
    const { reads } = this;
    assert(this.fireNext(Infinity));
    return this.reads - reads;
  }
}

Deno.test("TimerWheel reads the clock twice to wake up idle, and more often if a deadline is set", () => {
  const clock = new CountingClock();
  const wheel = new TimerWheel(clock);
  const dueMs = clock.nowMs + 10_000;
  wheel.after(10_000, () => void wheel.deadline(500, () => {}));
  let wakes = 0;
  for (let reads = 0; reads <= IDLE_READS; wakes++) reads = clock.readsOfNext();
  assertEquals(clock.nowMs, dueMs);
  assertGreater(wakes, 30);
  wheel.close();
});

Deno.test("FakeClock.tickUntil() waits for code that waits for real time, and moves on behind it", async () => {
  const server = new MemoryRedis();
  const realTime = () => new Promise((resolve) => setTimeout(resolve, 5));
  await using redlock = createRedlock(["redis://a"], { connect: server.connect });
  using clock = startFakeClock();
  await clock.tick(0); // so that the real clock is waited for, and not a module
  const work = async () => {
    await realTime();
    await using lock = await redlock.acquire("a", { autoExtend: true });
    await realTime();
    const waiting = redlock.acquire("a", { waitMs: 600_000 });
    return [lock.held, (await assertRejects(() => waiting, LockHeldError)).code];
  };
  assertEquals(await clock.tickUntil(work()), [true, "LOCK_HELD"]);
});

Deno.test("startFakeClock() and FakeTime move their own time only", async () => {
  using time = new FakeTime();
  const server = new MemoryRedis();
  const options = { connect: server.connect, ttlMs: 60_000, onEvent: () => {} };
  await using redlock = createRedlock(["redis://a"], options);
  using clock = startFakeClock();
  const lock = await redlock.acquire("a");
  let fired = false;
  setTimeout(() => fired = true, 50_000);
  time.tick(55_000);
  await clock.tick(0);
  assertEquals([fired, lock.held], [true, true]);
  const nowMs = Date.now();
  await clock.tick(60_000);
  assertEquals([lock.held, lock.signal.aborted, Date.now()], [false, true, nowMs]);
});
