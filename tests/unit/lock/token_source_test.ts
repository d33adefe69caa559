import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertLessOrEqual,
  assertRejects,
  assertStrictEquals,
} from "@std/assert";
import { LockLostError, RedlockError } from "../../../src/errors.ts";
import type { Lock } from "../../../src/lock/lock.ts";
import type { RedlockOptions, TokenSource } from "../../../src/options.ts";
import type { Redlock } from "../../../src/redlock.ts";
import { Cluster, REASON } from "../../support/cluster.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";

/** What a call for "a" gives, whichever it is. */
type Seen = Pick<Lock, "fencingToken" | "held">;

/** Every way to get a lock. */
const CALLS: Record<string, (redlock: Redlock, options: RedlockOptions) => Promise<Seen>> = {
  "acquire()": (redlock, options) => redlock.acquire("a", options),
  "acquire() of one attempt": (redlock, options) => redlock.acquire("a", { ...options, waitMs: 0 }),
  "tryAcquire()": async (redlock, options) => (await redlock.tryAcquire("a", options))!,
  "using()": (redlock, options) =>
    redlock.using("a", options, ({ fencingToken, held }) => ({ fencingToken, held })),
};

const HANGS: TokenSource = () => new Promise(() => {});

async function assertFree(cluster: Cluster): Promise<void> {
  await runMicrotasks();
  assertEquals(cluster.holders(), Array(3).fill(undefined));
}

for (const [name, call] of Object.entries(CALLS)) {
  Deno.test(`${name} gives a token with fencing, of the call or the client, and none without`, async () => {
    const cluster = new Cluster();
    const fenced = cluster.peer({ fencing: true });
    const tokenOf = async (redlock: Redlock, options: RedlockOptions) => {
      for (const node of cluster.nodes) node.delete("a");
      return (await cluster.settle(call(redlock, options))).fencingToken;
    };
    const token = await tokenOf(cluster.redlock, { fencing: true });
    assert(Number.isSafeInteger(token));
    assertEquals(await tokenOf(cluster.peer(), {}), undefined);
    assertEquals(await tokenOf(fenced, {}), token! + 1);
    assertEquals(await tokenOf(fenced, { fencing: false }), undefined);
  });

  Deno.test(`${name} asks the tokenSource once the lock is won, with the resources and the lock's signal`, async () => {
    for (const token of [42, 0, -1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]) {
      const cluster = new Cluster();
      const asked: unknown[] = [];
      const tokenSource: TokenSource = (resources, signal) => {
        asked.push([resources, signal.aborted, cluster.holders().every(Boolean)]);
        return Promise.resolve(token);
      };
      const { fencingToken, held } = await cluster.settle(call(cluster.redlock, { tokenSource }));
      assertEquals([fencingToken, held, asked], [token, true, [[["a"], false, true]]]);
      assertEquals(cluster.nodes.map((node) => node.counter()), Array(3).fill(undefined));
    }
  });

  Deno.test(`${name} releases the lock if the tokenSource throws, rejects or draws no safe integer`, async () => {
    const cluster = new Cluster();
    const throws = () => {
      throw REASON;
    };
    for (const tokenSource of [throws, () => Promise.reject(REASON)]) {
      const error = await cluster.rejection(call(cluster.redlock, { tokenSource }));
      assertStrictEquals(error, REASON);
      await assertFree(cluster);
    }
    for (const token of [1.5, NaN, Infinity, 2 ** 53, "7", 7n, undefined, null]) {
      const tokenSource = () => token as number;
      const error = await cluster.rejection(call(cluster.redlock, { tokenSource }));
      assertInstanceOf(error, TypeError);
      assertEquals(
        error.message,
        `Cannot acquire lock as 'tokenSource' must return a safe integer: current value is ${token}`,
      );
      await assertFree(cluster);
    }
    assert((await cluster.settle(call(cluster.redlock, {}))).held); // nothing is in the way
  });

  Deno.test(`${name} gives no lock whose client closes while the tokenSource takes its time`, async () => {
    const cluster = new Cluster();
    const tokenSource: TokenSource = (_, signal) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    const rejected = assertRejects(() => call(cluster.redlock, { tokenSource }), RedlockError);
    await runMicrotasks();
    await cluster.close();
    assertEquals((await cluster.settle(rejected)).code, "CLOSED");
    await assertFree(cluster);
  });

  Deno.test(`${name} rejects at once when its signal is aborted while the tokenSource takes its time, or as it answers`, async () => {
    for (const hangs of [true, false]) {
      const cluster = new Cluster();
      const controller = new AbortController();
      const { signal } = controller;
      let given: AbortSignal | undefined;
      const tokenSource: TokenSource = (resources, lockSignal) => {
        given = lockSignal;
        if (hangs) return HANGS(resources, lockSignal);
        controller.abort(REASON);
        return Promise.resolve(7);
      };
      const calling = call(cluster.redlock, { tokenSource, signal });
      cluster.clock.setTimer(() => controller.abort(REASON), 50);
      const startMs = cluster.nowMs;
      assertStrictEquals(await cluster.rejection(calling), REASON);
      assertLessOrEqual(cluster.nowMs - startMs, hangs ? 51 : 0);
      assert(given?.aborted);
      await assertFree(cluster);
    }
  });
}

