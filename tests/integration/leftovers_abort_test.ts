import { assertEquals, assertRejects } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock } from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import {
  ANOTHER,
  gone,
  holdByAnother,
  onAll,
  shareServers,
  startProxies,
  warmUp,
} from "../support/shared_servers.ts";
import { SLACK_MS, TTL_MS } from "../support/times.ts";

const shared = shareServers(5);

Deno.test("acquire() and tryAcquire() with a signal that has aborted send nothing", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  await Promise.all(servers.map((server) => server.resetCommandCounts()));
  const reason = new Error("never mind");
  const signal = AbortSignal.abort(reason);
  assertEquals(await assertRejects(() => redlock.acquire("unwanted", { signal })), reason);
  assertEquals(await assertRejects(() => redlock.tryAcquire("unwanted", { signal })), reason);
  await redlock.close();
  for (const server of servers) {
    const counts = await server.commandCounts();
    assertEquals([counts.set, counts.evalsha, counts.eval], [undefined, undefined, undefined]);
  }
});

Deno.test("acquire() aborted while its requests are on their way leaves no key", async () => {
  await using servers = shared.lend();
  await using proxies = await startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { ttlMs: TTL_MS });
  await warmUp(redlock, servers);
  for (const proxy of proxies) proxy.hang("requests");
  const controller = new AbortController();
  const acquiring = redlock.acquire("aborted", { signal: controller.signal });
  await eventually(() => proxies.every((proxy) => proxy.buffered.requests > 0));
  controller.abort();
  const error = await assertRejects(() => deadline(acquiring, SLACK_MS));
  assertEquals(error, controller.signal.reason);
  await Promise.all(servers.map((server) => server.resetCommandCounts()));
  for (const proxy of proxies) proxy.resume();
  // The SET arrives after all, and what undoes it right behind.
  await eventually(async () => {
    for (const server of servers) {
      const counts = await server.commandCounts();
      assertEquals([counts.set, counts.del], [1, 1]);
    }
  });
  await gone(servers, "aborted");
});

Deno.test("acquire() aborted after its keys were set leaves no key", async () => {
  await using servers = shared.lend();
  await using proxies = await startProxies(servers);
  await using redlock = createRedlock(proxies.urls, { ttlMs: TTL_MS });
  await warmUp(redlock, servers);
  for (const proxy of proxies) proxy.hang("replies");
  const controller = new AbortController();
  const acquiring = redlock.acquire("aborted", { signal: controller.signal });
  await eventually(async () =>
    assertEquals(await onAll(servers, "EXISTS", "aborted"), [1, 1, 1, 1, 1])
  );
  controller.abort();
  await assertRejects(() => deadline(acquiring, SLACK_MS));
  await gone(servers, "aborted"); // while no reply has come yet
});

Deno.test("acquire() aborted while its first connections are made leaves no key", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS });
  const controller = new AbortController();
  const acquiring = redlock.acquire("aborted", { signal: controller.signal });
  controller.abort();
  await assertRejects(() => deadline(acquiring, SLACK_MS));
  await using _lock = await redlock.acquire("something else");
  await gone(servers, "aborted");
});

Deno.test("acquire() aborted while it waits leaves no key", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS, retryDelayMs: 60_000 });
  await holdByAnother(servers.slice(0, 3), "waited for");
  const controller = new AbortController();
  let attempts = 0;
  const acquiring = redlock.acquire("waited for", {
    waitMs: Infinity,
    signal: controller.signal,
    onEvent: ({ type }) => {
      if (type === "attempt") attempts++;
    },
  });
  await eventually(() => attempts > 0);
  controller.abort();
  await assertRejects(() => deadline(acquiring, SLACK_MS));
  await gone(servers.slice(3), "waited for");
  assertEquals(await onAll(servers.slice(0, 3), "GET", "waited for"), Array(3).fill(ANOTHER));
});

Deno.test("acquire() aborted in the listener that is called with the lock rejects, and leaves no key", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS });
  const controller = new AbortController();
  const reason = new Error("not any more");
  const error = await assertRejects(() =>
    redlock.acquire("aborted", {
      signal: controller.signal,
      onEvent: ({ type }) => {
        if (type === "acquired") controller.abort(reason);
      },
    })
  );
  assertEquals(error, reason);
  await gone(servers, "aborted");
});
