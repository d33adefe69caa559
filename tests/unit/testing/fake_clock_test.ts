import { assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { createRedlock, LockHeldError } from "../../../mod.ts";
import { MemoryRedis, startFakeClock } from "../../../src/testing/mod.ts";

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
