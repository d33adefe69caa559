import {
  assert,
  assertEquals,
  assertGreater,
  assertLessOrEqual,
  assertRejects,
  assertStrictEquals,
} from "@std/assert";
import { LockLostError, RedlockError } from "../../src/errors.ts";
import type { FencedLock, Lock } from "../../src/lock/lock.ts";
import type { RedlockOptions, TokenSource } from "../../src/options.ts";
import type { Redlock } from "../../src/redlock.ts";
import { runMicrotasks } from "../support/fake_clock.ts";
import { FencingCluster } from "../support/fencing_nodes.ts";

/** What a call for "a" gives, whichever it is. */
type Seen = Pick<Lock, "fencingToken" | "held">;

/** Every way to get a lock. */
const CALLS: Record<string, (redlock: Redlock, options: RedlockOptions) => Promise<Seen>> = {
  acquire: (redlock, options) => redlock.acquire("a", options),
  "acquire (one attempt)": (redlock, options) => redlock.acquire("a", { ...options, waitMs: 0 }),
  tryAcquire: async (redlock, options) => (await redlock.tryAcquire("a", options))!,
  using: (redlock, options) =>
    redlock.using("a", options, ({ fencingToken, held }) => ({ fencingToken, held })),
};

/** A cluster without a fencing of its own. */
function plain(options: RedlockOptions = {}): FencingCluster {
  return new FencingCluster(3, { fencing: false, waitMs: 5_000, ...options });
}

function free(cluster: FencingCluster): void {
  assertEquals(cluster.holders("a"), Array(3).fill(undefined));
}

// Fencing

for (const [name, call] of Object.entries(CALLS)) {
  Deno.test(`Redlock.${name} gives a token with fencing, of the call or the client, and none without`, async () => {
    const cluster = plain();
    const fenced = cluster.client({ fencing: true, ttlMs: 1_000 });
    const token = (await cluster.settle(call(cluster.redlock, { fencing: true }))).fencingToken!;
    assert(Number.isSafeInteger(token));
    for (const { holders } of cluster.nodes) holders.clear();
    assertEquals((await cluster.settle(call(cluster.client(), {}))).fencingToken, undefined);
    for (const { holders } of cluster.nodes) holders.clear();
    assertEquals((await cluster.settle(call(fenced, {}))).fencingToken, token + 1);
    for (const { holders } of cluster.nodes) holders.clear();
    const off = { fencing: false };
    assertEquals((await cluster.settle(call(fenced, off))).fencingToken, undefined);
  });
}

Deno.test("Redlock types the token of a call with fencing as a number", async () => {
  const { redlock, settle } = typed();
  const lock = await settle(redlock.acquire("a", { fencing: true }));
  const token: number = lock.fencingToken;
  const fenced: FencedLock = lock;
  const tried = await settle(redlock.tryAcquire("b", { fencing: true, ttlMs: 500 }));
  const second: number | undefined = tried?.fencingToken;
  const third: number = await settle(
    redlock.using("c", { fencing: true }, ({ fencingToken }) => fencingToken),
  );
  const unknown: Same<Lock["fencingToken"], number | undefined> = true;
  const wide: Same<Awaited<ReturnType<typeof acquireWide>>, Lock> = true;
  assertEquals([typeof token, typeof second, typeof third], ["number", "number", "number"]);
  assertEquals([fenced.fencingToken, unknown, wide], [token, true, true]);
});

/** Whether two types are one. */
type Same<One, Other> = [One] extends [Other] ? [Other] extends [One] ? true : false : false;

function acquireWide(redlock: Redlock, options: RedlockOptions) {
  return redlock.acquire("a", options);
}

function typed() {
  const cluster = plain();
  return {
    redlock: cluster.redlock,
    settle: <T>(promise: Promise<T>): Promise<T> => cluster.settle(promise),
  };
}

// Tokens from elsewhere

