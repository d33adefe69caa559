/** `hasp run`: what the command gets, what it leaves behind, and every exit code. */

import { assert, assertEquals, assertGreater, assertMatch } from "@std/assert";
import { hasp, startHasp } from "../support/command_line.ts";
import { eventually } from "../support/eventually.ts";
import { startServers } from "../support/servers.ts";
import { gone, holdByAnother, onAll, shareServers } from "../support/shared_servers.ts";

const { test } = shareServers(3);

/** A command for the shell. */
function sh(script: string): string[] {
  return ["--", "sh", "-c", script];
}

test("hasp run gives the command its resource, a token, input and output, and returns its code", async (servers) => {
  const script = 'echo "$HASP_RESOURCE $HASP_FENCING_TOKEN"; cat; echo problem >&2; exit 7';
  await using program = startHasp(["run", "-r", "backup", ...sh(script)], servers);
  await program.write("from the input");
  await program.closeInput();
  const { code, stdout, stderr } = await program.end();
  assertEquals([code, stderr], [7, "problem\n"]);
  assertMatch(stdout, /^backup \d+\nfrom the input\n$/);
  await gone(servers, "backup");
});

test("hasp run holds the lock while the command runs, longer than its TTL", async (servers) => {
  const times = ["--ttl", "4s", "--grace", "300ms"]; // so a stall of two seconds ends nothing
  const args = ["run", "-r", "backup", ...times, ...sh("echo begun; cat; echo ended")];
  await using program = startHasp(args, servers);
  await program.line("begun");
  const valueOf = () => onAll(servers, "GET", "backup");
  const first = await valueOf();
  const startMs = performance.now();
  await eventually(async () => {
    assertEquals(await valueOf(), first);
    assertGreater(performance.now() - startMs, 4_100);
  });
  await program.closeInput();
  const { code, stdout, stderr } = await program.end();
  assertEquals({ code, stdout, stderr }, { code: 0, stdout: "begun\nended\n", stderr: "" });
  await gone(servers, "backup");
});

test("hasp run gives each lock a greater token, and none with --no-fencing", async (servers) => {
  const script = 'echo "token ${HASP_FENCING_TOKEN-none}"';
  const tokenOf = async (...options: string[]) => {
    const given = { urls: servers.urls, env: { HASP_FENCING_TOKEN: "of another" } };
    const { stdout } = await hasp(["run", "-r", "backup", ...options, ...sh(script)], given);
    return stdout.replace("token ", "").trim();
  };
  const [first, second] = [Number(await tokenOf()), Number(await tokenOf())];
  assertGreater(second, first);
  assertEquals(await tokenOf("--no-fencing"), "none");
});

test("hasp run locks several resources, all or none", async (servers) => {
  const args = ["run", "-r", "first", "-r", "second", "-w", "0", ...sh('echo "$HASP_RESOURCE"')];
  assertEquals((await hasp(args, servers)).stdout, "first\nsecond\n");
  await holdByAnother(servers, "second");
  assertEquals((await hasp(args, servers)).code, 120);
  await gone(servers, "first");
  const long = ["x", "y"].flatMap((letter) => ["-r", letter.repeat(70_000)]);
  const { code, stderr } = await hasp(["run", ...long, "--", "true"], servers);
  assertEquals(code, 125);
  assertMatch(stderr, /HASP_RESOURCE has 140001 bytes, and Linux allows 131057$/m);
});

test("hasp run --held-exit-code chooses the code for a lock that somebody else holds", async (servers) => {
  await holdByAnother(servers, "backup");
  const run = (code: string) =>
    hasp(["run", "-r", "backup", "-w", "0", "-E", code, ...sh("echo ran")], servers);
  assertEquals((await run("75")).code, 75);
  const wrong = await run("256");
  assertEquals(wrong.code, 125);
  assertMatch(wrong.stderr, /It must be an integer from 0 to 255/);
});

test("hasp run --verbose says what happens to the lock, and --on-held skip that it skipped", async (servers) => {
  const run = (...options: string[]) =>
    hasp(["run", "-r", "backup", "--label", "me", ...options, ...sh("echo ran; exit 7")], servers);
  const { code, stdout, stderr } = await run("--verbose");
  assertEquals([code, stdout], [7, "ran\n"]);
  assertMatch(stderr, /^hasp: acquired "backup": holder [\da-f]{8}, \d granted, attempts 1,/m);
  assertMatch(
    stderr,
    /^hasp: ended: code 7, elapsed .*\n(.*\n)*hasp: released "backup": .*confirmed yes/m,
  );
  await holdByAnother(servers, "backup");
  const skipped = await run("-w", "0", "--on-held", "skip", "-v");
  assertEquals([skipped.code, skipped.stdout], [0, ""]);
  assertMatch(skipped.stderr, /^hasp: skipped "backup": holder [\da-f]{8}$/m);
  await onAll(servers, "SET", "backup", "data"); // else it would be skipped each time, for ever
  const blocked = await run("-w", "0", "--on-held", "skip");
  assertEquals([blocked.code, blocked.stdout], [120, ""]);
  assertMatch(blocked.stderr, /^hasp: Cannot acquire lock "backup": its key has no TTL, so no /m);
});

