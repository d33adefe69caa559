import {
  assert,
  assertEquals,
  assertGreater,
  assertLess,
  assertLessOrEqual,
  assertMatch,
  assertRejects,
} from "@std/assert";
import { deadline } from "@std/async/deadline";
import {
  createRedlock,
  type Lock,
  LockHeldError,
  LockLostError,
  QuorumError,
  type RedlockEvent,
} from "../../mod.ts";
import { abortedAt, eventually } from "../support/eventually.ts";
import { startServers } from "../support/servers.ts";
import {
  holdByAnother,
  onAll,
  shareServers,
  startProxies,
  warmUp,
} from "../support/shared_servers.ts";

const shared = shareServers(5);

/** What a noisy machine may add to a time. */
const SLACK_MS = 700;

/** A drift allowance that leaves a noisy machine room between the end of the validity and the TTL. */
const AMPLE_DRIFT = 0.25;

Deno.test("acquire() does not grant what was answered after the TTL", async () => {
  await using servers = shared.lend(3);
  await using proxies = startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { nodeTimeoutMs: 5_000 });
  await warmUp(redlock, servers);
  for (const proxy of proxies.slice(0, 2)) proxy.delay({ repliesMs: 300 });
  const error = await assertRejects(
    () => deadline(redlock.acquire("late", { ttlMs: 200, waitMs: 0 }), 200 + SLACK_MS),
    QuorumError,
  );
  assertEquals(
    error.message,
    'Cannot acquire lock "late": 1 of 3 nodes granted it, 2 timed out, 2 are needed',
  );
});

Deno.test("acquire() takes back what was answered after the validity but before the TTL", async () => {
  await using servers = shared.lend(3);
  await using proxies = startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { nodeTimeoutMs: 5_000 });
  await warmUp(redlock, servers);
  for (const proxy of proxies.slice(0, 2)) proxy.delay({ repliesMs: 300 });
  await assertRejects(
    () => redlock.acquire("late", { ttlMs: 60_000, driftFactor: 0.999, waitMs: 0 }),
    QuorumError,
  );
  await eventually(async () => assertEquals(await onAll(servers, "EXISTS", "late"), [0, 0, 0]));
});

Deno.test("acquire() does not grant what was answered in time but read after the TTL", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  await warmUp(redlock, servers);
  const acquiring = redlock.acquire("busy", { ttlMs: 100, waitMs: 0 });
  for (let turn = 0; turn < 10; turn++) await Promise.resolve(); // until the requests are written
  const endMs = performance.now() + 150;
  while (performance.now() < endMs); // a process that is busy, or stopped
  await assertRejects(() => acquiring, QuorumError);
});

Deno.test("tryAcquire() throws where a quorum answered too late for the validity", async () => {
  await using servers = shared.lend(3);
  await using proxies = startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { nodeTimeoutMs: 5_000 });
  await warmUp(redlock, servers);
  for (const proxy of proxies) proxy.delay({ repliesMs: 300 });
  await assertRejects(
    () => deadline(redlock.tryAcquire("late", { ttlMs: 100 }), 100 + SLACK_MS),
    QuorumError,
    'Cannot acquire lock "late": 0 of 3 nodes granted it',
  );
});

Deno.test("Lock that is not extended aborts its signal before the TTL, and is not held any more", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { driftFactor: AMPLE_DRIFT });
  const startMs = performance.now();
  await using lock = await redlock.acquire("ends", { ttlMs: 600 });
  const endMs = await abortedAt(lock.signal);
  assertLess(endMs, startMs + 600);
  assertGreater(endMs, startMs + 300);
  assertEquals([lock.held, lock.remainingMs()], [false, 0]);
  assert(lock.signal.reason instanceof LockLostError);
  assertEquals(lock.signal.reason.message, 'Cannot keep lock "ends": its validity has ended');
  assertEquals(lock.signal.reason.code, "LOCK_LOST");
});

