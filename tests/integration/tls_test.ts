import {
  assert,
  assertEquals,
  assertFalse,
  assertInstanceOf,
  assertMatch,
  assertRejects,
} from "@std/assert";
import { createRedlock, QuorumError } from "../../mod.ts";
import { connect, ConnectionError, type TlsOptions } from "../../src/redis/mod.ts";
import { type Certificates, makeCertificates } from "../support/certificates.ts";
import { eventually } from "../support/eventually.ts";
import { type RedisServer, startServer, startServers } from "../support/servers.ts";

let certificates: Certificates;

Deno.test.beforeAll(async () => {
  certificates = await makeCertificates();
});

Deno.test.afterAll(async () => {
  await certificates[Symbol.asyncDispose]();
});

/** Trusts the authority that the servers are signed by. */
function trusting(options: TlsOptions = {}): { tls: TlsOptions } {
  return { tls: { caCerts: [certificates.authority.cert], ...options } };
}

function addressOf(server: RedisServer, host = "127.0.0.1"): string {
  return `rediss://${host}:${server.tlsPort}`;
}

Deno.test("connect() to a rediss:// address speaks TLS with a server of an authority in 'caCerts'", async () => {
  await using server = await startServer({ tls: certificates.server });
  await using client = await connect(addressOf(server), trusting());
  assertEquals(await client.send(["SET", "key", "value"]), "OK");
  assertEquals(client.address, addressOf(server));
});

Deno.test("connect() speaks TLS with a host that has a name", async () => {
  await using server = await startServer({ tls: certificates.server });
  await using client = await connect(addressOf(server, "localhost"), trusting());
  assertEquals(await client.send(["PING"]), "PONG");
});

Deno.test("connect() over TLS carries 5 MB there and back", async () => {
  await using server = await startServer({ tls: certificates.server });
  await using client = await connect(addressOf(server), trusting());
  const text = "é\r\n".repeat(1_250_000);
  const [, read, pong] = await Promise.all([
    client.send(["SET", "key", text]),
    client.send(["GET", "key"]),
    client.send(["PING"]),
  ]);
  assert(read === text);
  assertEquals(pong, "PONG");
});

Deno.test("connect() over TLS logs in, selects a database and sets a name", async () => {
  await using server = await startServer({ tls: certificates.server, password: "secret" });
  const address = `rediss://:secret@127.0.0.1:${server.tlsPort}/6`;
  await using client = await connect(address, { ...trusting(), clientName: "secure" });
  const info = String(await client.send(["CLIENT", "INFO"]));
  assert(info.includes(" name=secure ") && info.includes(" db=6 "), info);
});

Deno.test("connect() rejects a server whose authority is not in 'caCerts'", async () => {
  await using server = await startServer({ tls: certificates.server });
  const options = { tls: { caCerts: [certificates.stranger.cert] } };
  await assertRefused(server, connect(addressOf(server), options));
});

Deno.test("connect() rejects a server of an unknown authority where no 'caCerts' are given", async () => {
  await using server = await startServer({ tls: certificates.server });
  await assertRefused(server, connect(addressOf(server)));
});

Deno.test("connect() rejects a server whose certificate bears another name", async () => {
  await using server = await startServer({ tls: certificates.namedServer });
  await assertRefused(server, connect(addressOf(server), trusting()));
});

Deno.test("connect() accepts the name that 'serverName' says", async () => {
  await using server = await startServer({ tls: certificates.namedServer });
  await using client = await connect(
    addressOf(server),
    trusting({ serverName: "redis.test" }),
  );
  assertEquals(await client.send(["PING"]), "PONG");
});

Deno.test("connect() rejects a server whose certificate does not bear 'serverName'", async () => {
  await using server = await startServer({ tls: certificates.server });
  const connecting = connect(addressOf(server), trusting({ serverName: "redis.test" }));
  await assertRefused(server, connecting);
});

Deno.test("connect() shows a server the client's certificate", async () => {
  await using server = await startMutualServer(certificates.server);
  const { cert, key } = certificates.client;
  await using client = await connect(addressOf(server), trusting({ cert, key }));
  assertEquals(await client.send(["PING"]), "PONG");
});

Deno.test("connect() shows a server the client's certificate, and checks 'serverName'", async () => {
  await using server = await startMutualServer(certificates.namedServer);
  const { cert, key } = certificates.client;
  const tls = trusting({ cert, key, serverName: "redis.test" });
  await using client = await connect(addressOf(server), tls);
  assertEquals(await client.send(["PING"]), "PONG");
});

Deno.test("connect() with a client's certificate still rejects a wrong name of the server", async () => {
  await using server = await startMutualServer(certificates.server);
  const { cert, key } = certificates.client;
  const tls = trusting({ cert, key, serverName: "redis.test" });
  await assertRefused(server, connect(addressOf(server), tls));
});

Deno.test("connect() with a client's certificate still rejects an unknown authority", async () => {
  await using server = await startMutualServer(certificates.server);
  const { cert, key } = certificates.client;
  const caCerts = [certificates.stranger.cert];
  await assertRefused(server, connect(addressOf(server), trusting({ cert, key, caCerts })));
});

Deno.test("connect() rejects where the server asks for a certificate and is shown none", async () => {
  await using server = await startMutualServer(certificates.server);
  // In TLS 1.3 the server says so only after the client's handshake is over.
  await assertRefused(server, connect(addressOf(server), trusting()), /could not be made|was lost/);
});

