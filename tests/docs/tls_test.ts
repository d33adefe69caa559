/** TLS as the manual shows it: its certificates, its servers, and its clients. */

import { assert, assertEquals, assertRejects } from "@std/assert";
import { createRedlock, QuorumError, type TlsOptions } from "../../mod.ts";
import { check } from "../../src/operate/mod.ts";
import { connect } from "../../src/redis/mod.ts";
import { findRedisServer } from "../../scripts/find_redis.ts";
import { SOURCE_EDITION } from "../support/command_line.ts";
import { eventually } from "../support/eventually.ts";
import { plainCommand } from "../support/plain_command.ts";
import { reservePort } from "../support/ports.ts";
import { codeMarked, PAGES, promisedOutput, ROOT } from "./pages.ts";

const RUN_WITHIN_MS = 60_000;

const redisServer = await findRedisServer();
const { text: operations } = PAGES.find(({ path }) => path === "docs/operations.md")!;
/**
 * A place with the certificates of the page, and three servers with its configuration, all on this
 * host.
 */
async function startPlace() {
  const folder = await Deno.makeTempDir({ prefix: "hasp-" });
  const servers: Deno.ChildProcess[] = [];
  const reserved = [reservePort(), reservePort(), reservePort()];
  const ports = reserved.map(({ port }) => port);
  const place = {
    folder,
    ports,
    /** The options of a client. */
    async tls(): Promise<Required<Pick<TlsOptions, "caCerts" | "cert" | "key">>> {
      const read = (name: string) => Deno.readTextFile(`${folder}/${name}`);
      return {
        caCerts: [await read("ca.crt")],
        cert: await read("client.crt"),
        key: await read("client.key"),
      };
    },
    /** Code of the page with the files and hosts of this place. */
    placed(code: string): string {
      return code.replaceAll(/10\.0\.0\.(\d)/gu, (_, host) => `127.0.0.1:${ports[host - 1]}`)
        .replaceAll("/etc/hasp", folder).replaceAll("/etc/redis", folder);
    },
    async run(path: string, args: string[], env: Record<string, string> = {}): Promise<string> {
      const signal = AbortSignal.timeout(RUN_WITHIN_MS);
      const { success, stdout, stderr } = await plainCommand(path, {
        args,
        cwd: folder,
        env,
        signal,
      }).output();
      assert(success, new TextDecoder().decode(stderr) + new TextDecoder().decode(stdout));
      return new TextDecoder().decode(stdout);
    },
    /** Makes the certificates. */
    async certify(): Promise<void> {
      const code = codeMarked("certificates", "sh").replace("IP:10.0.0.1", "IP:127.0.0.1");
      assertEquals(code.match(/^openssl /gmu)?.length, 3);
      await place.run("sh", ["-ec", code]);
    },
    async [Symbol.asyncDispose]() {
      for (const server of servers) server.kill("SIGKILL");
      await Promise.all(servers.map(({ status }) => status));
      for (const port of reserved) port[Symbol.dispose]();
      await Deno.remove(folder, { recursive: true });
    },
  };
  try {
    await place.certify();
    const shared = codeMarked("hosts", "conf").split("\n").filter((line) => !/^port /u.test(line));
    for (const port of ports) {
      const own = place.placed(codeMarked("tls", "conf")).replace(
        "tls-port 6379",
        `tls-port ${port}`,
      );
      await Deno.mkdir(`${folder}/${port}`);
      await Deno.writeTextFile(`${folder}/${port}/hasp.conf`, `${shared.join("\n")}\n${own}`);
      const args = [`${folder}/${port}/hasp.conf`, "--dir", `${folder}/${port}`];
      servers.push(plainCommand(redisServer, { args, stdout: "null", stderr: "null" }).spawn());
    }
    return place;
  } catch (error) {
    await place[Symbol.asyncDispose]();
    throw error;
  }
}

Deno.test("docs: nodes with the certificates and configuration for TLS let in clients with a certificate alone", async () => {
  await using place = await startPlace();
  const addresses = place.ports.map((port) => `rediss://locker:s3cret@127.0.0.1:${port}`);
  const options = { keyPrefix: "lock:", nodeTimeoutMs: 1_000 };
  const { caCerts, ...pair } = await place.tls();
  await using redlock = createRedlock(addresses, { ...options, tls: { caCerts, ...pair } });
  await eventually(async () => assertEquals((await check(redlock)).findings, []), RUN_WITHIN_MS);

  for (const tls of [{ caCerts }, pair]) {
    await using stranger = createRedlock(addresses, { ...options, tls });
    await assertRejects(() => stranger.acquire("report", { waitMs: 0 }), QuorumError);
  }
  await using plain = createRedlock(addresses.map((it) => it.replace("rediss", "redis")), options);
  await assertRejects(() => plain.acquire("report", { waitMs: 0 }), QuorumError);

  // The command line and the program of the page.
  const hasp = `#!/bin/sh\nexec ${SOURCE_EDITION.map((word) => `'${word}'`).join(" ")} "$@"\n`;
  await Deno.writeTextFile(`${place.folder}/hasp`, hasp, { mode: 0o755 });
  const PATH = `${place.folder}:${Deno.env.get("PATH")}`;
  const report = await place.run("sh", ["-ec", place.placed(codeMarked("tls", "sh"))], { PATH });
  assert(/^3 of 3 nodes answered[^]*^no problems found/mu.test(report), report);
  const example = codeMarked("tls", "TypeScript");
  const imports = { "@hasp/redlock": new URL("mod.ts", ROOT).href };
  await Deno.writeTextFile(`${place.folder}/deno.json`, JSON.stringify({ imports }));
  await Deno.writeTextFile(`${place.folder}/example.ts`, place.placed(example));
  const args = ["run", "--quiet", "--check", "-A", "example.ts"];
  assertEquals(
    (await place.run(Deno.execPath(), args)).trim().split("\n"),
    promisedOutput(example),
  );
});

Deno.test("docs: a node reads a new certificate without a restart, and no lock is lost", async () => {
  await using place = await startPlace();
  const [port] = place.ports;
  const tls = await place.tls();
  await using redlock = createRedlock([`rediss://locker:s3cret@127.0.0.1:${port}`], {
    keyPrefix: "lock:",
    nodeTimeoutMs: 1_000,
    tls,
  });
  await eventually(async () => assert((await check(redlock)).ok), RUN_WITHIN_MS);
  await using lock = await redlock.acquire("report");
  const [, shown] = /`(CONFIG SET tls-cert-file [^`]*)`/u.exec(operations.replaceAll("\n", " "))!;
  const admin = `rediss://admin:change-me@127.0.0.1:${port}`;
  await using before = await connect(admin, { tls });
  await place.certify(); // of another authority: only who trusts that one can connect from now on
  const words = place.placed(shown).split(" ");
  assertEquals(await before.send([...words, "tls-ca-cert-file", `${place.folder}/ca.crt`]), "OK");
  await lock.extend();
  await assertRejects(() => connect(admin, { tls }));
  await using after = await connect(admin, { tls: await place.tls() });
  assertEquals(await after.send(["PING"]), "PONG");
});
