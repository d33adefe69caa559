/** The command line in every form in which people get it: exclusion while nodes fail, and every exit path. */

import { assert, assertEquals, assertGreater, assertMatch } from "@std/assert";
import { startConsumer } from "../../scripts/package/consumer.ts";
import {
  type Edition,
  hasp,
  makeFolder,
  SOURCE_EDITION,
  startHasp,
} from "../support/command_line.ts";
import {
  binaryOfBun,
  binaryOfDeno,
  compileArgs,
  installedProgram,
  missingForBinaries,
} from "../support/command_line_editions.ts";
import { eventually } from "../support/eventually.ts";
import { plainCommand } from "../support/plain_command.ts";
import { findRuntimes } from "../support/programs.ts";
import { type ServerGroup, startServers } from "../support/servers.ts";
import { gone, holdByAnother, onAll } from "../support/shared_servers.ts";

const END_WITHIN_MS = 120_000;

/** Processes that run `hasp run` at the same time, how often each does, and how often each command writes. */
const PROCESSES = 4;
const RUNS = 4;
const BEATS = 15;

Deno.test("hasp in Deno", (t) => testEdition(t, SOURCE_EDITION));

Deno.test("hasp of the npm package", async (t) => {
  await using consumer = await startConsumer();
  const installed = await installedProgram(consumer);
  await t.step("in Node 20", (t) => testEdition(t, installed));
  for (const { name, path, missing } of await findRuntimes()) {
    if (name !== "bun") continue;
    await t.step({
      name: `in a binary of Bun${missing ? ` (skipped: ${missing})` : ""}`,
      ignore: missing !== undefined,
      fn: async (t) => testEdition(t, await binaryOfBun(path!, consumer)),
    });
  }
});

const missing = await missingForBinaries();
Deno.test({
  name: `hasp in a binary of Deno${missing ? ` (skipped: ${missing})` : ""}`,
  ignore: missing !== undefined,
  fn: async (t) => {
    await using folder = await makeFolder();
    await testEdition(t, await binaryOfDeno(folder.path));
  },
});

async function testEdition(t: Deno.TestContext, edition: Edition): Promise<void> {
  await t.step("never runs two commands at once while nodes and processes fail", () => {
    return testExclusion(edition);
  });
  await t.step("has an exit code for each end, and leaves nothing behind", () => {
    return testExitPaths(edition);
  });
}

/** Far more than a command writes before it is killed, and yet not endless: it must not outlive a test that fails. */
const MANY_BEATS = 2_000;

/** A command that writes its token again and again. */
function beats(count: number): string[] {
  const beat = 'echo "$HASP_FENCING_TOKEN" >>"$FILE"; sleep 0.01; i=$((i + 1))';
  return ["--", "sh", "-c", `i=0; while [ $i -lt ${count} ]; do ${beat}; done`];
}

async function testExclusion(edition: Edition): Promise<void> {
  await using servers = await startServers(5);
  await using folder = await makeFolder();
  const options = { edition, urls: servers.urls, env: { FILE: `${folder.path}/beats` } };
  const run = ["run", "-r", "job", "--ttl", "2s", "-w", "forever"];
  const tokens = () => folder.lines("beats");

  // One is killed and one is stopped while their commands run.
  await using killed = startHasp([...run, ...beats(MANY_BEATS)], options);
  await eventually(() => tokens().length > 0);
  await using stopped = startHasp([...run, ...beats(MANY_BEATS)], options);
  await eventually(async () => assertEquals(await queueLengths(servers), [1, 1, 1, 1, 1]));
  const crowd = Array.from({ length: PROCESSES }, async () => {
    for (let index = 0; index < RUNS; index++) {
      assertEquals((await hasp([...run, ...beats(BEATS)], options)).code, 0);
    }
  });
  const over = Promise.all(crowd);
  await servers[0].kill();
  killed.signal("SIGKILL");
  await eventually(() => new Set(tokens()).size > 1);
  await servers[1].pause();
  stopped.signal("SIGSTOP");
  await eventually(() => new Set(tokens()).size > 2 + RUNS);
  servers[1].resume();
  await eventually(() => new Set(tokens()).size > 2 + 2 * RUNS);
  await servers[2].kill();
  await over;

  stopped.signal("SIGCONT");
  const { code } = await stopped.end(END_WITHIN_MS);
  assertEquals(code, 122);
  const written = tokens().map(Number);
  const older = written.findIndex((token, index) => index > 0 && token < written[index - 1]);
  assertEquals(older, -1, "two commands wrote at once");
  const counts = [...Map.groupBy(written, (token) => token).values()].map(({ length }) => length);
  assertEquals(counts.slice(2), new Array(PROCESSES * RUNS).fill(BEATS));
  await gone([servers[1], servers[3], servers[4]], "job");
}