Deno.test("Lock aborts its signal before the TTL where another lock is extended just before", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: 5_000 });
  await warmUp(redlock, servers);
  const startMs = performance.now();
  await using lock = await redlock.acquire("ends", { ttlMs: 300, driftFactor: AMPLE_DRIFT });
  await using _other = await redlock.acquire("goes on", { ttlMs: 540, autoExtend: true });
  assertLess(await abortedAt(lock.signal), startMs + 300);
});

Deno.test("Lock that is extended by itself outlives its TTL", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  await using lock = await redlock.acquire("kept", { ttlMs: 600, autoExtend: true });
  await eventually(() => lock.extensions >= 4 || lock.signal.aborted);
  assertEquals([lock.held, lock.signal.reason], [true, undefined]);
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "kept"), Array(5).fill(lock.value))
  );
});

Deno.test("Lock whose keys were taken by another on a majority aborts before the TTL, and leaves them", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  const startMs = performance.now();
  await using lock = await redlock.acquire("stolen", { ttlMs: 1_500, autoExtend: true });
  await holdByAnother(servers.slice(0, 3), "stolen");
  const abortMs = await abortedAt(lock.signal);
  assertLess(abortMs, startMs + 500 + SLACK_MS); // found by the first extension, after a third of the TTL
  assertEquals(
    lock.signal.reason.message,
    'Cannot keep lock "stolen": a majority of the nodes no longer holds it',
  );
  await eventually(async () =>
    assertEquals(
      await onAll(servers, "GET", "stolen"),
      ["another", "another", "another", null, null],
    )
  );
});

Deno.test("Lock whose majority was flushed is lost, and never brought back", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  const startMs = performance.now();
  const lock = await redlock.acquire("flushed", { ttlMs: 900, autoExtend: true });
  await onAll(servers.slice(0, 3), "FLUSHALL");
  const abortMs = await abortedAt(lock.signal);
  assertLess(abortMs, startMs + 900);
  assertEquals(lock.held, false);
  await eventually(async () =>
    assertEquals(await onAll(servers, "EXISTS", "flushed"), [0, 0, 0, 0, 0])
  );
  assertEquals(await lock.release(), false);
});

Deno.test("Lock counts a key that an extension set again from the next extension on", async () => {
  await using servers = shared.lend(3);
  const events: RedlockEvent[] = [];
  await using redlock = createRedlock(servers.urls, { onEvent: (event) => events.push(event) });
  await using lock = await redlock.acquire("filled in", { ttlMs: 20_000 });
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "filled in"), Array(3).fill(lock.value))
  );
  await servers[0].command("DEL", "filled in");
  const outcomes = () =>
    events.findLast((event) => event.type === "extended")!.votes
      .filter(({ node }) => node === servers.urls[0]).map(({ outcome }) => outcome);
  await lock.extend();
  // Whether its answer came before the decision or not, it was no grant.
  assert(!outcomes().includes("granted"));
  await eventually(async () =>
    assertEquals(await servers[0].command("GET", "filled in"), lock.value)
  );
  await servers[1].command("DEL", "filled in");
  await lock.extend(); // granted by the first and the third node
  assertEquals([lock.held, lock.extensions], [true, 2]);
});

Deno.test("Lock that a bare quorum holds is lost where one more node forgets it", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  await using lock = await redlock.acquire("eroded", { ttlMs: 20_000 });
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "eroded"), Array(3).fill(lock.value))
  );
  await onAll(servers.slice(0, 2), "DEL", "eroded");
  const error = await assertRejects(() => lock.extend(), LockLostError);
  assertEquals(
    error.message,
    'Cannot keep lock "eroded": a majority of the nodes no longer holds it',
  );
  assertEquals([lock.held, lock.signal.aborted], [false, true]);
  await eventually(async () => assertEquals(await onAll(servers, "EXISTS", "eroded"), [0, 0, 0]));
});

