import {
  assert,
  assertEquals,
  assertGreater,
  assertLess,
  assertMatch,
  assertRejects,
} from "@std/assert";
import { deadline } from "@std/async/deadline";
import {
  createRedlock,
  LockHeldError,
  QuorumError,
  RedlockError,
  type RedlockEvent,
} from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import {
  holdByAnother,
  onAll,
  recordCommands,
  recordedCommands,
  shareServers,
  warmUp,
} from "../support/shared_servers.ts";
import { startServers } from "../support/servers.ts";
import { LONG_NODE_TIMEOUT_MS, SLACK_MS, TTL_MS } from "../support/times.ts";

const shared = shareServers(5);

Deno.test("acquire() on two nodes settles where the vote splits 1-1", async () => {
  await using servers = shared.lend(2);
  await using redlock = createRedlock(servers.urls);
  await holdByAnother([servers[0]], "split");
  const error = await assertRejects(
    () => deadline(redlock.acquire("split", { waitMs: 200 }), 200 + SLACK_MS),
    LockHeldError,
  );
  // The other node's grant may come before or after the decision.
  assertMatch(
    error.message,
    /^Cannot acquire lock "split": someone else holds it; waited \d+ ms; (?:its key expires in \d+ ms unless it is extended; )?[01] of 2 nodes granted it, 1 denied, 2 are needed$/,
  );
  assertEquals(error.code, "LOCK_HELD");
});

Deno.test("acquire() on four nodes settles where the vote splits 2-2", async () => {
  await using servers = shared.lend(4);
  await using redlock = createRedlock(servers.urls);
  await holdByAnother(servers.slice(0, 2), "split");
  const error = await assertRejects(
    () => deadline(redlock.acquire("split", { waitMs: 200 }), 200 + SLACK_MS),
    LockHeldError,
  );
  assertMatch(
    error.message,
    /^Cannot acquire lock "split": someone else holds it; waited \d+ ms; (?:its key expires in \d+ ms unless it is extended; )?[012] of 4 nodes granted it, 2 denied(, 1 failed)?, 3 are needed$/,
  );
});

Deno.test("acquire() on three nodes settles where one is locked by another and one hangs", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: 500 });
  await holdByAnother([servers[0]], "halved");
  await servers[1].pause();
  const error = await assertRejects(
    () => deadline(redlock.acquire("halved", { waitMs: 200 }), 200 + 500 + SLACK_MS),
    LockHeldError,
  );
  assertMatch(
    error.message,
    /^Cannot acquire lock "halved": others hold it or compete for it; waited \d+ ms; (?:its key expires in \d+ ms unless it is extended; )?1 of 3 nodes granted it, 1 denied, 1 timed out, 2 are needed$/,
  );
});

Deno.test("tryAcquire() resolves to undefined on a split vote, with a node that hangs too", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: 500 });
  await holdByAnother([servers[0]], "halved");
  await servers[1].pause();
  assertEquals(await deadline(redlock.tryAcquire("halved"), 500 + SLACK_MS), undefined);
});

Deno.test("acquire() with one of three nodes hung does not wait for it, nor lose validity to it", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls, {
    ttlMs: TTL_MS,
    nodeTimeoutMs: LONG_NODE_TIMEOUT_MS,
  });
  await servers[2].pause();
  for (let round = 0; round < 3; round++) {
    const lock = await deadline(redlock.acquire(`hung ${round}`), SLACK_MS);
    assertGreater(lock.remainingMs(), TTL_MS - LONG_NODE_TIMEOUT_MS / 2);
    assertEquals(await deadline(lock.release(), SLACK_MS), true);
  }
});

Deno.test("acquire() with one of three nodes refusing connections does not wait for it", async () => {
  await using servers = await startServers(3);
  await servers[2].kill();
  await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: 5_000 });
  for (let round = 0; round < 3; round++) {
    const lock = await deadline(redlock.acquire(`refused ${round}`), SLACK_MS);
    assertEquals(await deadline(lock.release(), SLACK_MS), true);
  }
});

/** Has a call ask again and again. */
const POLLING = { notify: false, retryDelayMs: 5, retryDelayMaxMs: 20 };

Deno.test("acquire() takes back the key of a denied attempt before the next, so that none blocks itself", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls, POLLING);
  await holdByAnother(servers.slice(0, 2), "contended");
  let denied = 0;
  const acquiring = redlock.acquire("contended", {
    onEvent: ({ type }) => {
      if (type === "attempt") denied++;
    },
  });
  await eventually(() => denied >= 3);
  await onAll(servers.slice(0, 2), "DEL", "contended");
  await using lock = await deadline(acquiring, SLACK_MS);
  await eventually(() => {
    const own = lock.votes.find(({ node }) => node === servers[2].url); // it granted each attempt
    assertEquals(own?.outcome, "granted");
  });
});

