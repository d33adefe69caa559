/** `hasp timeline`: from the events of `hasp run --events` and of a program to a page. */

import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { join } from "node:path";
import { hasp, makeFolder } from "../support/command_line.ts";
import { plainCommand } from "../support/plain_command.ts";
import { holdByAnother, shareServers } from "../support/shared_servers.ts";

const { test } = shareServers(3);

/** A module as a specifier in a program. */
function pathOf(path: string): string {
  return JSON.stringify(new URL(path, import.meta.url).href);
}

test("hasp timeline draws what hasp run --events and a program have recorded", async (servers) => {
  await using folder = await makeFolder();
  const run = join(folder.path, "run.jsonl");
  const args = ["run", "-r", "job", "--label", "web-7:99", "--events", run, "--", "true"];
  const ran = await hasp(args, servers);
  assertEquals([ran.code, ran.stderr], [0, ""]);
  const lines = (await Deno.readTextFile(run)).trim().split("\n").map((line) => JSON.parse(line));
  assertEquals(lines.find(({ type }) => type === "acquired").process, "web-7:99");
  const program = `
    import { createRedlock } from ${pathOf("../../mod.ts")};
    import { record } from ${pathOf("../examples/record_events.ts")};
    await using redlock = createRedlock(${JSON.stringify(servers.urls)}, { onEvent: record });
    await redlock.using("<b>job", async () => {});`;
  const map = new URL("../support/std/import_map.json", import.meta.url).pathname;
  const { success, stderr } = await plainCommand(Deno.execPath(), {
    args: ["eval", "--quiet", "--no-check", `--import-map=${map}`, program],
    cwd: folder.path,
  }).output();
  assert(success, new TextDecoder().decode(stderr));
  const drawn = await hasp([
    "timeline",
    "--title",
    "a & b",
    run,
    join(folder.path, "events.jsonl"),
  ]);
  assertEquals([drawn.code, drawn.stderr], [0, ""]);
  assertStringIncludes(drawn.stdout, "<h1>a &#38; b</h1>");
  assertMatch(drawn.stdout, /2 resources, 2 processes: 2 acquired, 0 denied, 0 lost\./u);
  assertStringIncludes(drawn.stdout, "&#60;b&#62;job");
  assertStringIncludes(drawn.stdout, "web-7:99");
  assertEquals(drawn.stdout.match(/(?:src|href)\s*=|@import|url\(/gu), null);
});

Deno.test("hasp timeline ends with 125 if there is no event, and says which lines are none", async () => {
  const file = await Deno.makeTempFile();
  await Deno.writeTextFile(file, "one\ntwo\n");
  const { code, stdout, stderr } = await hasp(["timeline", file]);
  await Deno.remove(file);
  assertEquals([code, stdout], [125, ""]);
  assert(stderr.includes("hasp: 2 lines without an event left out"), stderr);
  assert(stderr.includes(`hasp: Cannot draw: no event in ${file}`), stderr);
  const fromStdin = await hasp(["timeline"]);
  assert(fromStdin.stderr.includes("no event in the standard input"), fromStdin.stderr);
  assertEquals((await hasp(["timeline", "/nowhere/events.jsonl"])).code, 125);
});

test("hasp run runs on if the file of --events cannot be written, and says so once", async (servers) => {
  const args = ["--json", "--events", "/nowhere/events.jsonl", "--", "echo", "ran"];
  const { code, stdout, stderr } = await hasp(["run", "-r", "job", ...args], servers);
  assertEquals([code, stdout], [0, "ran\n"]);
  const problems = stderr.trim().split("\n").map((line) => JSON.parse(line))
    .filter(({ type }) => type === "problem").map(({ text }) => text.split(":")[0]);
  assertEquals(problems, ["Cannot write /nowhere/events.jsonl"]);
});

test("hasp shows resources whose names look like addresses with credentials as they are", async (servers) => {
  const names = ["https://x/joe@example.com", "https://y/ann@example.com"];
  await using folder = await makeFolder();
  const file = join(folder.path, "run.jsonl");
  const under = names.flatMap((name) => ["-r", name]);
  const flags = [...under, "--label", "", "--verbose", "--events", file];
  const { stderr } = await hasp(["run", ...flags, "--", "true"], servers);
  const shown = [stderr, await Deno.readTextFile(file)];
  assertMatch(shown[1], /^\{"timeMs":\d+,"process":"[^"]+:\d+",/u); // also without a label
  shown.push((await hasp(["timeline", file])).stdout);
  await Promise.all(names.map((name) => holdByAnother(servers, name)));
  for (const args of [["list"], ["list", "--json"], ["inspect", ...names]]) {
    shown.push((await hasp(args, servers)).stdout);
  }
  const { stderr: denial } = await hasp(["release", names[0], "--holder", "00000000"], servers);
  shown.push(denial + names[1]);
  for (const text of shown) for (const name of names) assertStringIncludes(text, name);
});