test("hasp run --json says the same, and its errors, in lines of JSON", async (servers) => {
  const run = async (...options: string[]) => {
    const args = ["run", "-r", "backup", "--json", ...options, ...sh("exit 7")];
    const { code, stderr } = await hasp(args, servers);
    const lines = stderr.trim().split("\n").map((line) => JSON.parse(line));
    return { code, lines, types: lines.map(({ type }) => type) };
  };
  const first = await run();
  assertEquals(first.code, 7);
  const acquired = first.lines.find(({ type }) => type === "acquired");
  assertEquals([acquired.resources, acquired.votes[0].outcome], [["backup"], "granted"]);
  assertGreater(acquired.timeMs, 1_700_000_000_000);
  const last = first.types.filter((type) => /^(ended|released)$/u.test(type));
  assertEquals(last, ["ended", "released"]);
  await holdByAnother(servers, "backup");
  const held = await run("-w", "0");
  assertEquals([held.code, held.types.at(-1)], [120, "problem"]);
  assertMatch(held.lines.at(-1).text, /^Cannot acquire lock "backup": /);
});

test("hasp run --at-least ends with its command, and keeps the resource locked for the rest of the time", async (servers) => {
  const run = (atLeast: string, script: string) =>
    hasp(["run", "-r", "backup", "-w", "0", "--at-least", atLeast, ...sh(script)], servers);
  assertEquals((await run("1h", "exit 7")).code, 7);
  const lives = await onAll(servers, "PTTL", "backup") as number[];
  assert(lives.every((ms) => ms > 3_400_000 && ms < 3_600_000), `${lives}`);
  assertEquals((await run("1s", "echo ran")).code, 120);
  await onAll(servers, "DEL", "backup");
  assertEquals((await run("1s", "sleep 1.2")).code, 0);
  assertEquals(await onAll(servers, "EXISTS", "backup"), [0, 0, 0]);
});

test("hasp run --at-least keeps nothing if a signal comes before the command begins", async (servers) => {
  await holdByAnother(servers, "backup");
  const args = ["run", "-r", "backup", "-w", "forever", "--at-least", "1h", ...sh("echo ran")];
  await using program = startHasp(args, servers);
  await eventually(async () => {
    assertEquals(await onAll(servers, "ZCARD", "hasp:queue:backup"), [1, 1, 1]);
  });
  program.signal("SIGTERM");
  assertEquals((await program.end()).code, 143);
  await onAll(servers, "DEL", "backup");
  assertEquals(await onAll(servers, "EXISTS", "backup"), [0, 0, 0]);
});

Deno.test("hasp run does not take nodes that hang for nodes on which the lock is held", async () => {
  await using servers = await startServers(5);
  await holdByAnother(servers, "backup");
  await Promise.all([servers[0].kill(), servers[1].kill(), servers[2].pause()]);
  const args = ["run", "-r", "backup", "-w", "0", "--on-held", "skip", ...sh("echo ran")];
  const { code, stdout, stderr } = await hasp(args, servers);
  assertEquals([code, stdout], [121, ""]);
  assertMatch(stderr, /^hasp: Cannot inspect lock "backup": 2 of 5 nodes answered/);
});

test("hasp run skips nothing if machines deny each other the lock, and nobody holds it", async (servers) => {
  for (const index of [0, 1]) await servers[index].command("SET", "backup", `machine ${index}`);
  const args = ["run", "-r", "backup", "-w", "0", "--on-held", "skip", ...sh("echo ran")];
  const { code, stdout, stderr } = await hasp(args, servers);
  assertEquals([code, stdout], [120, ""]);
  assertMatch(stderr, /^hasp: Cannot acquire lock "backup"/);
});

test("hasp run ends with 125 if the command line is wrong, and runs nothing", async (servers) => {
  const cases: [args: string[], problem: string][] = [
    [["-r", "backup"], "missing required argument 'command'"],
    [sh("echo ran"), "required option '-r, --resource <name>' not specified"],
    [["--resorce", "backup", ...sh("echo ran")], "unknown option '--resorce'"],
    [["-r", "", ...sh("echo ran")], "Cannot acquire lock as 'resource'"],
    [["-r", "hasp:backup", ...sh("echo ran")], "Cannot acquire lock as"],
    [
      ["-r", "backup", "--ttl", "30", ...sh("echo ran")],
      "Its unit is missing: write '30s', for example",
    ],
    [["-r", "backup", "--ttl", "999ms", ...sh("echo ran")], "it must be at least 1s"],
    [
      ["-r", "backup", "--at-least", "2d", ...sh("echo ran")],
      "an --at-least of 172800000 ms as it must be",
    ],
    [["-r", "backup", "--ttl", "2d", ...sh("echo ran")], "a TTL of 172800000 ms as it must be"],
    [["-r", "backup", "--grace", "16s", ...sh("echo ran")], "it must be at most half of the TTL"],
    [["-r", "backup", "--on-held", "wait", ...sh("echo ran")], "Allowed choices are fail, skip."],
    [
      ["-r", "backup", "--any", "--shared", ...sh("echo ran")],
      "cannot be used with option '--any'",
    ],
    [["-r", "backup", "--", "--version"], "its name begins with '-'"],
    [["-r", "backup", "--nodes-file", "/no/such", ...sh("echo ran")], "from /no/such: ENOENT"],
    [["-r", "backup", "--node", "redis://h", "--node", "h:1", ...sh("echo ran")], "address h:1 as"],
  ];
  for (const [args, problem] of cases) {
    const { code, stdout, stderr } = await hasp(["run", ...args], servers);
    assertEquals([code, stdout], [125, ""], args.join(" "));
    assert(stderr.startsWith("hasp: ") && stderr.includes(problem), stderr);
  }
});

test("hasp run leaves the options of the command to the command, with and without --", async (servers) => {
  for (const separator of [[], ["--"]]) {
    const args = ["run", "-r", "backup", ...separator, "echo", "--help", "-r", "--", "x"];
    assertEquals((await hasp(args, servers)).stdout, "--help -r -- x\n");
  }
});
