import { assert, assertEquals, assertRejects } from "@std/assert";
import { createRedlock, QuorumError } from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import { startServer } from "../support/servers.ts";

Deno.test("a client outlives the rotation of its password, with its locks and its waiting calls", async () => {
  await using server = await startServer({ password: "first" });
  const address = `redis://127.0.0.1:${server.port}`;
  let password = "first";
  const credentials = (name: string) => {
    assertEquals(name, address);
    return Promise.resolve({ username: "default", password });
  };
  const options = { credentials, ttlMs: 3_000, onEvent() {} };
  await using redlock = createRedlock([address], options);
  await using other = createRedlock([address], options);
  const held = await redlock.acquire("report", { autoExtend: true });
  const waiting = other.acquire("report", { waitMs: 20_000 });
  waiting.catch(() => {}); // if the test fails before
  await eventually(async () => (await redlock.inspect("report")).waiters === 1);

  await server.command("CONFIG", "SET", "requirepass", "second");
  await server.command("CLIENT", "KILL", "TYPE", "pubsub");
  await server.command("CLIENT", "KILL", "USER", "default");
  const error = await assertRejects(() => {
    return redlock.acquire("another", { waitMs: 300 }); // the function has only the old password
  }, QuorumError);
  assert(error.message.includes("WRONGPASS"), error.message);
  password = "second";
  const lock = await redlock.acquire("another", { waitMs: 10_000 });
  assertEquals(await lock.release(), true);
  const { extensions } = held;
  await eventually(() => held.extensions > extensions);
  assert(held.held);
  await held.release();
  assert((await waiting).held);
  const clients = String(await server.command("CLIENT", "LIST", "TYPE", "pubsub"));
  assert(clients.includes("user=default"), clients);
});
