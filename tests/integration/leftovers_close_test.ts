import { assertEquals, assertLess, assertMatch, assertRejects } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, RedlockError } from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import { gone, onAll, shareServers, startProxies, warmUp } from "../support/shared_servers.ts";
import { SLACK_MS, TTL_MS } from "../support/times.ts";

const shared = shareServers(5);

Deno.test("close() releases the locks that are held, whose signals abort", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS });
  const lock = await redlock.acquire("held");
  const extended = await redlock.acquire("extended", { autoExtend: true });
  const { signal } = lock;
  await deadline(redlock.close(), SLACK_MS);
  assertEquals([lock.held, signal.aborted, extended.held], [false, true, false]);
  assertEquals(
    signal.reason.message,
    'Cannot keep lock "held": the lock client was closed',
  );
  assertEquals(await onAll(servers, "EXISTS", "held", "extended"), [0, 0, 0, 0, 0]);
});

Deno.test("close() leaves no key of an attempt that is on its way", async () => {
  await using servers = shared.lend();
  for (const connected of [true, false]) {
    await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS });
    if (connected) await warmUp(redlock, servers);
    const rejected = assertRejects(() => redlock.acquire("on its way"), RedlockError);
    await deadline(redlock.close(), SLACK_MS);
    const error = await rejected;
    assertEquals(error.code, "CLOSED");
    assertEquals(error.message, 'Cannot acquire lock "on its way": the lock client is closed');
    assertEquals(await onAll(servers, "EXISTS", "on its way"), [0, 0, 0, 0, 0]);
  }
});

Deno.test("close() has a release sent whole to nodes that don't know its script", async () => {
  await using servers = shared.lend();
  await using proxies = await startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { ttlMs: TTL_MS });
  await warmUp(redlock, servers);
  const lock = await redlock.acquire("unknown");
  await eventually(() => lock.votes.length === 5);
  await onAll(servers, "SCRIPT", "FLUSH");
  for (const proxy of proxies.slice(3)) proxy.delay(40, "replies");
  assertEquals(await lock.release(), true);
  await deadline(redlock.close(), 500 + SLACK_MS);
  await gone(servers, "unknown");
});

Deno.test("close() settles with hung nodes, and leaves no key on the others nor, once they go on, on them", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS, nodeTimeoutMs: 5_000 });
  const lock = await redlock.acquire("held");
  await eventually(async () =>
    assertEquals(await onAll(servers, "GET", "held"), Array(5).fill(lock.value))
  );
  await Promise.all(servers.slice(0, 3).map((server) => server.pause()));
  const rejected = assertRejects(() => redlock.acquire("on its way"), RedlockError);
  await eventually(async () =>
    assertEquals(await onAll(servers.slice(3), "EXISTS", "on its way"), [1, 1])
  );
  const startMs = performance.now();
  await deadline(redlock.close(), 500 + SLACK_MS);
  assertLess(performance.now() - startMs, 500 + SLACK_MS);
  await rejected;
  assertEquals(await onAll(servers.slice(3), "EXISTS", "held", "on its way"), [0, 0]);
  for (const server of servers) server.resume();
  await eventually(async () =>
    assertEquals(await onAll(servers, "EXISTS", "held", "on its way"), [0, 0, 0, 0, 0])
  );
});

Deno.test("close() is idempotent, and every call after it rejects", async () => {
  await using servers = shared.lend(1);
  const redlock = createRedlock(servers.urls);
  await Promise.all([redlock.close(), redlock.close()]);
  await redlock.close();
  for (
    const call of [
      () => redlock.acquire("a"),
      () => redlock.tryAcquire("a"),
      () => redlock.using("a", () => {}),
      () => redlock.inspect("a"),
    ]
  ) {
    const error = await assertRejects(call, RedlockError);
    assertEquals([error.code, error.resources, error.votes], ["CLOSED", ["a"], []]);
    assertMatch(error.message, /^Cannot (acquire|inspect) lock "a": the lock client is closed$/);
  }
});