Deno.test("Lock that is extended by itself does not erode as all nodes restart empty, one by one", async () => {
  await using servers = await startServers(5);
  await using redlock = createRedlock(servers.urls);
  await using lock = await redlock.acquire("restarted", { ttlMs: 600, autoExtend: true });
  for (const server of servers) {
    await server.restart();
    await eventually(async () =>
      assertEquals(await server.command("GET", "restarted"), lock.value)
    );
    // Filled in; it counts once it has been extended, which takes a grant of its own.
    const { extensions } = lock;
    await eventually(() => lock.extensions > extensions + 1);
  }
  assertEquals([lock.held, lock.signal.aborted], [true, false]);
  assertEquals(await onAll(servers, "GET", "restarted"), Array(5).fill(lock.value));
});

Deno.test("Lock whose majority restarts empty at once is lost before the TTL", async () => {
  await using servers = await startServers(5);
  await using redlock = createRedlock(servers.urls, { driftFactor: AMPLE_DRIFT });
  const startMs = performance.now();
  await using lock = await redlock.acquire("restarted", { ttlMs: 2_000, autoExtend: true });
  const aborted = abortedAt(lock.signal);
  await Promise.all(servers.slice(0, 3).map((server) => server.restart()));
  assertLess(await aborted, startMs + 2_000);
  await eventually(async () =>
    assertEquals(await onAll(servers, "EXISTS", "restarted"), [0, 0, 0, 0, 0])
  );
});

Deno.test("extend() does not steal keys of another, and succeeds on the other nodes", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  await using lock = await redlock.acquire("partly taken", { ttlMs: 20_000 });
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "partly taken"), Array(5).fill(lock.value))
  );
  await holdByAnother(servers.slice(0, 2), "partly taken", 5_000);
  await lock.extend({ ttlMs: 60_000 });
  assertGreater(lock.remainingMs(), 50_000);
  assertEquals(
    await onAll(servers, "GET", "partly taken"),
    ["another", "another", lock.value, lock.value, lock.value],
  );
  for (const pttl of await onAll(servers.slice(0, 2), "PTTL", "partly taken")) {
    assertLessOrEqual(Number(pttl), 5_000);
  }
});

Deno.test("extend() reports no success where another holds a majority", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  await using lock = await redlock.acquire("taken", { ttlMs: 20_000 });
  await holdByAnother(servers.slice(0, 2), "taken");
  await assertRejects(() => lock.extend(), LockLostError);
  assertEquals([lock.held, lock.extensions], [false, 0]);
  assertEquals(await onAll(servers.slice(0, 2), "GET", "taken"), ["another", "another"]);
});

Deno.test("extend() never shortens the TTL nor the validity", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  await using lock = await redlock.acquire("long", { ttlMs: 60_000 });
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "long"), Array(5).fill(lock.value))
  );
  await lock.extend({ ttlMs: 1_000 });
  assertGreater(lock.remainingMs(), 50_000);
  for (const pttl of await onAll(servers, "PTTL", "long")) assertGreater(Number(pttl), 50_000);
});

Deno.test("extend() whose replies come after the old validity has ended does not prolong the lock", async () => {
  await using servers = shared.lend(3);
  await using proxies = startProxies(servers);
  await using redlock = createRedlock(proxies.urls, {
    nodeTimeoutMs: 5_000,
    driftFactor: AMPLE_DRIFT,
  });
  await warmUp(redlock, servers);
  const startMs = performance.now();
  await using lock = await redlock.acquire("late", { ttlMs: 1_000 });
  const aborted = abortedAt(lock.signal);
  for (const proxy of proxies) proxy.delay({ repliesMs: 1_000 });
  await assertRejects(
    () => deadline(lock.extend({ ttlMs: 60_000 }), 1_000 + SLACK_MS),
    LockLostError,
    'Cannot keep lock "late": its validity has ended',
  );
  assertLess(await aborted, startMs + 1_000);
  assertEquals([lock.held, lock.extensions], [false, 0]);
  // The nodes have prolonged the keys by a minute; they are taken back.
  await eventually(async () => assertEquals(await onAll(servers, "EXISTS", "late"), [0, 0, 0]));
});

