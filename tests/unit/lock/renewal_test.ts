import { assert, assertEquals, assertInstanceOf, assertLessOrEqual } from "@std/assert";
import { LockLostError } from "../../../src/errors.ts";
import type { Lock } from "../../../src/lock/lock.ts";
import type { RedlockOptions } from "../../../src/options.ts";
import { advanceUntil, runMicrotasks } from "../../support/fake_clock.ts";
import { FakeCluster } from "../../support/fake_nodes.ts";

const TTL_MS = 1_200;
/** TTL less 1 % less 2 ms. */
const VALIDITY_MS = 1_186;
/** The time after which a lock of that TTL is extended. */
const THIRD_MS = 400;

async function locked(
  nodeCount = 3,
  options: RedlockOptions = {},
): Promise<{ cluster: FakeCluster; lock: Lock; startMs: number }> {
  const cluster = new FakeCluster(nodeCount, { ttlMs: TTL_MS, autoExtend: true, ...options });
  const startMs = cluster.clock.monotonicMs();
  const lock = await advanceUntil(cluster.clock, cluster.redlock.acquire("a"), 1_000, 1);
  return { cluster, lock, startMs };
}

async function close(cluster: FakeCluster): Promise<void> {
  await advanceUntil(cluster.clock, cluster.redlock.close(), 1_000, 1);
}

/** When `cluster`'s first node was asked to extend, from `startMs`. */
function extendTimes(cluster: FakeCluster, startMs: number): number[] {
  return cluster.nodes[0].asked("extend").map(({ atMs }) => Math.round(atMs - startMs));
}

Deno.test("Renewal extends whenever a third of the TTL has passed", async () => {
  const { cluster, lock, startMs } = await locked();
  await cluster.clock.advance(2_000);
  assertEquals(extendTimes(cluster, startMs), [400, 800, 1_200, 1_600, 2_000]);
  assertEquals([lock.held, lock.extensions], [true, 5]);
  assertEquals(lock.remainingMs(), VALIDITY_MS);
  await close(cluster);
});

Deno.test("Renewal counts the third from when the last extension began", async () => {
  const { cluster, startMs } = await locked();
  for (const node of cluster.nodes) node.replyMs = 40;
  await cluster.clock.advance(1_250);
  assertEquals(extendTimes(cluster, startMs), [400, 800, 1_200]);
  await close(cluster);
});

Deno.test("Renewal extends by the TTL that the lock was acquired with", async () => {
  const { cluster } = await locked();
  await cluster.clock.advance(THIRD_MS);
  const [call] = cluster.nodes[0].asked("extend");
  assertEquals([call.ttlMs, call.keys], [TTL_MS, ["a"]]);
  await close(cluster);
});

Deno.test("Renewal holds a lock for as long as it is not released, and no longer", async () => {
  const { cluster, lock } = await locked();
  await cluster.clock.advance(60_000);
  assert(lock.held);
  await advanceUntil(cluster.clock, lock.release());
  const calls = cluster.nodes[0].calls.length;
  await cluster.clock.advance(60_000);
  assertEquals(cluster.nodes[0].calls.length, calls);
  assertEquals(cluster.holders("a"), [undefined, undefined, undefined]);
  await close(cluster);
});

Deno.test("Renewal does not keep the process alive between extensions", async () => {
  const { cluster } = await locked();
  await cluster.clock.advance(500);
  assertEquals(cluster.clock.timersAlive, 0);
  await close(cluster);
});

Deno.test("Renewal is off in acquire() unless it is asked for", async () => {
  const { cluster, lock } = await locked(3, { autoExtend: undefined });
  await cluster.clock.advance(2_000);
  assertEquals([cluster.nodes[0].asked("extend").length, lock.held], [0, false]);
  await close(cluster);
});

