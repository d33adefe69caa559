import { assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import { createRedlock } from "../../mod.ts";
import { bundle } from "../../scripts/package/bundle.ts";
import { connect, RedisClient, type TlsOptions } from "../../src/redis/mod.ts";
import { connect as connectDeno } from "../../src/transport/deno.ts";
import { connect as connectNode } from "../../src/transport/node.ts";
import { type Certificates, makeCertificates } from "../support/certificates.ts";
import { makeFolder } from "../support/command_line.ts";
import { plainCommand } from "../support/plain_command.ts";
import { findRuntimes } from "../support/programs.ts";
import { startServer } from "../support/servers.ts";
import { startSniServer } from "../support/sni_server.ts";

let certificates: Certificates;

Deno.test.beforeAll(async () => {
  certificates = await makeCertificates();
});

Deno.test.afterAll(async () => {
  await certificates[Symbol.asyncDispose]();
});

/** Trusts the authority that the servers are signed by. */
function trusting(options: TlsOptions = {}): TlsOptions {
  return { caCerts: [certificates.authority.cert], ...options };
}

/** Shows the client's certificate too. */
function mutual(options: TlsOptions = {}): TlsOptions {
  const { cert, key } = certificates.client;
  return trusting({ cert, key, ...options });
}

/** How long a connection may take that finds room in the queue of a listener, in milliseconds. */
const ROOM_MS = 300;
/** More connections than any system queues up. */
const QUEUE_LENGTH_MAX = 10_000;

/**
 * Fills up the queue of a listener that accepts nobody: the system drops what comes, and refuses
 * nothing.
 */
async function startBlackHole() {
  using stack = new DisposableStack();
  const hostname = "127.0.0.1";
  const listener = stack.use(Deno.listen({ hostname, port: 0 }));
  const { port } = listener.addr as Deno.NetAddr;
  for (let tried = 0, late = 0; tried < QUEUE_LENGTH_MAX; tried++) {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), ROOM_MS);
    try {
      // not by `Deno.connect`, which may leave a stream open that opens as the signal aborts
      const stream = await connectDeno({ kind: "tcp", hostname, port }, controller);
      stack.adopt(stream, () => stream.close());
      late = 0;
    } catch {
      if (++late < 2) continue; // one may be late because the machine is busy
      const filled = stack.move();
      return { port, [Symbol.dispose]: () => filled.dispose() };
    } finally {
      clearTimeout(timer);
    }
  }
  throw new Error("Cannot fill up the queue of a listener");
}

for (const [runtime, transport] of [["Deno", connectDeno], ["Node", connectNode]] as const) {
  for (
    const [what, settings] of [["", trusting], [" beside a client's certificate", mutual]] as const
  ) {
    Deno.test(`the transport of ${runtime} asks a server for the name 'serverName'${what}`, async () => {
      await using server = await startSniServer(certificates.namedServer);
      const options = { connect: transport, tls: settings({ serverName: "redis.test" }) };
      await using client = await connect(`rediss://127.0.0.1:${server.port}`, options);
      assertEquals(await client.send(["PING"]), "redis.test");
    });

    Deno.test(`the transport of ${runtime} asks for no name where there is an address only${what}`, async () => {
      await using server = await startSniServer(certificates.server);
      const options = { connect: transport, tls: settings() };
      await using client = await connect(`rediss://127.0.0.1:${server.port}`, options);
      assertEquals(await client.send(["PING"]), "");
    });

    Deno.test(`the transport of ${runtime} checks a 'serverName' that is an address${what}`, async () => {
      await using server = await startServer({ tls: certificates.server });
      const address = `rediss://localhost:${server.tlsPort}`;
      const good = { connect: transport, tls: settings({ serverName: "127.0.0.1" }) };
      await using client = await connect(address, good);
      assertEquals(await client.send(["PING"]), "PONG");
      const bad = { connect: transport, tls: settings({ serverName: "10.0.0.1" }) };
      await assertRejects(() => connect(address, bad), Error, "could not be made");
    });

    Deno.test(`the transport of ${runtime} leaves nothing behind if the connection is not accepted${what}`, async () => {
      using hole = await startBlackHole();
      const address = `rediss://127.0.0.1:${hole.port}`;
      await using client = new RedisClient(address, { connect: transport, tls: settings() });
      const sending = assertRejects(() => client.send(["PING"]), Error, "was closed");
      await new Promise((resolve) => setTimeout(resolve, 50)); // until the connection is asked for
      await client.close();
      await sending;
    });

    Deno.test(`the transport of ${runtime} leaves nothing behind where 'serverName' is no name${what}`, async () => {
      await using server = await startServer({ tls: certificates.server });
      const address = `rediss://127.0.0.1:${server.tlsPort}`;
      const options = { connect: transport, tls: settings({ serverName: "not a name" }) };
      await assertRejects(() => connect(address, options), Error, "could not be made");
    });
  }
}