for (const first of ["extend", "release"] as const) {
  for (const scripts of ["loaded", "flushed", "flushed but for the release"]) {
    Deno.test(`${first}() first, release() and extend() at once leave no key, scripts ${scripts}`, async () => {
      await using servers = shared.lend();
      await using redlock = createRedlock(servers.urls);
      await warmUp(redlock, servers);
      const lock = await redlock.acquire("raced");
      if (scripts !== "loaded") await onAll(servers, "SCRIPT", "FLUSH");
      if (scripts === "flushed but for the release") {
        const other = await redlock.acquire("other");
        await eventually(() => other.votes.length === 5);
        await other.release();
        await eventually(async () =>
          assertEquals(await onAll(servers, "EXISTS", "other"), [0, 0, 0, 0, 0])
        );
      }
      const extending = first === "extend" ? lock.extend() : undefined;
      const releasing = lock.release();
      const extended = (extending ?? lock.extend()).then(() => undefined, (error) => error);
      assertEquals(await releasing, true);
      const error = await extended;
      assert(error === undefined || error instanceof LockLostError);
      assertEquals(lock.held, false);
      await redlock.close(); // whatever is on its way is answered
      assertEquals(await onAll(servers, "EXISTS", "raced"), [0, 0, 0, 0, 0]);
    });
  }
}

Deno.test("Lock that is extended by itself and released at any moment leaves no key", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  const ends = Array.from({ length: 40 }, async (_, index) => {
    const lock = await redlock.acquire(`raced ${index}`, { ttlMs: 90, autoExtend: true });
    await new Promise((resolve) => setTimeout(resolve, 15 + index));
    await lock.release();
  });
  await Promise.all(ends);
  await redlock.close();
  assertEquals(await onAll(servers, "DBSIZE"), [0, 0, 0, 0, 0]);
});

Deno.test("Lock that is extended by itself tries again after an error, and is kept", async () => {
  await using servers = shared.lend(3);
  const types: string[] = [];
  await using redlock = createRedlock(servers.urls, {
    onEvent: ({ type }) => types.push(type),
  });
  await using lock = await redlock.acquire("watched", { ttlMs: 900, autoExtend: true });
  await onAll(servers, "REPLICAOF", "127.0.0.1", 1);
  await eventually(() => types.includes("extend-failed"));
  await onAll(servers, "REPLICAOF", "NO", "ONE");
  await eventually(() => lock.extensions >= 3 || lock.signal.aborted);
  assertEquals([lock.held, lock.signal.reason], [true, undefined]);
});

Deno.test("Lock that is extended by itself is lost after extensionsMax extensions", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  await using lock = await redlock.acquire("limited", {
    ttlMs: 300,
    autoExtend: true,
    extensionsMax: 2,
  });
  await deadline(abortedAt(lock.signal), 3 * 300 + SLACK_MS);
  assertEquals(lock.extensions, 2);
  assertEquals(
    lock.signal.reason.message,
    `Cannot keep lock "limited": it was extended 2 times, the most that 'extensionsMax' allows`,
  );
});

Deno.test("Lock with a short TTL is extended thrice a TTL, not without a pause", async () => {
  await using servers = shared.lend(1);
  await using redlock = createRedlock(servers.urls);
  await warmUp(redlock, servers);
  await servers[0].resetCommandCounts();
  const startMs = performance.now();
  await using lock = await redlock.acquire("short", { ttlMs: 30, autoExtend: true });
  await eventually(() => !lock.held || performance.now() - startMs > 300);
  const elapsedMs = performance.now() - startMs;
  const { evalsha = 0, eval: whole = 0 } = await servers[0].commandCounts();
  assertLess(evalsha + whole, 2 * elapsedMs / 10 + 5);
});