Deno.test("acquire() draws a fresh value for every attempt", async () => {
  await using servers = shared.lend(3);
  await recordCommands(servers[2]);
  await using redlock = createRedlock(servers.urls, POLLING);
  await holdByAnother(servers.slice(0, 2), "retried");
  let attempts = 0;
  const onEvent = ({ type }: RedlockEvent) => void (type === "attempt" && attempts++);
  const rejected = assertRejects(() => redlock.acquire("retried", { onEvent }), RedlockError);
  await eventually(() => attempts > 2);
  await redlock.close();
  await rejected;
  const values = (await recordedCommands(servers[2]))
    .filter(([name]) => name === "SET").map(([, , value]) => value);
  assertGreater(values.length, 2);
  assertEquals(new Set(values).size, values.length);
});

Deno.test("acquire() lets contenders that split the vote over three nodes through one after the other", async () => {
  await using servers = shared.lend(3);
  const contenders = Array.from(
    { length: 3 },
    () => createRedlock(servers.urls, { ttlMs: 20_000, waitMs: 15_000, retryDelayMs: 20 }),
  );
  await using stack = new AsyncDisposableStack();
  contenders.forEach((waiter) => stack.use(waiter));
  let inside = 0;
  let most = 0;
  const rounds = 4;
  await deadline(
    Promise.all(contenders.map(async (waiter) => {
      for (let round = 0; round < rounds; round++) {
        const lock = await waiter.acquire("contended");
        most = Math.max(most, ++inside);
        await Promise.resolve();
        inside--;
        await lock.release();
      }
    })),
    10_000,
  );
  assertEquals(most, 1);
});

Deno.test("acquire() lets many callers of one client through, one at a time", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { retryDelayMs: 5, retryDelayMaxMs: 20 });
  let inside = 0;
  let most = 0;
  const callers = Array.from({ length: 30 }, () =>
    redlock.using("queued", async () => {
      most = Math.max(most, ++inside);
      await new Promise((resolve) => setTimeout(resolve, 1));
      inside--;
    }));
  await deadline(Promise.all(callers), 9_000);
  assertEquals(most, 1);
});

Deno.test("acquire() makes one attempt where waitMs is 0", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  await holdByAnother(servers, "held");
  let attempts = 0;
  const error = await assertRejects(
    () =>
      deadline(
        redlock.acquire("held", {
          waitMs: 0,
          onEvent: ({ type }) => {
            if (type === "attempt") attempts++;
          },
        }),
        SLACK_MS,
      ),
    LockHeldError,
  );
  assertEquals(attempts, 1);
  assertMatch(
    error.message,
    /^Cannot acquire lock "held": someone else holds it; 0 of 3 nodes granted it, [23] denied, 2 are needed$/,
  );
});

Deno.test("acquire() says that a key without a TTL is in its way, and inspect() does too", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  await onAll(servers, "SET", "for ever", "not a lock's");
  const error = await assertRejects(
    () => redlock.acquire("for ever", { waitMs: 1_000 }),
    LockHeldError,
  );
  assertMatch(error.message, /; its key has no TTL, so no lock library set it; /);
  assertEquals(error.remainingMs, Infinity);
  const { held, foreign } = await redlock.inspect("for ever");
  assertEquals([held, foreign], [true, "has no TTL, so no lock library set it"]);
});

Deno.test("acquire() gives up once waitMs has passed, and not before", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  await holdByAnother(servers, "held");
  const startMs = performance.now();
  await assertRejects(
    () => deadline(redlock.acquire("held", { waitMs: 300 }), 300 + SLACK_MS),
    LockHeldError,
  );
  assertGreater(performance.now() - startMs, 290);
});

Deno.test("acquire() waits for ever where waitMs is Infinity, until the resource is free", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, POLLING);
  await holdByAnother(servers, "held");
  let attempts = 0;
  const acquiring = redlock.acquire("held", {
    waitMs: Infinity,
    onEvent: ({ type }) => {
      if (type === "attempt") attempts++;
    },
  });
  await eventually(() => attempts >= 5);
  await onAll(servers, "DEL", "held");
  await using lock = await deadline(acquiring, SLACK_MS);
  assertEquals(lock.held, true);
});

Deno.test("acquire() gets the lock of a crashed holder once its keys have expired", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { retryDelayMaxMs: 100 });
  await holdByAnother(servers, "crashed", 300);
  await using lock = await deadline(redlock.acquire("crashed"), 300 + 100 + SLACK_MS);
  assertEquals(lock.held, true);
});