Deno.test("the transport of Node reads the authorities once, however often it connects", async () => {
  await using server = await startServer({ tls: certificates.server });
  let reads = 0;
  const tls: TlsOptions = {
    get caCerts() {
      reads++;
      return [certificates.authority.cert];
    },
  };
  const target = { kind: "tls", hostname: "127.0.0.1", port: server.tlsPort!, tls } as const;
  const { signal } = new AbortController();
  for (let times = 0; times < 3; times++) {
    const streams = await Promise.all([1, 2].map(() => connectNode(target, { signal })));
    for (const stream of streams) stream.close();
  }
  assertEquals(reads, 1);
});

for (
  const { name, path, missing } of (await findRuntimes()).filter(({ name }) => name !== "deno")
) {
  Deno.test({
    name: `the transport of ${name} trusts the authorities of NODE_EXTRA_CA_CERTS beside 'caCerts'`,
    ignore: missing !== undefined,
    async fn() {
      await using other = await makeCertificates();
      await using server = await startServer({ tls: certificates.server });
      await using folder = await makeFolder();
      const [extra, transport] = [`${folder.path}/extra.pem`, `${folder.path}/transport.mjs`];
      await Deno.writeTextFile(extra, certificates.authority.cert);
      await bundle("src/transport/node.ts", transport, { platform: "node" });
      const tls: TlsOptions = { caCerts: [other.authority.cert] };
      const target = { kind: "tls", hostname: "127.0.0.1", port: server.tlsPort, tls };
      const program = `${folder.path}/program.mjs`;
      await Deno.writeTextFile(
        program,
        `import { connect } from "./transport.mjs";
        if (process.env.EMULATED) process.getBuiltinModule = () => { throw new Error("emulated"); };
        const { signal } = new AbortController();
        const stream = await connect(${JSON.stringify(target)}, { signal });
        stream.close();
        console.log("connected");`,
      );
      const connecting = (env: Record<string, string>) =>
        plainCommand(path!, { args: [program], env }).output();
      for (const EMULATED of ["", "1"]) {
        const trusting = await connecting({ NODE_EXTRA_CA_CERTS: extra, EMULATED });
        assertEquals(new TextDecoder().decode(trusting.stdout), "connected\n");
      }
      assertEquals((await connecting({ NODE_EXTRA_CA_CERTS: "" })).success, false);
    },
  });
}

Deno.test("RedisClient hands the same TLS settings to every connection, whatever its caller does with them", async () => {
  await using server = await startServer({ tls: certificates.server, rights: ["+blpop"] });
  const seen: TlsOptions[] = [];
  const tls = trusting();
  await using client = await connect(`rediss://127.0.0.1:${server.tlsPort}`, {
    tls,
    connect: (target, options) => {
      if (target.kind === "tls") seen.push(target.tls);
      return connectDeno(target, options);
    },
  });
  tls.caCerts = [certificates.stranger.cert];
  const killed = assertRejects(() => client.send(["BLPOP", "nothing", 0]), Error, "was lost");
  await server.command("CLIENT", "KILL", "TYPE", "normal");
  await killed;
  while (seen.length < 2) await new Promise((resolve) => setTimeout(resolve, 10));
  assertStrictEquals(seen[0], seen[1]);
  assertEquals(seen[1].caCerts, [certificates.authority.cert]);
});

Deno.test("createRedlock() takes 'tls' where one of the addresses is rediss://", async () => {
  await using _redlock = createRedlock(["redis://127.0.0.1:1", "rediss://127.0.0.1:2"], {
    tls: trusting(),
  });
});
