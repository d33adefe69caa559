import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { createRedlock, LockHeldError, QuorumError, type RedlockEvent } from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import { startServer, startServers } from "../support/servers.ts";
import { holdByAnother, startProxies } from "../support/shared_servers.ts";

/** Keeps events. */
class Recorder {
  readonly events: RedlockEvent[] = [];

  readonly listener = (event: RedlockEvent): void => {
    this.events.push(event);
  };

  last<Type extends RedlockEvent["type"]>(type: Type): Extract<RedlockEvent, { type: Type }> {
    const event = this.events.findLast((event) => event.type === type);
    assert(event, `no ${type} event`);
    return event as Extract<RedlockEvent, { type: Type }>;
  }
}

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