function queueLengths(servers: ServerGroup): Promise<unknown[]> {
  return onAll(servers, "ZCARD", "hasp:queue:job");
}

async function testExitPaths(edition: Edition): Promise<void> {
  await using servers = await startServers(3);
  const { urls } = servers;
  const unreachable = ["redis://127.0.0.1:1"];
  const run = async (args: string[], command: string[], env: Record<string, string> = {}) => {
    const options = { edition, urls, env };
    const { code, stderr } = await hasp(["run", "-r", "job", ...args, "--", ...command], options);
    return [code, stderr.split(/[:;] /).slice(0, 2).join(": ").trim()];
  };
  assertEquals(await run([], ["true"]), [0, ""]);
  assertEquals(await run([], ["sh", "-c", "exit 119"]), [119, ""]);
  assertEquals(await run([], ["sh", "-c", "kill -TERM $$"]), [143, ""]);
  assertEquals(await run([], ["sh", "-c", "kill -KILL $$"]), [137, ""]);
  assertEquals((await run([], ["/"]))[0], 126);
  assertEquals((await run([], ["./no-such-command"]))[0], 127);
  assertEquals((await run(["--nonsense"], ["true"]))[0], 125);
  assertEquals(
    await run(["-w", "0"], ["true"], { HASP_NODES: unreachable.join() }),
    [121, 'hasp: Cannot acquire lock "job"'],
  );
  await gone(servers, "job");

  await holdByAnother(servers, "job");
  assertEquals(await run(["-w", "0"], ["true"]), [120, 'hasp: Cannot acquire lock "job"']);
  assertEquals(await run(["-w", "0", "--on-held", "skip"], ["false"]), [0, ""]);
  await testInterruption(edition, servers);
  await onAll(servers, "DEL", "job");
  await testLoss(edition, servers);

  assertEquals((await hasp(["check"], { edition, urls })).code, 0);
  assertEquals((await hasp(["check"], { edition, urls: unreachable })).code, 1);
  assertEquals((await hasp(["inspect", "job"], { edition, urls })).code, 0);
  assertEquals((await hasp(["inspect", "job"], { edition, urls: unreachable })).code, 121);
  assertEquals((await hasp(["--help"], { edition })).code, 0);
  assertEquals((await hasp(["check"], { edition })).code, 125);
}

/** A signal ends the waiting for a lock that another client holds. */
async function testInterruption(edition: Edition, servers: ServerGroup): Promise<void> {
  const args = ["run", "-r", "job", "-w", "forever", "--", "true"];
  await using waiting = startHasp(args, { edition, urls: servers.urls });
  await eventually(async () => assertEquals(await queueLengths(servers), [1, 1, 1]));
  waiting.signal("SIGTERM");
  assertEquals((await waiting.end(END_WITHIN_MS)).code, 143);
  await eventually(async () => assertEquals(await queueLengths(servers), [0, 0, 0]));
}

/** A lock that is lost ends the command. */
async function testLoss(edition: Edition, servers: ServerGroup): Promise<void> {
  const command = ["sh", "-c", "echo begun; exec sleep 600"];
  const args = ["run", "-r", "job", "--ttl", "1s", "--", ...command];
  await using losing = startHasp(args, { edition, urls: servers.urls });
  await losing.line("begun");
  await onAll(servers, "DEL", "job");
  const { code, stderr } = await losing.end(END_WITHIN_MS);
  assertEquals(code, 122);
  assertMatch(stderr, /^hasp: Cannot keep lock "job": .*; the command is stopped\n$/);
}

Deno.test("deno compile takes the command line with all that it imports", async () => {
  await using folder = await makeFolder();
  const binary = `${folder.path}/hasp`;
  // Deno itself stands in for the runtime that it puts into binaries, as that may have to be downloaded.
  const { success, stderr } = await plainCommand(Deno.execPath(), {
    args: compileArgs(binary),
    env: { DENORT_BIN: Deno.execPath() },
  }).output();
  assert(success, new TextDecoder().decode(stderr));
  assertGreater((await Deno.stat(binary)).size, (await Deno.stat(Deno.execPath())).size);
});
