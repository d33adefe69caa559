import { assertEquals, assertInstanceOf, assertMatch, assertThrows } from "@std/assert";
import { LockLostError, type LockLostReason } from "../../../src/errors.ts";
import type { Lock } from "../../../src/lock/lock.ts";
import type { RedlockOptions } from "../../../src/options.ts";
import { Cluster, test, TTL_MS } from "../../support/cluster.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";

/** How locks are lost: the options, and what happens. */
const LOSSES: readonly [
  reason: LockLostReason,
  what: string,
  options: RedlockOptions,
  lose: (cluster: Cluster, lock: Lock) => unknown,
][] = [
  ["expired", "its TTL passes", {}, (cluster) => cluster.advance(TTL_MS)],
  ["stalled", "the process stands still", { autoExtend: true }, ({ clock }) => clock.block(TTL_MS)],
  ["clock-stepped", "the machine sleeps", {}, ({ clock }) => clock.stepWall(TTL_MS)],
  ["clock-stepped", "its keys expire before an extension arrives", {}, async (cluster, lock) => {
    const extending = cluster.rejection(lock.extend());
    cluster.forget(0, 1);
    cluster.clock.stepWall(TTL_MS);
    await extending;
  }],
  ["extend-failed", "the nodes hang", { autoExtend: true }, async (cluster) => {
    cluster.set("hang");
    await cluster.advance(TTL_MS);
  }],
  [
    "extensions-max",
    "it was extended often enough",
    { autoExtend: true, extensionsMax: 2 },
    (cluster) => cluster.advance(3 * TTL_MS),
  ],
  ["gone", "the nodes forget it before two extensions", {}, async (cluster, lock) => {
    cluster.forget();
    const first = cluster.rejection(lock.extend());
    cluster.set("hang");
    await Promise.all([first, cluster.rejection(lock.extend())]);
  }],
  ["closed", "the client closes", {}, (cluster) => cluster.close()],
  ["expired", "its extension was given up", {}, (cluster, lock) => giveUp(cluster, lock, 10)],
  ["answers-late", "its second extension was", {}, (cluster, lock) => giveUp(cluster, lock, 130)],
  ["expired", "one of two at once was allowed", { extensionsMax: 1 }, async (cluster, lock) => {
    await Promise.all([lock.extend(), cluster.rejection(lock.extend())]);
    await cluster.advance(TTL_MS);
  }],
  ["expired", "one was given up while another succeeded", {}, async (cluster, lock) => {
    const givenUp = new AbortController();
    for (const node of cluster.nodes) node.replyMs = 20;
    const first = lock.extend();
    await cluster.advance(5);
    cluster.clock.setTimer(() => givenUp.abort(), 16);
    await Promise.all([first, cluster.rejection(lock.extend({ signal: givenUp.signal }))]);
    await cluster.advance(2 * TTL_MS);
  }],
  ["expired", "one failed after a later one", { nodeTimeoutMs: 100 }, async (cluster, lock) => {
    const givenUp = new AbortController();
    cluster.set("lose-reply");
    const first = cluster.rejection(lock.extend({ signal: givenUp.signal }));
    await cluster.advance(10);
    cluster.set("answer");
    await cluster.settle(lock.extend());
    await cluster.advance(100); // the first has failed, and pauses
    givenUp.abort();
    await first;
    await cluster.advance(TTL_MS);
  }],
  ["extend-failed", "one of two was given up", { nodeTimeoutMs: 900 }, async (cluster, lock) => {
    await cluster.advance(200);
    cluster.set("hang");
    const givenUp = new AbortController();
    const extending = [lock.extend(), lock.extend({ signal: givenUp.signal })];
    givenUp.abort();
    await Promise.all(extending.map((each) => cluster.rejection(each)));
  }],
];

/** Extends a lock whose nodes hang, twice at once, gives that up, and lets the nodes answer. */
async function giveUp(cluster: Cluster, lock: Lock, afterMs: number): Promise<void> {
  const givenUp = new AbortController();
  cluster.set("hang");
  const extend = () => cluster.rejection(lock.extend({ signal: givenUp.signal }));
  const extending = Promise.all([extend(), extend()]);
  await cluster.advance(afterMs);
  givenUp.abort();
  cluster.resume();
  await extending;
  await cluster.advance(TTL_MS);
}

for (const [reason, what, options, lose] of LOSSES) {
  test(`a lock is lost for the reason ${reason} if ${what}, in its error and its event`, async (cluster) => {
    const lock = await cluster.lock(options);
    await lose(cluster, lock);
    const error = lock.signal.reason;
    assertInstanceOf(error, LockLostError);
    const denied = error.votes.some(({ outcome }) => outcome === "denied");
    assertEquals([error.reason, denied], [
      reason,
      reason === "gone" || what.startsWith("its keys"),
    ]);
    await runMicrotasks();
    const lost = cluster.events.flatMap((event) => event.type === "lost" ? [event] : []);
    assertEquals(lost.map(({ reason, cause }) => [reason, cause]), [[reason, error.cause]]);
  });
}

test("Lock.extend() rejects for the reason that no extension is left, or that it was released", async (cluster) => {
  const lock = await cluster.lock({ extensionsMax: 0 });
  for (const reason of ["extensions-max", "released"]) {
    const error = await cluster.rejection(lock.extend());
    assertInstanceOf(error, LockLostError);
    assertEquals([error.reason, lock.held], [reason, reason !== "released"]);
    await cluster.settle(lock.release());
  }
});

