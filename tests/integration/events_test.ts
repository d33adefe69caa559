import {
  assert,
  assertEquals,
  assertGreater,
  assertLess,
  assertMatch,
  assertRejects,
} from "@std/assert";
import { createRedlock, LockHeldError, QuorumError, type RedlockEvent } from "../../mod.ts";
import { abortedAt, eventually } from "../support/eventually.ts";
import { startServer, startServers } from "../support/servers.ts";
import { holdByAnother, onAll, shareServers, startProxies } from "../support/shared_servers.ts";
import { KEPT_TTL_MS } from "../support/times.ts";

const shared = shareServers(5);

/** Keeps events; `ofLocks` leaves out those of nodes. */
class Recorder {
  readonly events: RedlockEvent[] = [];

  readonly listener = (event: RedlockEvent): void => {
    this.events.push(event);
  };

  get ofLocks(): RedlockEvent[] {
    return this.events.filter(({ type }) => !type.startsWith("node-"));
  }

  types(): string[] {
    return this.ofLocks.map(({ type }) => type);
  }

  last<Type extends RedlockEvent["type"]>(type: Type): Extract<RedlockEvent, { type: Type }> {
    const event = this.events.findLast((event) => event.type === type);
    assert(event, `no ${type} event`);
    return event as Extract<RedlockEvent, { type: Type }>;
  }
}

Deno.test("using() without contention emits attempt, acquired and released, in this order", async () => {
  await using servers = shared.lend();
  const recorder = new Recorder();
  await using redlock = createRedlock(servers.urls, { onEvent: recorder.listener, ttlMs: 20_000 });
  await redlock.using("quiet", () => {});
  assertEquals(recorder.types(), ["attempt", "acquired", "released"]);
  for (const event of recorder.ofLocks) {
    assert("resources" in event);
    assertEquals(event.resources, ["quiet"]);
  }
  const { attempt, granted } = recorder.last("attempt");
  assertEquals([attempt, granted], [1, true]);
  const { attempts, remainingMs, votes } = recorder.last("acquired");
  assertEquals(attempts, 1);
  assertGreater(remainingMs, 10_000);
  assertLess(remainingMs, 20_000);
  assertGreater(votes.filter(({ outcome }) => outcome === "granted").length, 2);
  assertEquals(recorder.last("released").confirmed, true);
});

Deno.test("createRedlock() reports each node once, when its first connection is made", async () => {
  await using servers = shared.lend();
  const recorder = new Recorder();
  await using redlock = createRedlock(servers.urls, { onEvent: recorder.listener });
  assertEquals(recorder.events, []);
  await (await redlock.acquire("first")).release();
  await (await redlock.acquire("second")).release();
  const connected = () =>
    recorder.events.flatMap((event) => event.type === "node-connected" ? [event.node] : []).sort();
  await eventually(() => assertEquals(connected(), servers.urls.toSorted()));
});

Deno.test("acquire() that waits for another emits a denied attempt each time, and no error", async () => {
  await using servers = shared.lend();
  const recorder = new Recorder();
  await using redlock = createRedlock(servers.urls, {
    onEvent: recorder.listener,
    retryDelayMs: 5,
    retryDelayMaxMs: 10,
  });
  await holdByAnother(servers, "contended");
  const acquiring = redlock.acquire("contended");
  await eventually(() => recorder.types().length >= 3);
  await onAll(servers, "DEL", "contended");
  await (await acquiring).release();
  const types = recorder.types();
  assertEquals(types.slice(-2), ["acquired", "released"]);
  assertEquals(new Set(types.slice(0, -2)), new Set(["attempt"]));
  const attempts = recorder.events.filter((event) => event.type === "attempt");
  assertEquals(
    attempts.map(({ granted }) => granted),
    attempts.map((_, index) => index === attempts.length - 1),
  );
  assertEquals(attempts.map(({ attempt }) => attempt), attempts.map((_, index) => index + 1));
  assertEquals(recorder.last("acquired").attempts, attempts.length);
  for (const { votes } of attempts) assert(votes.every(({ error }) => error === undefined));
});

