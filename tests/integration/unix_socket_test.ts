import { assert, assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import { createRedlock } from "../../mod.ts";
import { connect, ConnectionError } from "../../src/redis/mod.ts";
import { eventually } from "../support/eventually.ts";
import { onAll } from "../support/shared_servers.ts";
import { startServer, startServers } from "../support/servers.ts";

Deno.test("connect() reaches a server by its socket", async () => {
  await using server = await startServer({ unixSocket: true, rights: ["+client|info"] });
  await using client = await connect(`redis+unix://${server.socketPath}`);
  assertEquals(client.address, `redis+unix://${server.socketPath}`);
  const info = String(await client.send(["CLIENT", "INFO"]));
  assert(info.replaceAll(/[[\]]/gu, "").includes(` addr=${server.socketPath}:0`), info);
});

Deno.test("connect() finds a socket whose path is percent-encoded", async () => {
  const folder = await Deno.makeTempDir({ prefix: "so ck%ets-ü-" });
  try {
    const path = `${folder}/the socket?#.sock`;
    await using server = await startServer({ config: [`unixsocket "${path}"`] });
    const encoded = path.split("/").map(encodeURIComponent).join("/");
    await using client = await connect(`redis+unix://${encoded}`);
    assertEquals(await client.send(["CONFIG", "GET", "port"]), ["port", String(server.port)]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("connect() rejects where there is no socket", async () => {
  await using server = await startServer({ unixSocket: true });
  const address = `redis+unix://${server.socketPath}.missing`;
  const error = await assertRejects(() => connect(address), ConnectionError);
  assertEquals(
    error.message,
    `Connection to ${address} could not be made: ${(error.cause as Error).message}`,
  );
  assertInstanceOf(error.cause, Deno.errors.NotFound);
});

Deno.test("the lock works over three sockets, in the databases that they name", async () => {
  await using servers = await startServers(3, { unixSocket: true, rights: ["+select"] });
  const addresses = servers.map(({ socketPath }) => `redis+unix://${socketPath}?db=2`);
  await using redlock = createRedlock(addresses);
  const lock = await redlock.acquire("invoice:42");
  await eventually(async () => {
    const keyspaces = await onAll(servers, "INFO", "keyspace");
    assert(keyspaces.every((text) => /db2:keys=1/.test(String(text))));
  });
  assertEquals(await redlock.tryAcquire("invoice:42"), undefined);
  await lock.extend();
  assert(await lock.release());
});