Deno.test("Lock whose extensions fail at once is not extended without a pause", async () => {
  await using servers = shared.lend(1);
  let failures = 0;
  await using redlock = createRedlock(servers.urls, {
    onEvent: ({ type }) => {
      if (type === "extend-failed") failures++;
    },
  });
  await using lock = await redlock.acquire("failing", { ttlMs: 450, autoExtend: true });
  await servers[0].command("REPLICAOF", "127.0.0.1", 1);
  await abortedAt(lock.signal);
  // Two thirds of the TTL, one try each fifteenth.
  assertGreater(failures, 2);
  assertLess(failures, 20);
});

/** Replaces the wall clock for the rest of the block. */
function stepWallClock(stepMs: number): Disposable {
  const { now } = Date;
  Date.now = () => now() + stepMs;
  return {
    [Symbol.dispose]() {
      Date.now = now;
    },
  };
}

Deno.test("Lock counts as lost where the wall clock steps ahead, as after the machine slept", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  await using lock = await redlock.acquire("slept", { ttlMs: 30_000 });
  const { signal } = lock;
  using _clock = stepWallClock(60_000);
  assertEquals([lock.held, lock.remainingMs()], [false, 0]);
  await deadline(abortedAt(signal), 250 + SLACK_MS); // noticed without being asked
});

Deno.test("Lock ends at its validity where the wall clock steps back", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls, { driftFactor: AMPLE_DRIFT });
  const startMs = performance.now();
  await using lock = await redlock.acquire("stepped back", { ttlMs: 600 });
  using _clock = stepWallClock(-60_000);
  assertEquals(lock.held, true);
  assertLess(await abortedAt(lock.signal), startMs + 600);
  assertEquals(lock.held, false);
});

/** Faults that leave a holder without its majority, and how each is brought about. */
const HELD_WHILE: [string, (servers: ServersAndProxies) => Promise<void> | void][] = [
  ["refuses connections", async ({ proxies }) => {
    for (const proxy of proxies.slice(0, 3)) {
      await proxy.refuse();
      proxy.cut();
    }
  }],
  ["hears requests but can't answer", ({ proxies }) => {
    for (const proxy of proxies.slice(0, 3)) proxy.stallReplies();
  }],
  ["refuses to write", async ({ servers }) => {
    await onAll(servers.slice(0, 3), "REPLICAOF", "127.0.0.1", 1);
  }],
];

interface ServersAndProxies {
  servers: Awaited<ReturnType<typeof startServers<5>>>;
  proxies: ReturnType<typeof startProxies>;
}

for (const [what, bringAbout] of HELD_WHILE) {
  Deno.test(`Lock whose majority ${what} while it is extended by itself aborts before the TTL`, async () => {
    await using servers = await startServers(5);
    await using proxies = startProxies(servers);
    await using redlock = createRedlock(proxies.urls, { driftFactor: AMPLE_DRIFT });
    const startMs = performance.now();
    await using lock: Lock = await redlock.acquire("held", { ttlMs: 900, autoExtend: true });
    const aborted = abortedAt(lock.signal);
    await bringAbout({ servers, proxies });
    assertLess(await deadline(aborted, 900 + SLACK_MS), startMs + 900);
    assertEquals([lock.held, lock.extensions], [false, 0]);
    assert(lock.signal.reason instanceof LockLostError);
    assertMatch(
      lock.signal.reason.message,
      /^Cannot keep lock "held": its validity has ended before an extension succeeded: [012] of 5 nodes granted it(, [123] (failed|timed out))?, 3 are needed$/,
    );
  });
}

Deno.test("Lock excludes every other client for as long as it says it is held", async () => {
  await using servers = shared.lend();
  await using first = createRedlock(servers.urls);
  await using second = createRedlock(servers.urls);
  const lock = await first.acquire("exclusive", { ttlMs: 800, autoExtend: true });
  for (let asked = 0; asked < 50; asked++) {
    const { held } = lock;
    const other = await second.tryAcquire("exclusive");
    assert(!(held && lock.held && other !== undefined));
  }
  await assertRejects(() => second.acquire("exclusive", { waitMs: 0 }), LockHeldError);
  await lock.release();
  await using _other = await second.acquire("exclusive");
});
