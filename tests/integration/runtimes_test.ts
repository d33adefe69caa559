import { assert, assertEquals, assertMatch } from "@std/assert";
import { makeCertificates } from "../support/certificates.ts";
import { findRuntimes, type FoundRuntime, startProgram } from "../support/programs.ts";
import { startServer, startServers } from "../support/servers.ts";

/** How long the program may take, in milliseconds; it needs about two seconds. */
const END_WITHIN_MS = 30_000;

for (const runtime of await findRuntimes()) {
  const { name, missing } = runtime;
  Deno.test({
    name: `the main flow comes out the same in ${name}${missing ? ` (skipped: ${missing})` : ""}`,
    ignore: missing !== undefined,
    fn: () => testMainFlow(runtime),
  });
}

async function testMainFlow(runtime: FoundRuntime): Promise<void> {
  await using certificates = await makeCertificates();
  await using servers = await startServers(3);
  await using hung = await startServer();
  await using other = await startServer({
    tls: certificates.server,
    unixSocket: true,
    rights: ["+echo", "+select"],
  });
  await hung.pause();
  // In Deno a socket's file needs leave to read and write beside --allow-net.
  const unixUrl = runtime.name === "deno" ? undefined : `redis+unix://${other.socketPath}?db=1`;
  const setting = {
    urls: servers.urls,
    hungUrls: [...servers.urls.slice(0, 2), hung.url],
    tlsUrl: `rediss://127.0.0.1:${other.tlsPort}`,
    caCert: certificates.authority.cert,
    strangerCert: certificates.stranger.cert,
    unixUrl,
  };

  await using program = startProgram("main_flow.ts", [JSON.stringify(setting)], { runtime });
  const { code, stdout, stderr } = await program.end(END_WITHIN_MS);

  // It has no listener, so it warns of the lock that it loses, once.
  assertMatch(
    stderr,
    /^@hasp\/redlock: Lost lock "lost" after \d+ ms: its validity has ended\. .+\n$/u,
  );
  assertEquals(code, 0);
  const { bySyntax, ...disposing } = JSON.parse(stdout).disposing;
  // Node understands `await using` from version 24 on; before that the program disposes by hand.
  if (runtime.name !== "node") assert(bySyntax);
  assertEquals({ ...JSON.parse(stdout), disposing }, {
    acquiring: {
      held: true,
      valid: true,
      digits: true,
      quorum: true,
      extensions: 0,
      released: true,
      heldAfter: false,
    },
    contending: { denied: true, error: "LOCK_HELD", handedOver: true },
    extending: { longer: true, extensions: 1 },
    autoExtending: { held: true, extended: true, aborted: false },
    aborting: { reason: "enough" },
    lockingSeveral: { denied: true, third: true, released: true, again: true },
    withoutOneNode: { held: true, granted: 2, released: true, alone: "NO_QUORUM" },
    losing: { code: "LOCK_LOST", held: false, released: "settled" },
    disposing: { held: true, heldAfter: false },
    reachingOverTls: { length: 90_000, refused: "ConnectionError" },
    reachingOverSocket: unixUrl === undefined ? "not tried" : [0, 13, 10, 255],
    closing: { held: false, waiting: "CLOSED", after: "CLOSED" },
  });
}