Deno.test("acquire() that waits is ended by its signal at once, with the signal's reason", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { retryDelayMs: 60_000 });
  await holdByAnother(servers, "held");
  const controller = new AbortController();
  let attempts = 0;
  const acquiring = redlock.acquire("held", {
    waitMs: Infinity,
    signal: controller.signal,
    onEvent: ({ type }) => {
      if (type === "attempt") attempts++;
    },
  });
  await eventually(() => attempts >= 1);
  const reason = new Error("changed my mind");
  controller.abort(reason);
  assertEquals(await assertRejects(() => deadline(acquiring, SLACK_MS)), reason);
});

Deno.test("acquire() that waits for hung nodes is ended by its signal at once", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: 5_000 });
  await warmUp(redlock, servers);
  await Promise.all(servers.map((server) => server.pause()));
  const controller = new AbortController();
  const acquiring = redlock.acquire("hung", { signal: controller.signal });
  controller.abort();
  const error = await assertRejects(() => deadline(acquiring, SLACK_MS));
  assertEquals(error, controller.signal.reason);
});

Deno.test("acquire() that waits rejects when the client is closed, which settles too", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { retryDelayMs: 60_000 });
  await holdByAnother(servers, "held");
  let attempts = 0;
  const acquiring = redlock.acquire("held", {
    waitMs: Infinity,
    onEvent: ({ type }) => {
      if (type === "attempt") attempts++;
    },
  });
  const rejected = assertRejects(() => deadline(acquiring, 5_000), RedlockError);
  await eventually(() => attempts >= 1);
  await deadline(redlock.close(), SLACK_MS);
  const error = await rejected;
  assertEquals(error.code, "CLOSED");
  assertEquals(error.message, 'Cannot acquire lock "held": the lock client is closed');
});

Deno.test("acquire() counts the validity from the winning attempt, not from the call", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { retryDelayMs: 5, retryDelayMaxMs: 20 });
  const startMs = performance.now();
  await holdByAnother(servers, "waited for", 3_000);
  await using lock = await redlock.acquire("waited for", { ttlMs: 10_000 });
  const waitedMs = performance.now() - startMs;
  assertGreater(waitedMs, 2_900);
  assertGreater(lock.remainingMs(), 10_000 - 102 - 2_800);
});

Deno.test("acquire() whose last attempt finds too few nodes is a QuorumError, though others held it before", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: 50, retryDelayMaxMs: 20 });
  await holdByAnother(servers, "held then hung");
  let attempts = 0;
  const acquiring = redlock.acquire("held then hung", {
    waitMs: 4_000,
    onEvent: ({ type }) => {
      if (type === "attempt") attempts++;
    },
  });
  const rejected = assertRejects(() => deadline(acquiring, 4_050 + SLACK_MS), QuorumError);
  await eventually(() => attempts >= 2);
  await Promise.all([servers[0].pause(), servers[1].pause()]);
  assertEquals((await rejected).code, "NO_QUORUM");
});

Deno.test("release() of a lock that ran out returns false quickly, without retries", async () => {
  await using servers = shared.lend();
  await recordCommands(servers[0]);
  await using redlock = createRedlock(servers.urls);
  // One attempt wins: another one before it would be taken back, by a script as well.
  const options = { ttlMs: 1_000, nodeTimeoutMs: 1_000, waitMs: 0 };
  const lock = await redlock.acquire("expired", options);
  const scripts = async () =>
    (await recordedCommands(servers[0])).filter(([name]) => name.startsWith("EVAL"));
  await eventually(async () => (await scripts()).length === 1); // it is taken back at its TTL
  await recordCommands(servers[0]);
  assertEquals(await deadline(lock.release(), SLACK_MS), false);
  await redlock.close();
  assertEquals((await scripts()).length, 1);
});

Deno.test("release() of a lock that ran out returns false quickly where all nodes hang", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: 100 });
  const lock = await redlock.acquire("expired", { ttlMs: 100 });
  await Promise.all(servers.map((server) => server.pause()));
  await eventually(() => !lock.held);
  assertEquals(await deadline(lock.release(), 100 + SLACK_MS), false);
});

Deno.test("using() settles where a majority hangs while the routine runs", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: 2_000, nodeTimeoutMs: 100 });
  const startMs = performance.now();
  const result = redlock.using("hung", async (lock) => {
    await Promise.all(servers.slice(0, 3).map((server) => server.pause()));
    assert(lock.held);
    return "done";
  });
  // The routine is over while the lock is valid: its result counts, although nobody confirms the
  // release.
  assertEquals(await deadline(result, 100 + SLACK_MS), "done");
  assertLess(performance.now() - startMs, 2_000 + SLACK_MS);
});
