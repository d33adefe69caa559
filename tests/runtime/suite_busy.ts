/**
 * What a busy event loop does to locks and replies: the part of the suite in which JavaScript holds
 * up everything else, or many sockets read at once.
 */

import type { Context, Library, Register } from "./context.ts";
import { expect, expectSame, rejectionOf } from "./expect.ts";

/** Registers these cases. */
export function registerBusy(
  test: Register,
  { main, redis }: Library,
  { urls }: Context,
  resource: (name: string) => string,
): void {
  test("replies that came while the event loop was busy count", async () => {
    await using redlock = main.createRedlock(urls, { ttlMs: 10_000, nodeTimeoutMs: 100 });
    const warmUp = { nodeTimeoutMs: 5_000 }; // the machine may be busy with something else
    await redlock.tryAcquire(resource("warm-up"), warmUp).then((lock) => lock?.release());
    for (let round = 0; round < 5; round++) {
      const lock = await whileBusy(redlock.tryAcquire(resource(`busy-${round}`)));
      expect(lock, `acquiring ${round} found no quorum`);
      await whileBusy(lock.extend());
      expectSame(lock.extensions, 1, "extensions");
      expectSame(await whileBusy(lock.release()), true, `release ${round}`);
    }
  });

  test("replies that come to many connections in many pieces do not mix", async () => {
    const texts = ["a", "b", "c", "d"].map((letter) => letter.repeat(300_000));
    await Promise.all(texts.map(async (text, index) => {
      await using client = await redis.connect(urls[index % urls.length]!);
      const key = resource(`pieces-${index}`);
      await client.send(["SET", key, text, "PX", 60_000]);
      const replies = await Promise.all(
        Array.from({ length: 8 }, () => client.send(["GET", key])),
      );
      for (const reply of replies) expect(reply === text, `connection ${index} got other bytes`);
    }));
  });

  test("lock.signal is aborted after a stall before any timer ran", async () => {
    await using redlock = main.createRedlock(urls, { ttlMs: 200 });
    const { signal } = await redlock.acquire(resource("stalled"));
    expectSame(signal.aborted, false, "aborted before the stall");
    if (!block(300)) return; // in workerd the clocks stand still meanwhile
    expectSame(signal.aborted, true, "aborted after the stall");
    expect(signal.reason instanceof main.LockLostError, `the reason is ${signal.reason}`);
    expect(signal instanceof AbortSignal, "it is no AbortSignal any more");
    let thrown: unknown;
    try {
      signal.throwIfAborted();
    } catch (error) {
      thrown = error;
    }
    expectSame(thrown, signal.reason, "what throwIfAborted() throws");
    expect(AbortSignal.any([signal]).aborted, "a signal made of it is not aborted");
    const fetching = fetch(urls[0]!.replace("redis:", "http:"), { signal });
    expectSame(await rejectionOf(fetching), signal.reason, "the rejection of fetch()");
  });
}

/** Blocks the event loop for 300 ms once what `call` sends has left. */
async function whileBusy<T>(call: Promise<T>): Promise<T> {
  for (let turn = 0; turn < 5; turn++) await null;
  block(300);
  return await call;
}

/** Blocks the event loop; returns whether the clock went on, which it does not in workerd. */
function block(ms: number): boolean {
  const endMs = performance.now() + ms;
  for (let count = 0; performance.now() < endMs && count < 20_000_000; count++);
  return performance.now() >= endMs;
}