Deno.test("acquire() gives up a tokenSource that hangs when its wait is over, and extends nothing meanwhile", async () => {
  const cluster = new Cluster(3, { waitMs: 600, autoExtend: true });
  let lockSignal: AbortSignal | undefined;
  const tokenSource: TokenSource = (_, signal) => HANGS([], lockSignal = signal);
  const rejected = assertRejects(
    () => cluster.redlock.acquire("a", { tokenSource }),
    LockLostError,
  );
  await cluster.advance(599);
  assertEquals([lockSignal?.aborted, cluster.clock.timersAlive], [false, 1]);
  await cluster.advance(1);
  const error = await rejected;
  assertEquals(
    error.message,
    `Cannot keep lock "a": 'tokenSource' did not answer within 'waitMs'`,
  );
  assertStrictEquals(lockSignal?.reason, error);
  assertEquals(cluster.timers, [0, 0]);
  assertEquals(cluster.asked("extend"), [0, 0, 0]);
  await assertFree(cluster);
});

for (
  const [name, waitMs, tryIt] of [
    ["acquire() without a wait", 0, false],
    ["acquire() that waits for ever", Infinity, false],
    ["tryAcquire()", 300, true],
  ] as const
) {
  Deno.test(`${name} gives up a tokenSource that hangs when the validity is over`, async () => {
    const cluster = new Cluster(3, { waitMs, autoExtend: true, tokenSource: HANGS });
    const { redlock } = cluster;
    const startMs = cluster.nowMs;
    const error = await cluster.rejection(tryIt ? redlock.tryAcquire("a") : redlock.acquire("a"));
    assertEquals(error.message, 'Cannot keep lock "a": its validity has ended');
    const passedMs = cluster.nowMs - startMs;
    assert(passedMs > 900 && passedMs < 1_000, `${passedMs}`);
    assertEquals(cluster.asked("extend"), [0, 0, 0]);
  });
}

Deno.test("acquire() gives no lock whose validity ended while its tokenSource blocked the event loop", async () => {
  const cluster = new Cluster();
  const tokenSource = () => {
    cluster.clock.block(2_000); // before any timer could end the lock
    return 7;
  };
  assertInstanceOf(await cluster.refusal({ tokenSource }), LockLostError);
  await assertFree(cluster);
});

Deno.test("acquire() extends from when the tokenSource has answered", async () => {
  const tokenSource = () =>
    new Promise<number>((resolve) => {
      cluster.clock.setTimer(() => resolve(1), 500); // longer than a third of the TTL
    });
  const cluster: Cluster = new Cluster(3, { autoExtend: true, tokenSource });
  const startMs = cluster.nowMs;
  const lock = await cluster.lock();
  await cluster.advance(5);
  assertEquals(cluster.nodes[0].asked("extend").map(({ atMs }) => atMs - startMs), [500]);
  await cluster.advance(10_000);
  assertEquals([lock.held, lock.fencingToken], [true, 1]);
});

Deno.test("acquire() asks no tokenSource for a lock that it does not win", async () => {
  const cluster = new Cluster();
  cluster.occupy();
  let asked = 0;
  assertEquals([await cluster.try({ tokenSource: () => ++asked }), asked], [undefined, 0]);
});

Deno.test("acquire() lets the next caller of this client go on if the tokenSource throws", async () => {
  const cluster = new Cluster();
  const tokenSource = () => Promise.reject(REASON);
  const first = cluster.rejection(cluster.redlock.acquire("a", { tokenSource }));
  const second = cluster.redlock.acquire("a", { tokenSource: () => 2 });
  assertStrictEquals(await first, REASON);
  assertEquals((await cluster.settle(second)).fencingToken, 2);
});
