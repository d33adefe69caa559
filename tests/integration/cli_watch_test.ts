/** `hasp watch`: a line for each change into a pipe, and a table in place on a terminal. */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { createRedlock } from "../../mod.ts";
import { hasp, SOURCE_EDITION, startHasp } from "../support/command_line.ts";
import { eventually } from "../support/eventually.ts";
import { answering, startFakeServer } from "../support/fake_server.ts";
import { isInstalled, plainCommand } from "../support/plain_command.ts";
import { Program } from "../support/programs.ts";
import { shareServers } from "../support/shared_servers.ts";

const ARGS = ["watch", "--interval", "100ms", "job"];
const shared = shareServers(3);
const { test } = shared;

test("hasp watch prints a line for each change, with --json as JSON, without the lock's value, until a signal ends it", async (servers) => {
  await using redlock = createRedlock(servers.urls);
  await using other = createRedlock(servers.urls);
  await using program = startHasp(ARGS, { urls: servers.urls });
  await using json = startHasp([...ARGS, "--json"], { urls: servers.urls });
  await program.line(/job {2}free$/);
  await json.line(/"held":false/);
  const lock = await redlock.acquire("job");
  const { holders: [{ holder }] } = await redlock.inspect("job");
  await program.line(new RegExp(`job {2}held by ${holder} \\S+, 0 waiting$`));
  await json.line(/"held":true/);
  const waiting = other.acquire("job");
  await program.line(new RegExp(`job {2}held by ${holder} \\S+, 1 waiting$`));
  await lock.release();
  const next = await waiting;
  await program.line(new RegExp(`job {2}held by (?!${holder})\\w{8} \\S+, 0 waiting$`));
  await next.release();
  program.signal("SIGINT");
  json.signal("SIGTERM");
  const { code, stdout, stderr } = await program.end();
  assertEquals([code, stderr], [130, ""]);
  const machine = await json.end();
  assertEquals(machine.code, 143);
  for (const { value } of [lock, next]) assert(!(stdout + machine.stdout).includes(value));
  assertMatch(stdout, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}job {2}free\n/);
  assert(!stdout.includes("\x1b"));
  const [free, held] = machine.stdout.trim().split("\n").map((line) => JSON.parse(line));
  assertEquals([free.key, free.held, free.holders, free.error], ["job", false, [], null]);
  assertEquals([held.held, held.holders[0].holder, held.votes.length], [true, holder, 3]);
  assert(free.timeMs < held.timeMs);
});

test("hasp watch without a name watches all that is locked, and says what becomes free", async (servers) => {
  await using redlock = createRedlock(servers.urls, { label: "web-3:1234" });
  const first = await redlock.acquire("a");
  await using program = startHasp(["watch", "--interval", "100ms"], { urls: servers.urls });
  await program.line(/ {2}a {2}held by [\da-f]{8} web-3:1234, 0 waiting$/);
  const readers = [
    await redlock.acquire("b", { mode: "shared" }),
    await redlock.acquire("b", { mode: "shared" }),
  ];
  await program.line(/ {2}b {2}held by [\da-f]{8} web-3:1234 and 1 more, 0 waiting$/);
  await first.release();
  await program.line(/ {2}a {2}free$/);
  program.signal("SIGINT");
  assertEquals((await program.end()).code, 130);
  for (const reader of readers) await reader.release();
});

Deno.test("hasp watch ends by a signal while it lists", async () => {
  const endless = answering("*2\r\n$1\r\n1\r\n*0\r\n"); // the cursor of SCAN stays 1
  await using server = startFakeServer(endless);
  await using program = startHasp(["watch"], { urls: [server.url] });
  await eventually(() => server.accepted > 0);
  program.signal("SIGINT");
  assertEquals((await program.end()).code, 130);
});

/** Whether there is script(1), which gives a program a terminal. */
const canScript = await isInstalled("script");

/** Starts `hasp watch` on a terminal of so many rows, and of 100 columns unless it has no rows. */
function watchOnTerminal(urls: readonly string[], resources: string[], rows = 24, TERM = "xterm") {
  const columns = rows === 0 ? 0 : 100;
  const words = [...SOURCE_EDITION, ...ARGS, ...resources].map((word) => `'${word}'`).join(" ");
  const child = plainCommand("script", {
    args: ["-qefc", `stty rows ${rows} cols ${columns}; exec ${words}`, "/dev/null"],
    env: { HASP_NODES: urls.join(" "), TERM },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  return new Program("script", child);
}

const LINE = /job {2}free/;
const REFUSED = /Cannot inspect lock "job": the node failed/;

for (
  const [what, line, { rows = 24, term = "xterm", others = [], urls }] of [
    ["how many do not fit", /… 3 more: the terminal is too small/, { rows: 5, others: "bcde" }],
    ["below the table why too few nodes answer", REFUSED, { urls: ["redis://127.0.0.1:1"] }],
    ["each change as a line if it understands no escapes", LINE, { term: "dumb" }],
    ["each change as a line if it does not say how large it is", LINE, { rows: 0 }],
  ] as readonly [
    string,
    RegExp,
    { rows?: number; term?: string; others?: string; urls?: string[] },
  ][]
) {
  Deno.test({
    name: `hasp watch says on a terminal ${what}`,
    ignore: !canScript,
    async fn() {
      await using servers = shared.lend();
      await using program = watchOnTerminal(urls ?? servers.urls, [...others], rows, term);
      await program.line(line);
      await program.write("\x03"); // Ctrl-C
      const { code, stdout } = await program.end();
      assertEquals([code, stdout.includes("\x1b")], [130, line !== LINE]);
    },
  });
}

Deno.test({
  name: "hasp watch redraws a table in place on a terminal",
  ignore: !canScript,
  async fn() {
    await using servers = shared.lend();
    await using redlock = createRedlock(servers.urls);
    await using program = watchOnTerminal(servers.urls, []);
    await program.line(/job.*free/);
    await using lock = await redlock.acquire("job");
    const { holders: [{ holder }] } = await redlock.inspect("job");
    await program.line(new RegExp(`job.*held.*${holder}.*3 held`));
    await program.write("\x03"); // Ctrl-C
    const { code, stdout } = await program.end();
    assertEquals(code, 130);
    assert(stdout.includes("\x1b[2K\x1b[1A")); // what was drawn before is erased, line by line
    assert(lock.held);
  },
});

Deno.test("hasp watch ends with 125 if the interval is too short", async () => {
  const { code, stderr } = await hasp(["watch", "--interval", "10ms", "job"]);
  assertEquals(code, 125);
  assertMatch(stderr, /^hasp: Cannot watch with an interval of 10 ms/);
});