Deno.test("acquire() that gives up for another emits denied once, with that reason", async () => {
  await using servers = shared.lend();
  const recorder = new Recorder();
  await using redlock = createRedlock(servers.urls, { onEvent: recorder.listener });
  await holdByAnother(servers, "held");
  await assertRejects(() => redlock.acquire("held", { waitMs: 100 }), LockHeldError);
  assertEquals(recorder.types().filter((type) => type !== "attempt"), ["denied"]);
  const { reason, resources } = recorder.last("denied");
  assertEquals([reason, resources], ["held", ["held"]]);
});

Deno.test("tryAcquire() that finds the resource held emits attempt and denied", async () => {
  await using servers = shared.lend();
  const recorder = new Recorder();
  await using redlock = createRedlock(servers.urls);
  await holdByAnother(servers, "held");
  assertEquals(await redlock.tryAcquire("held", { onEvent: recorder.listener }), undefined);
  assertEquals(recorder.types(), ["attempt", "denied"]);
  assertEquals(recorder.last("denied").reason, "held");
});

Deno.test("acquire() that finds no quorum emits denied with that reason, and the nodes' errors", async () => {
  await using servers = shared.lend();
  const recorder = new Recorder();
  await using redlock = createRedlock(servers.urls, { onEvent: recorder.listener });
  await onAll(servers.slice(0, 3), "REPLICAOF", "127.0.0.1", 1);
  const error = await assertRejects(() => redlock.acquire("erring", { waitMs: 0 }), QuorumError);
  assertEquals(recorder.types(), ["attempt", "denied"]);
  const { reason, votes } = recorder.last("denied");
  assertEquals(reason, "no-quorum");
  assertEquals(votes.filter((vote) => vote.error).length, 3);
  assertEquals(error.votes.length, votes.length);
});

Deno.test("extend() emits extended, with what it gained", async () => {
  await using servers = shared.lend();
  const recorder = new Recorder();
  await using redlock = createRedlock(servers.urls, { onEvent: recorder.listener });
  await using lock = await redlock.acquire("extended", { ttlMs: 5_000 });
  await lock.extend({ ttlMs: 60_000 });
  assertEquals(recorder.types(), ["attempt", "acquired", "extended"]);
  const { extensions, remainingMs, resources } = recorder.last("extended");
  assertEquals([extensions, resources], [1, ["extended"]]);
  assertGreater(remainingMs, 50_000);
});

Deno.test("a lost lock emits extend-failed and lost once, and released unconfirmed", async () => {
  await using servers = shared.lend();
  const recorder = new Recorder();
  await using redlock = createRedlock(servers.urls, { onEvent: recorder.listener });
  const lock = await redlock.acquire("lost", { ttlMs: KEPT_TTL_MS, autoExtend: true });
  await onAll(servers, "FLUSHALL");
  await abortedAt(lock.signal);
  await lock.release();
  assertEquals(recorder.types(), ["attempt", "acquired", "extend-failed", "lost", "released"]);
  const { cause, heldMs, resources } = recorder.last("lost");
  assertEquals(resources, ["lost"]);
  assert(cause instanceof Error);
  assertEquals(cause.message, "a majority of the nodes no longer holds it");
  assertGreater(heldMs, 50);
  assertEquals(recorder.last("released").confirmed, false);
});

Deno.test("release() without a quorum emits release-failed with the error it rejects with", async () => {
  await using servers = shared.lend();
  const recorder = new Recorder();
  await using redlock = createRedlock(servers.urls, {
    onEvent: recorder.listener,
    nodeTimeoutMs: 500,
  });
  const lock = await redlock.acquire("unreleased", { ttlMs: 20_000 });
  await Promise.all(servers.slice(0, 3).map((server) => server.pause()));
  const error = await assertRejects(() => lock.release(), QuorumError);
  assertEquals(recorder.types(), ["attempt", "acquired", "release-failed"]);
  assertEquals(recorder.last("release-failed").error, error);
});