Deno.test("connect() rejects where the server does not trust the client's certificate", async () => {
  await using server = await startMutualServer(certificates.server);
  const { cert, key } = certificates.stranger;
  const connecting = connect(addressOf(server), trusting({ cert, key }));
  await assertRefused(server, connecting, /could not be made|was lost/);
});

Deno.test("connect() with rediss:// rejects in time where the port speaks no TLS", async () => {
  await using server = await startServer();
  const address = `rediss://127.0.0.1:${server.port}`;
  const connecting = connect(address, { ...trusting(), connectTimeoutMs: 500 });
  const error = await assertRejects(() => connecting, ConnectionError);
  assertEquals(
    error.message,
    `Connection to ${address} could not be made: ${(error.cause as Error).message}`,
  );
});

Deno.test("connect() with redis:// rejects where the port speaks TLS only", async () => {
  await using server = await startServer({ tls: certificates.server });
  const address = `redis://127.0.0.1:${server.tlsPort}`;
  const error = await assertRejects(() => connect(address), ConnectionError);
  assertEquals(
    error.message,
    `Connection to ${address} was lost: ${(error.cause as Error).message}`,
  );
});

Deno.test("connect() with rediss:// rejects after connectTimeoutMs where the server hangs", async () => {
  await using server = await startServer({ tls: certificates.server });
  await server.pause();
  const connecting = connect(addressOf(server), { ...trusting(), connectTimeoutMs: 150 });
  const error = await assertRejects(() => connecting, ConnectionError);
  assertEquals(
    error.message,
    `Connection to ${addressOf(server)} could not be made: ${(error.cause as Error).message}`,
  );
  assertInstanceOf(error.cause, Error);
  assertEquals(error.cause.message, "no answer within 150 ms");
});

Deno.test("connect() with a client's certificate rejects after connectTimeoutMs where the server hangs", async () => {
  await using server = await startMutualServer(certificates.server);
  await server.pause();
  const { cert, key } = certificates.client;
  const options = { ...trusting({ cert, key }), connectTimeoutMs: 150 };
  const connecting = connect(addressOf(server), options);
  const error = await assertRejects(() => connecting, ConnectionError);
  assertEquals((error.cause as Error).message, "no answer within 150 ms");
});

Deno.test("the lock works on three nodes over TLS, and on while one hangs and comes back", async () => {
  await using servers = await startServers(3, { tls: certificates.server });
  const addresses = servers.map((server) => addressOf(server));
  await using redlock = createRedlock(addresses, { ...trusting(), ttlMs: 20_000 });
  const lock = await redlock.acquire("invoice:42");
  await servers[0].pause();
  assertEquals(await redlock.tryAcquire("invoice:42"), undefined);
  await lock.extend();
  assert(await lock.release());
  servers[0].resume();
  await eventually(async () => assertEquals(await servers[0].command("DBSIZE"), 0));
  const next = await redlock.acquire("invoice:42", { waitMs: 0 });
  await eventually(async () => {
    assertEquals(await servers[0].command("GET", "invoice:42"), next.value);
  });
  await next.release();
});

Deno.test("the lock works when two of five nodes come to show certificates of another authority", async () => {
  await using servers = await startServers(5, { tls: certificates.server });
  const addresses = servers.map((server) => addressOf(server));
  await using redlock = createRedlock(addresses, { ...trusting(), waitMs: 0 });
  const lock = await redlock.acquire("held meanwhile");
  // all connections are there to be killed
  await eventually(() => assertEquals(lock.votes.length, 5));
  for (const server of servers.slice(0, 2)) {
    const { certFile, keyFile } = certificates.stranger;
    await server.command("CONFIG", "SET", "tls-cert-file", certFile, "tls-key-file", keyFile);
    await server.command("CLIENT", "KILL", "TYPE", "normal");
  }
  await eventually(async () => {
    const probe = await redlock.acquire("invoice:42");
    assert(await probe.release());
    const failed = probe.votes.filter(({ error }) => error?.message.includes("could not be made"));
    assertEquals(failed.map(({ node }) => node), addresses.slice(0, 2));
  });
  await lock.extend();
  assert(await lock.release());
});

Deno.test("acquire() rejects where no node's certificate is trusted, and shows no key", async () => {
  await using servers = await startServers(2, { tls: certificates.server });
  const { cert, key } = certificates.client;
  await using redlock = createRedlock(servers.map((server) => addressOf(server)), {
    tls: { caCerts: [certificates.stranger.cert], cert, key },
    waitMs: 0,
  });
  const error = await assertRejects(() => redlock.acquire("invoice:42"), QuorumError);
  assertMatch(
    error.message,
    /^Cannot acquire lock "invoice:42": 0 of 2 nodes granted it, [12] failed, 2 are needed; first error: Connection to rediss:/,
  );
  assertFalse(Deno.inspect(error, { depth: 9 }).includes("PRIVATE KEY"));
});

/** A server that asks clients for a certificate of the authority. */
function startMutualServer(files: { certFile: string; keyFile: string }): Promise<RedisServer> {
  return startServer({ tls: { ...files, caFile: certificates.authority.certFile } });
}

async function assertRefused(
  server: RedisServer,
  connecting: Promise<unknown>,
  how = /could not be made/,
): Promise<void> {
  const error = await assertRejects(() => connecting, ConnectionError);
  assertEquals(error.address, addressOf(server));
  assertMatch(error.message, how);
  assertInstanceOf(error.cause, Error);
}