for (const [name, call] of Object.entries(CALLS)) {
  Deno.test(`Redlock.${name} asks the tokenSource once the lock is won, with the resources and the lock's signal`, async () => {
    const cluster = plain();
    const asked: unknown[] = [];
    const tokenSource: TokenSource = (resources, signal) => {
      asked.push([resources, signal.aborted, cluster.holders("a").every(Boolean)]);
      return Promise.resolve(42);
    };
    const { fencingToken, held } = await cluster.settle(call(cluster.redlock, { tokenSource }));
    assertEquals([fencingToken, held, asked], [42, true, [[["a"], false, true]]]);
    assertEquals(cluster.counters("a"), Array(3).fill(undefined));
  });

  Deno.test(`Redlock.${name} releases the lock and passes on what the tokenSource throws`, async () => {
    const cluster = plain();
    const reason = new Error("no sequence");
    for (const source of [() => Promise.reject(reason), () => raise(reason)]) {
      const rejected = assertRejects(() => call(cluster.redlock, { tokenSource: source }));
      assertStrictEquals(await cluster.settle(rejected), reason);
      await runMicrotasks();
      free(cluster);
    }
    assert((await cluster.settle(call(cluster.redlock, {}))).held); // nothing is in the way
  });

  for (const token of [1.5, NaN, Infinity, 2 ** 53, "7", 7n, undefined, null]) {
    Deno.test(`Redlock.${name} refuses the token ${Deno.inspect(token)}, and releases the lock`, async () => {
      const cluster = plain();
      const tokenSource = () => token as number;
      const rejected = assertRejects(() => call(cluster.redlock, { tokenSource }), TypeError);
      assertEquals(
        (await cluster.settle(rejected)).message,
        `Cannot acquire lock as 'tokenSource' must return a safe integer: current value is ${token}`,
      );
      await runMicrotasks();
      free(cluster);
    });
  }

  Deno.test(`Redlock.${name} gives no lock that was lost while the tokenSource took its time`, async () => {
    const cluster = plain({ autoExtend: false });
    let signal: AbortSignal | undefined;
    const tokenSource: TokenSource = (_, lockSignal) => {
      signal = lockSignal;
      return new Promise((resolve) => cluster.clock.setTimer(() => resolve(7), 1_500));
    };
    const rejected = assertRejects(() => call(cluster.redlock, { tokenSource }), LockLostError);
    const error = await cluster.settle(rejected);
    assertEquals(error.message, 'Cannot keep lock "a": its validity has ended');
    assertStrictEquals(signal?.reason, error);
    await runMicrotasks();
    free(cluster);
  });

  Deno.test(`Redlock.${name} gives no lock whose client closes while the tokenSource takes its time`, async () => {
    const cluster = plain();
    const tokenSource: TokenSource = (_, signal) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    const rejected = assertRejects(() => call(cluster.redlock, { tokenSource }), RedlockError);
    await runMicrotasks();
    await cluster.settle(cluster.redlock.close());
    assertEquals((await cluster.settle(rejected)).code, "CLOSED");
    free(cluster);
  });

  Deno.test(`Redlock.${name} rejects at once when its signal is aborted while the tokenSource takes its time`, async () => {
    const cluster = plain();
    const controller = new AbortController();
    const { signal } = controller;
    let told: AbortSignal | undefined;
    const tokenSource: TokenSource = (_, lockSignal) => {
      told = lockSignal;
      return new Promise(() => {}); // whatever it is told
    };
    const reason = new Error("enough");
    const rejected = assertRejects(() => call(cluster.redlock, { tokenSource, signal }));
    cluster.clock.setTimer(() => controller.abort(reason), 50);
    const startMs = cluster.clock.monotonicMs();
    assertStrictEquals(await cluster.settle(rejected), reason);
    assertLessOrEqual(cluster.clock.monotonicMs() - startMs, 51);
    assert(told?.aborted);
    await runMicrotasks();
    free(cluster);
  });

  Deno.test(`Redlock.${name} gives no lock whose signal is aborted as the tokenSource answers`, async () => {
    const cluster = plain();
    const controller = new AbortController();
    const { signal } = controller;
    const reason = new Error("enough");
    const tokenSource: TokenSource = () => {
      controller.abort(reason);
      return Promise.resolve(7);
    };
    const rejected = assertRejects(() => call(cluster.redlock, { tokenSource, signal }));
    assertStrictEquals(await cluster.settle(rejected), reason);
    await runMicrotasks();
    free(cluster);
  });
}

function raise(error: Error): never {
  throw error;
}

const HANGS: TokenSource = () => new Promise(() => {});

Deno.test("Redlock.acquire() gives up a tokenSource that hangs when its wait is over, and extends nothing meanwhile", async () => {
  const cluster = plain({ waitMs: 600, autoExtend: true });
  let lockSignal: AbortSignal | undefined;
  const tokenSource: TokenSource = (_, signal) => HANGS([], lockSignal = signal);
  const acquiring = cluster.redlock.acquire("a", { tokenSource });
  const rejected = assertRejects(() => acquiring, LockLostError);
  await cluster.clock.advance(599);
  assertEquals([lockSignal?.aborted, cluster.clock.timersAlive], [false, 1]);
  await cluster.clock.advance(1);
  assertEquals(
    (await rejected).message,
    `Cannot keep lock "a": 'tokenSource' did not answer within 'waitMs'`,
  );
  assertEquals([lockSignal?.aborted, cluster.clock.timersAlive], [true, 0]);
  assertEquals(cluster.nodes[0].asked("extend"), []);
  assertEquals(cluster.holders("a"), [undefined, undefined, undefined]);
});