for (const mode of ["fail", "hang", "throw", "lose-reply"] as const) {
  Deno.test(`Renewal goes on without a minority that does ${mode}`, async () => {
    const { cluster, lock } = await locked(5);
    cluster.set(mode, 0, 1);
    await cluster.clock.advance(30_000);
    assertEquals([lock.held, lock.signal.aborted], [true, false]);
    await close(cluster);
  });

  Deno.test(`Renewal tries again within the validity while a majority does ${mode}`, async () => {
    const { cluster, lock } = await locked();
    cluster.set(mode, 0, 1);
    await cluster.clock.advance(1_000);
    assertEquals(lock.extensions, 0);
    assert(cluster.nodes[0].asked("extend").length >= 4);
    assertEquals(lock.remainingMs(), VALIDITY_MS - 1_000); // the old validity stands
    cluster.nodes[0].resume();
    cluster.nodes[1].resume();
    await cluster.clock.advance(150);
    assert(lock.extensions >= 1);
    await cluster.clock.advance(5_000);
    assertEquals([lock.held, lock.signal.aborted], [true, false]);
    await close(cluster);
  });

  Deno.test(`Renewal does not outlive the validity while a majority does ${mode}, and does not spin`, async () => {
    const { cluster, lock } = await locked();
    const { signal } = lock;
    cluster.set(mode, 0, 1);
    await cluster.clock.advance(1_200);
    assertEquals([lock.held, signal.aborted], [false, true]);
    const what = mode === "fail" || mode === "throw" ? "failed" : "timed out";
    assertEquals(
      (signal.reason.cause as Error).message.replace(/; first error: node0 (is down|threw)$/u, ""),
      `its validity has ended before an extension succeeded: 1 of 3 nodes extended it, 2 ${what}, 2 are needed`,
    );
    assertLessOrEqual(cluster.nodes[2].asked("extend").length, 15);
    const asked = cluster.nodes[2].asked("extend").length;
    await cluster.clock.advance(10_000);
    assertEquals(cluster.nodes[2].asked("extend").length, asked);
    for (const node of cluster.nodes) node.resume();
    await cluster.clock.advance(10);
    assertEquals(cluster.holders("a"), [undefined, undefined, undefined]); // prolonged by no quorum
    await close(cluster);
  });
}

Deno.test("Renewal does not spin at the shortest TTL", async () => {
  const { cluster } = await locked(3, { ttlMs: 10 });
  for (const node of cluster.nodes) node.modes.extend = "fail";
  await cluster.clock.advance(100);
  assertLessOrEqual(cluster.nodes[0].asked("extend").length, 4);
  await close(cluster);
});

Deno.test("Renewal bounds each try by nodeTimeoutMs", async () => {
  const { cluster, startMs } = await locked(3, { nodeTimeoutMs: 30 });
  cluster.set("hang", 0, 1);
  await cluster.clock.advance(THIRD_MS + 120);
  const [first, second] = extendTimes(cluster, startMs);
  assertEquals(second - first, 30 + TTL_MS / 15);
  await close(cluster);
});

Deno.test("Renewal loses the lock at once when a majority no longer holds it", async () => {
  for (const steal of [true, false]) {
    const { cluster, lock } = await locked();
    const { signal } = lock;
    await cluster.clock.advance(100);
    for (const node of cluster.nodes.slice(0, 2)) {
      if (steal) node.set("a", "other", 5_000);
      else node.forget();
    }
    await cluster.clock.advance(THIRD_MS - 100);
    assertEquals([lock.held, signal.aborted], [false, true]);
    assertInstanceOf(signal.reason, LockLostError);
    assertEquals(
      signal.reason.message,
      'Cannot keep lock "a": a majority of the nodes no longer holds it',
    );
    await cluster.clock.advance(5_000);
    assertEquals(cluster.holders("a"), [undefined, undefined, undefined]); // nothing was brought back
    await close(cluster);
  }
});

Deno.test("Renewal takes nothing from a successor", async () => {
  const { cluster, lock } = await locked();
  for (const node of cluster.nodes) node.set("a", "other", 5_000);
  await cluster.clock.advance(3_000);
  assertEquals(lock.held, false);
  assertEquals(cluster.holders("a"), ["other", "other", "other"]);
  await close(cluster);
});

Deno.test("Renewal keeps a lock from eroding as nodes restart one by one", async () => {
  const { cluster, lock } = await locked();
  for (let times = 0; times < 12; times++) {
    cluster.nodes[times % 3].forget();
    await cluster.clock.advance(THIRD_MS);
    assertEquals(cluster.holders("a"), Array(3).fill(lock.value));
  }
  assert(lock.held);
  await close(cluster);
});

Deno.test("Renewal fills nothing in while too few nodes grant", async () => {
  const { cluster, lock } = await locked();
  cluster.nodes[0].forget();
  cluster.set("fail", 1);
  await cluster.clock.advance(2 * THIRD_MS);
  assertEquals(lock.extensions, 0); // node 2 alone
  assertEquals(cluster.nodes[0].holder("a"), undefined);
  cluster.set("answer", 1);
  await cluster.clock.advance(TTL_MS / 15);
  assertEquals(lock.extensions, 1); // nodes 1 and 2
  assertEquals(cluster.nodes[0].holder("a"), lock.value);
  await close(cluster);
});

