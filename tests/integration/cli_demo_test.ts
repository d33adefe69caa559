/**
 * `hasp demo`: counts with the lock and without it, on servers that it finds or brings, and can be
 * ended.
 */

import { assert, assertEquals, assertGreater, assertLess, assertMatch } from "@std/assert";
import { findRedisServer } from "../../scripts/find_redis.ts";
import {
  childrenOf,
  hasp,
  makeFolder,
  processGone,
  SOURCE_EDITION,
  startHasp,
} from "../support/command_line.ts";
import { plainCommand } from "../support/plain_command.ts";

/** A folder for `PATH` whose redis-server is a shell script. */
async function folderOfServer(script: string) {
  const folder = await makeFolder();
  await Deno.writeTextFile(`${folder.path}/redis-server`, `#!/bin/sh\n${script}\n`, {
    mode: 0o755,
  });
  return folder;
}

async function folderOfRealServer() {
  return await folderOfServer(`exec ${await findRedisServer()} "$@"`);
}

Deno.test("hasp demo keeps every increment under the lock while nodes fail, and loses some without it", async () => {
  await using folder = await folderOfRealServer();
  const { code, stdout, stderr } = await hasp(["demo"], { env: { PATH: folder.path } });
  assertEquals([code, stderr], [0, ""]);
  const [kept, lost] = [...stdout.matchAll(/24 increments, counter (\d+), at most (\d)/g)]
    .map(([, count, inside]) => [Number(count), Number(inside)]);
  assertEquals(kept, [24, 1]);
  assertLess(lost[0], 24);
  assertGreater(lost[1], 1);
  const rows = [
    ...[/^Nodes: 5 processes of redis-server$/, /worker A .*█/, /node 2 .*╳ killed/],
    ...[/node 4 .*░ *hung/, /node 5 +━+$/],
  ];
  for (const row of rows) assertMatch(stdout, new RegExp(row, "m"));
  assert(!stdout.includes("\x1b"));
  assertEquals(stdout.split("\n").slice(0, 3).filter((line) => line.length > 79), []);
});

Deno.test("hasp demo ends with the code of a signal, and its servers end with it", async () => {
  await using folder = await folderOfRealServer();
  await using program = startHasp(["demo"], { env: { PATH: folder.path } });
  await program.line("Nodes: 5 processes of redis-server");
  const servers = childrenOf(program.pid, " 127.0.0.1:");
  assertEquals(servers.length, 5);
  program.signal("SIGTERM");
  const { code, stderr } = await program.end();
  assertEquals([code, stderr], [143, ""]);
  await Promise.all(servers.map(processGone));
});

Deno.test("hasp demo leaves no server behind if nobody reads its output", async () => {
  await using folder = await folderOfRealServer();
  const [path, ...args] = SOURCE_EDITION;
  await using program = plainCommand(path, {
    args: [...args, "demo"],
    env: { PATH: folder.path },
    stdout: "piped",
  }).spawn();
  const output = program.stdout.getReader();
  await output.read();
  const servers = childrenOf(program.pid, " 127.0.0.1:");
  assertEquals(servers.length, 5);
  await output.cancel();
  await program.status;
  await Promise.all(servers.map(processGone));
});

Deno.test("hasp demo waits for servers that take long to start, as they do on a busy machine", async () => {
  await using folder = await folderOfServer(
    `/bin/sleep 6; exec ${await findRedisServer()} "$@"`,
  );
  await using program = startHasp(["demo"], { env: { PATH: folder.path } });
  await program.line("Nodes: 5 processes of redis-server");
  program.signal("SIGTERM");
  assertEquals((await program.end()).code, 143);
});

Deno.test("hasp demo has its nodes in memory if no redis-server starts", async () => {
  await using folder = await folderOfServer('echo "no memory left"; exit 1');
  await using program = startHasp(["demo"], { env: { PATH: folder.path } });
  await program.line("Nodes: 5 servers in memory, because no redis-server runs here");
  program.signal("SIGTERM");
  assertEquals((await program.end()).code, 143);
});