/** Why a lock was lost that extends itself, after something has happened to it. */
async function lossAfter(
  happens: (cluster: Cluster, lock: Lock) => unknown,
  options: RedlockOptions = { autoExtend: true },
): Promise<[reason: LockLostReason, cause: string]> {
  const cluster = new Cluster();
  const lock = await cluster.lock(options);
  await happens(cluster, lock);
  const { reason, cause } = lock.signal.reason as LockLostError;
  return [reason, (cause as Error).message];
}

Deno.test("LockLostError says for how long the process stood still, if the signal or a timer notices it", async () => {
  for (const notices of ["the signal", "the wheel"]) {
    const [reason, cause] = await lossAfter(async (cluster) => {
      await cluster.advance(100);
      cluster.clock.block(900);
      if (notices === "the wheel") await cluster.advance(0);
    });
    const ms = Number(/the process stood still for about (\d+) ms$/.exec(cause)?.[1]);
    // It is counted from when a timer was due, which is 250 ms after it began at most.
    assertEquals([reason, ms >= 650 && ms <= 900], ["stalled", true], cause);
  }
  const inPieces = await lossAfter(async (cluster) => {
    cluster.set("hang");
    for (let count = 0; count < 3; count++) {
      cluster.clock.block(400);
      await cluster.advance(0);
    }
  });
  assertEquals(inPieces, [
    "stalled",
    "its validity has ended, because the process stood still for about 1033 ms",
  ]);
});

Deno.test("LockLostError does not blame a short stall, nor one before the last extension", async () => {
  const brief = await lossAfter(async (cluster) => {
    cluster.clock.block(100);
    await cluster.advance(TTL_MS);
  }, {});
  assertEquals(brief, ["expired", "its validity has ended"]);
  const late = await lossAfter(async (cluster) => {
    await cluster.advance(280); // to the middle of a wake-up's time, which is then 30 ms late
    cluster.clock.block(50);
    await cluster.advance(TTL_MS);
  }, {});
  assertEquals(late, brief);
  const earlier = await lossAfter(async (cluster) => {
    cluster.clock.block(600);
    await cluster.advance(0);
    cluster.set("hang");
    await cluster.advance(2 * TTL_MS);
  });
  assertEquals(earlier[0], "extend-failed");
});

Deno.test("LockLostError does not say that the process stood still if the lock was won when its extension was due already", async () => {
  const cluster = new Cluster(3, { nodeTimeoutMs: 900, autoExtend: true });
  for (const node of cluster.nodes) node.replyMs = 600;
  const { signal } = await cluster.lock();
  cluster.set("hang");
  await cluster.advance(TTL_MS);
  assertEquals(signal.reason.reason, "extend-failed");
});

Deno.test("LockLostError names the nodes whose answers came too late, and never says that they extended it", async () => {
  const late = await lossAfter(async (cluster) => {
    cluster.set("hang");
    await cluster.advance(955);
    cluster.clock.block(40);
    cluster.resume();
  }, { autoExtend: true, nodeTimeoutMs: TTL_MS - 100 });
  assertEquals(late[0], "answers-late");
  assertMatch(late[1], /too late were the answers of node0 \(\d+ ms\), node1 \(\d+ ms\)/);
});

test("a lock that is lost because the wall clock stepped was held for as long as the monotonic clock counts", async (cluster) => {
  const lock = await cluster.lock();
  await cluster.advance(100);
  cluster.clock.stepWall(4 * 365 * 86_400_000);
  const { reason, cause } = lock.signal.reason as LockLostError;
  await runMicrotasks();
  const lost = cluster.events.flatMap((event) => event.type === "lost" ? [event.heldMs] : []);
  assertEquals([reason, lost], ["clock-stepped", [100]]);
  assertMatch((cause as Error).message, /stepped ahead by 126144000000 ms, or the machine slept$/);
});

test("LockLostError has the stack of the code that gets it first", async (cluster) => {
  const lose = () => cluster.advance(2 * TTL_MS);
  async function callerOfUsing() {
    return await cluster.redlock.using("using", { autoExtend: false }, lose);
  }
  const used = await cluster.rejection(callerOfUsing());
  assertMatch(
    used.stack!,
    /^LockLostError: Cannot keep lock "using": .*\n(.*\n)* *at async callerOfUsing/,
  );
  const lock = await cluster.lock();
  const { signal } = lock;
  await lose();
  const worker = () => signal.throwIfAborted();
  const thrown = assertThrows(worker, LockLostError);
  assertMatch(thrown.stack!, /at worker/);
  assertMatch((await cluster.rejection(lock.extend())).stack!, /at worker/); // it stays
});

test("LockLostError is thrown also if the program has stacks be arrays", async (cluster) => {
  const { signal } = await cluster.lock();
  await cluster.advance(2 * TTL_MS);
  const { prepareStackTrace } = Error;
  Error.prepareStackTrace = (_, frames) => frames;
  const { message, stack } = assertThrows(() => signal.throwIfAborted(), LockLostError);
  Error.prepareStackTrace = prepareStackTrace;
  assertEquals(stack, `LockLostError: ${message}`);
});