Deno.test("a node that is lost and comes back emits node-disconnected and node-connected", async () => {
  await using servers = await startServers(3);
  const recorder = new Recorder();
  await using redlock = createRedlock(servers.urls, { onEvent: recorder.listener });
  await (await redlock.acquire("connected")).release();
  await eventually(() =>
    recorder.events.filter(({ type }) => type === "node-connected").length === 3
  );
  const before = recorder.events.length;
  await servers[1].kill();
  await eventually(() => recorder.events.length > before);
  const { node, error } = recorder.last("node-disconnected");
  assertEquals(node, servers.urls[1]);
  assertMatch(error.message, /^Connection to redis:\/\/127\.0\.0\.1:\d+ was lost: /);
  await servers[1].start();
  await eventually(() =>
    assertEquals(recorder.events.at(-1), { type: "node-connected", node: servers.urls[1] })
  );
});

Deno.test("a node's events name no credentials, and a lock's no value", async () => {
  await using server = await startServer({ password: "hunter2" });
  await using proxies = await startProxies([server]);
  const recorder = new Recorder();
  assert(proxies.urls[0].includes("hunter2"));
  await using redlock = createRedlock(proxies.urls, { onEvent: recorder.listener, waitMs: 0 });
  const values: string[] = [];
  await redlock.using("secret", async (lock) => {
    values.push(lock.value);
    await lock.extend();
  });
  await holdByAnother([server], "held");
  const held = await assertRejects(() => redlock.acquire("held"), LockHeldError);
  proxies[0].cut();
  await eventually(() => recorder.last("node-disconnected"));
  await server.command("CONFIG", "SET", "requirepass", "changed");
  proxies[0].cut();
  const refused = await assertRejects(() => redlock.acquire("refused"), QuorumError);
  const told = Deno.inspect([recorder.events, held, refused], { depth: 20 });
  for (const secret of ["hunter2", ...values]) assert(!told.includes(secret));
});

const BAD_LISTENERS: [string, () => unknown][] = [
  ["throws", () => {
    throw new Error("a listener's own");
  }],
  ["rejects", () => Promise.reject(new Error("a listener's own"))],
];

for (const [what, listener] of BAD_LISTENERS) {
  Deno.test(`a listener that ${what} changes nothing`, async () => {
    await using servers = shared.lend();
    let told = 0;
    await using redlock = createRedlock(servers.urls, {
      onEvent: () => {
        told++;
        return listener() as void;
      },
    });
    const result = await redlock.using("told", { ttlMs: KEPT_TTL_MS }, async (lock) => {
      await eventually(() => lock.extensions >= 1);
      return lock.held;
    });
    assertEquals(result, true);
    await holdByAnother(servers, "held");
    assertEquals(await redlock.tryAcquire("held"), undefined);
    await redlock.close();
    assertEquals(await onAll(servers, "EXISTS", "told"), [0, 0, 0, 0, 0]);
    assertGreater(told, 6);
  });
}

Deno.test("a listener that closes the client as the lock is won ends the call, and no key is left", async () => {
  await using servers = shared.lend();
  let closing: Promise<void> | undefined;
  const redlock = createRedlock(servers.urls, {
    onEvent: ({ type }) => {
      if (type === "acquired") closing = redlock.close();
    },
  });
  const error = await assertRejects(() => redlock.acquire("closed"));
  assert(error instanceof Error);
  assertEquals(error.message, 'Cannot acquire lock "closed": the lock client is closed');
  await closing;
  assertEquals(await onAll(servers, "EXISTS", "closed"), [0, 0, 0, 0, 0]);
});