for (
  const [name, options, tryIt] of [
    ["acquire() without a wait", { waitMs: 0 }, false],
    ["acquire() that waits for ever", { waitMs: Infinity }, false],
    ["tryAcquire()", { waitMs: 300 }, true],
  ] as const
) {
  Deno.test(`Redlock.${name} gives up a tokenSource that hangs when the validity is over`, async () => {
    const cluster = plain({ ...options, autoExtend: true });
    const { redlock } = cluster;
    const tokenSource = HANGS;
    const call = tryIt
      ? redlock.tryAcquire("a", { tokenSource })
      : redlock.acquire("a", { tokenSource });
    let settled = false;
    const rejected = assertRejects(() => call, LockLostError).finally(() => settled = true);
    await cluster.clock.advance(900);
    assertEquals(settled, false);
    await cluster.clock.advance(100);
    assertEquals((await rejected).message, 'Cannot keep lock "a": its validity has ended');
    assertEquals(cluster.nodes[0].asked("extend"), []);
  });
}

Deno.test("Redlock.acquire() extends from when the tokenSource has answered", async () => {
  const cluster = plain({ autoExtend: true });
  const tokenSource = () =>
    new Promise<number>((resolve) => {
      cluster.clock.setTimer(() => resolve(1), 500); // longer than a third of the TTL
    });
  const startMs = cluster.clock.monotonicMs();
  const lock = await cluster.settle(cluster.redlock.acquire("a", { tokenSource, waitMs: 5_000 }));
  await cluster.clock.advance(5);
  assertEquals(cluster.nodes[0].asked("extend").map(({ atMs }) => atMs - startMs), [500]);
  await cluster.clock.advance(10_000);
  assertEquals([lock.held, lock.fencingToken], [true, 1]);
  await cluster.settle(lock.release());
});

Deno.test("Redlock.acquire() gives negative tokens and zero as the tokenSource draws them", async () => {
  for (const token of [0, -1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]) {
    const cluster = plain();
    const acquiring = cluster.redlock.acquire("a", { tokenSource: () => token });
    assertEquals((await cluster.settle(acquiring)).fencingToken, token);
  }
});

Deno.test("Redlock.acquire() asks no tokenSource for a lock that it does not win", async () => {
  const cluster = plain();
  await cluster.settle(cluster.redlock.acquire("a"));
  let asked = 0;
  const tokenSource = () => ++asked;
  const tried = cluster.redlock.tryAcquire("a", { tokenSource });
  assertEquals([await cluster.settle(tried), asked], [undefined, 0]);
});

Deno.test("Redlock.acquire() hands out the tokenSource's token in place of the nodes'", async () => {
  const cluster = plain({ fencing: true, tokenSource: () => 7 });
  const lock = await cluster.settle(cluster.redlock.acquire("a"));
  assertEquals(lock.fencingToken, 7);
  await cluster.settle(lock.extend());
  assertEquals(lock.fencingToken, 7);
  assertEquals(cluster.counters("a"), Array(3).fill(undefined));
  for (const { calls } of cluster.nodes) {
    assertEquals(calls.map(({ counterFloor }) => counterFloor), [undefined, undefined]);
  }
});

Deno.test("Redlock.acquire() lets the next caller of this client go on where the tokenSource throws", async () => {
  const cluster = plain();
  const failing = () => Promise.reject(new Error("no sequence"));
  const first = assertRejects(() => cluster.redlock.acquire("a", { tokenSource: failing }));
  const second = cluster.redlock.acquire("a", { tokenSource: () => 2 });
  await cluster.settle(first);
  assertEquals((await cluster.settle(second)).fencingToken, 2);
});

Deno.test("Redlock.acquire() gives callers of one client that wait rising tokens, in their order", async () => {
  const cluster = plain({ fencing: true });
  const tokens: number[] = [];
  const calls = Array.from(
    { length: 5 },
    () => cluster.redlock.using("a", (lock) => void tokens.push(lock.fencingToken!)),
  );
  await cluster.settle(Promise.all(calls));
  assertEquals(tokens.length, 5);
  tokens.slice(1).forEach((token, index) => assertGreater(token, tokens[index]));
});
