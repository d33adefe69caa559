import {
  assert,
  assertEquals,
  assertGreater,
  assertLess,
  assertMatch,
  assertRejects,
} from "@std/assert";
import { createRedlock, LockHeldError, QuorumError, type RedlockEvent } from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import { startServer, startServers } from "../support/servers.ts";
import { holdByAnother, shareServers, startProxies } from "../support/shared_servers.ts";

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