Deno.test("Renewal ends with extensionsMax: the lock is lost when its validity ends, and says why", async () => {
  const { cluster, lock } = await locked(3, { extensionsMax: 2 });
  const { signal } = lock;
  await cluster.clock.advance(3 * THIRD_MS);
  assertEquals([lock.held, lock.extensions], [true, 2]);
  await cluster.clock.advance(TTL_MS);
  assertEquals([lock.held, signal.aborted, lock.extensions], [false, true, 2]);
  assertEquals(
    signal.reason.message,
    `Cannot keep lock "a": it was extended 2 times, the most that 'extensionsMax' allows`,
  );
  await close(cluster);
});

Deno.test("Renewal with an extensionsMax of 0 never extends", async () => {
  const { cluster, lock } = await locked(3, { extensionsMax: 0 });
  await cluster.clock.advance(TTL_MS);
  assertEquals([cluster.nodes[0].asked("extend").length, lock.held], [0, false]);
  await close(cluster);
});

Deno.test("Renewal does not shorten what the holder extended by more", async () => {
  const { cluster, lock } = await locked();
  await advanceUntil(cluster.clock, lock.extend({ ttlMs: 60_000 }), 1_000, 1);
  await cluster.clock.advance(5_000);
  assertEquals(Math.round(lock.remainingMs() / 1_000), 54);
  for (const node of cluster.nodes) assert(node.keys.a.remainingMs > 54_000);
  await close(cluster);
});

Deno.test("Renewal that a release overtakes revives no key", async () => {
  const { cluster, lock } = await locked();
  for (const node of cluster.nodes) node.requestMs = 10;
  await cluster.clock.advance(THIRD_MS + 5);
  assertEquals(cluster.nodes[0].asked("extend").length, 1);
  assertEquals(await advanceUntil(cluster.clock, lock.release(), 1_000, 1), true);
  await cluster.clock.advance(5_000);
  assertEquals(cluster.holders("a"), [undefined, undefined, undefined]);
  assertEquals(lock.signal.aborted, false);
  assertEquals(cluster.nodes[0].asked("extend").length, 1);
  await close(cluster);
});

Deno.test("Renewal loses a lock whose machine slept through the validity, and extends it no more", async () => {
  const { cluster, lock } = await locked();
  await cluster.clock.advance(100);
  cluster.clock.stepWall(60_000); // the monotonic clock stood still
  await cluster.clock.advance(250);
  assertEquals([lock.held, lock.signal.aborted], [false, true]);
  assertEquals(cluster.nodes[0].asked("extend"), []);
  await close(cluster);
});

Deno.test("Renewal goes on after the wall clock stepped back", async () => {
  const { cluster, lock, startMs } = await locked();
  await cluster.clock.advance(100);
  cluster.clock.stepWall(-60_000);
  await cluster.clock.advance(1_150);
  assertEquals(extendTimes(cluster, startMs), [400, 800, 1_200]);
  assert(lock.held);
  await close(cluster);
});

Deno.test("Renewal whose answers come after the validity does not bring the lock back", async () => {
  const { cluster, lock } = await locked(3, { nodeTimeoutMs: 5_000 });
  for (const node of cluster.nodes) node.replyMs = 1_000;
  await cluster.clock.advance(5_000);
  assertEquals([lock.held, lock.extensions, lock.signal.aborted], [false, 0, true]);
  await runMicrotasks();
  assertEquals(cluster.holders("a"), [undefined, undefined, undefined]);
  await close(cluster);
});

Deno.test("Renewal tells of each extension and each failed try", async () => {
  const { cluster } = await locked();
  await cluster.clock.advance(THIRD_MS);
  cluster.set("fail", 0, 1);
  await cluster.clock.advance(THIRD_MS);
  assertEquals(cluster.eventTypes, ["attempt", "acquired", "extended", "extend-failed"]);
  const [, , extended, failed] = cluster.events;
  assert(extended.type === "extended" && failed.type === "extend-failed");
  assertEquals([extended.extensions, extended.remainingMs], [1, VALIDITY_MS]);
  assertEquals(failed.remainingMs, VALIDITY_MS - THIRD_MS);
  await close(cluster);
});
