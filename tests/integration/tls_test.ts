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

/** How a server and a client meet; by default, each as the other wants it, and without a name. */
interface Handshake {
  readonly what: string;
  /** The certificate of the server: one for its address, or one for the name alone. */
  readonly shows?: "server" | "namedServer";
  /** Whether it asks the client for a certificate. */
  readonly asks?: boolean;
  /** Who the client is. */
  readonly as?: "client" | "stranger";
  /** Whom the client trusts; `system` is whom the runtime does. */
  readonly trusts?: "authority" | "stranger" | "system";
  readonly serverName?: string;
  readonly refused?: RegExp;
}

const NO_ANSWER = "no answer within 150 ms";
const serverName = "redis.test";
const NOT_MADE = /could not be made/;
const UNTRUSTED = /could not be made \(its authority must be in 'tls.caCerts'\): /;
/** In TLS 1.3 the server says so only after the client's handshake is over. */
const MADE_OR_NOT = /could not be made|was lost/;

const HANDSHAKES: readonly Handshake[] = [
  { what: "accepts the name that 'serverName' says", shows: "namedServer", serverName },
  { what: "rejects an authority not in 'caCerts'", trusts: "stranger", refused: UNTRUSTED },
  { what: "rejects an unknown authority without 'caCerts'", trusts: "system", refused: UNTRUSTED },
  { what: "rejects another name", shows: "namedServer", refused: NOT_MADE },
  { what: "rejects a name that is not 'serverName'", serverName, refused: NOT_MADE },
  { what: "shows the client's certificate", asks: true, as: "client" },
  {
    what: "shows the client's certificate, and accepts 'serverName'",
    ...{ asks: true, as: "client", shows: "namedServer", serverName },
  },
  {
    what: "shows the client's certificate, and rejects a name that is not 'serverName'",
    ...{ asks: true, as: "client", serverName, refused: NOT_MADE },
  },
  {
    what: "shows the client's certificate, and rejects an unknown authority",
    ...{ asks: true, as: "client", trusts: "stranger", refused: UNTRUSTED },
  },
  { what: "rejects where it shows no certificate", asks: true, refused: MADE_OR_NOT },
  {
    what: "rejects where the server does not trust its certificate",
    ...{ asks: true, as: "stranger", refused: MADE_OR_NOT },
  },
];

for (const { what, shows = "server", asks, as, trusts, serverName, refused } of HANDSHAKES) {
  Deno.test(`connect() over TLS ${what}`, async () => {
    const caFile = asks ? certificates.authority.certFile : undefined;
    await using server = await startServer({ tls: { ...certificates[shows], caFile } });
    const { cert, key } = as ? certificates[as] : {};
    const caCerts = trusts === "system" ? undefined : [certificates[trusts ?? "authority"].cert];
    const connecting = connect(addressOf(server), { tls: { caCerts, cert, key, serverName } });
    if (!refused) {
      await using client = await connecting;
      return assertEquals(await client.send(["PING"]), "PONG");
    }
    const error = await assertRejects(() => connecting, ConnectionError);
    assertEquals(error.address, addressOf(server));
    assertMatch(error.message, refused);
    assertInstanceOf(error.cause, Error);
  });
}

Deno.test("connect() with rediss:// rejects in time where the port speaks no TLS", async () => {
  await using server = await startServer();
  const address = `rediss://127.0.0.1:${server.port}`;
  const connecting = connect(address, { ...trusting(), connectTimeoutMs: 500 });
  const error = await assertRejects(() => connecting, ConnectionError);
  assertEquals(
    error.message,
    `Connection to ${address} could not be made (a server without TLS needs redis://): ` +
      (error.cause as Error).message,
  );
});

Deno.test("connect() with redis:// rejects where the port speaks TLS only", async () => {
  await using server = await startServer({ tls: certificates.server });
  const address = `redis://127.0.0.1:${server.tlsPort}`;
  const error = await assertRejects(() => connect(address), ConnectionError);
  assertEquals(
    error.message,
    `Connection to ${address} was lost (a server with TLS needs rediss://; a proxy may have no server): ` +
      (error.cause as Error).message,
  );
});

for (
  const [scheme, hint] of [
    ["rediss", "could not be made (a server without TLS needs redis://): "],
    ["redis", "was lost (it may be no Redis server): Cannot read reply "],
  ]
) {
  Deno.test(`connect() with ${scheme}:// says what may be wrong if a web server answers`, async () => {
    await using server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen() {} },
      () => new Response(),
    );
    const connecting = connect(`${scheme}://127.0.0.1:${server.addr.port}`);
    await assertRejects(() => connecting, ConnectionError, hint);
  });
}

for (const as of [undefined, "client"] as const) {
  Deno.test(
    `connect() over TLS rejects after connectTimeoutMs where the server hangs, ${
      as ? "with" : "without"
    } a certificate of the client`,
    async () => {
      const caFile = as && certificates.authority.certFile;
      await using server = await startServer({ tls: { ...certificates.server, caFile } });
      await server.pause();
      const { cert, key } = as ? certificates[as] : {};
      const options = { ...trusting({ cert, key }), connectTimeoutMs: 150 };
      const error = await assertRejects(() => connect(addressOf(server), options), ConnectionError);
      assertEquals(
        error.message,
        `Connection to ${
          addressOf(server)
        } could not be made (a server without TLS needs redis://): ` +
          NO_ANSWER,
      );
      assertEquals((error.cause as Error).message, NO_ANSWER);
    },
  );
}

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
    /^Cannot acquire lock "invoice:42": 0 of 2 nodes granted it, [12] failed, 2 are needed; (?:first )?error: Connection to rediss:/,
  );
  assertFalse(Deno.inspect(error, { depth: 9 }).includes("PRIVATE KEY"));
});
