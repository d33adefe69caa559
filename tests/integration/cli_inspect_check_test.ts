/**
 * `hasp inspect` and `hasp check`: what they print, for people and for programs, and their exit
 * codes.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { hasp, makeFolder } from "../support/command_line.ts";
import { startServers } from "../support/servers.ts";
import { holdByAnother, onAll, shareServers } from "../support/shared_servers.ts";

const { test } = shareServers(3);

test("hasp inspect --json prints what a program needs", async (servers) => {
  await onAll(servers, "SET", "app:job", "no lock");
  const args = ["inspect", "job", "other", "--json", "--key-prefix", "app:"];
  const { code, stdout } = await hasp(args, servers);
  assertEquals(code, 0);
  const [job, other] = JSON.parse(stdout);
  assertEquals([job.resource, job.key, other.key], ["job", "app:job", "app:other"]);
  assertEquals([job.held, job.remainingMs], [true, null]);
  assertEquals(job.foreign, "has no TTL, so no lock library set it");
  assertEquals([other.held, other.error, other.votes.length], [false, null, 3]);
});

test("hasp inspect ends with 121 if a quorum cannot be asked, and shows the rest", async (servers) => {
  const urls = [servers.urls[0], "redis://127.0.0.1:1", "redis://127.0.0.1:2"];
  const { code, stdout, stderr } = await hasp(["inspect", "job"], { urls });
  assertEquals(code, 121);
  assertMatch(stdout, /^job +unknown +\? +\? +\? +\? +1 free, 2 failed$/m);
  assertMatch(stderr, /^hasp: Cannot inspect lock "job": 1 of 3 nodes answered, 1 free, 2 failed/);
});

test("hasp takes the prefix of keys from an option, a variable or the file with the addresses, and shows the key", async (servers) => {
  await holdByAnother(servers, "app:job", 65_000);
  await using folder = await makeFolder();
  const file = `${folder.path}/nodes`;
  await Deno.writeTextFile(file, `${servers.urls.join("\n")}\nkey-prefix app:\n`);
  const HASP_NODES_FILE = file;
  const cases: [args: string[], env: Record<string, string>, key: string, state: string][] = [
    [[], { HASP_NODES_FILE }, "app:job", "held"],
    [["--nodes-file", file], {}, "app:job", "held"],
    [[], { HASP_NODES_FILE, HASP_KEY_PREFIX: "b:" }, "b:job", "free"],
    [["--key-prefix", "c:"], { HASP_NODES_FILE, HASP_KEY_PREFIX: "b:" }, "c:job", "free"],
    [servers.urls.flatMap((url) => ["--node", url]), { HASP_NODES_FILE }, "job", "free"],
  ];
  for (const [args, env, key, state] of cases) {
    const { stdout } = await hasp(["inspect", "job", ...args], { urls: [], env });
    assertMatch(stdout, new RegExp(`^${key} +${state} `, "mu"));
  }
  const env = { HASP_NODES_FILE };
  const release = ["release", "job", "--holder", "00000000"];
  assertMatch((await hasp(release, { urls: [], env })).stderr, /release app:job: \S+ holds it/u);
  const listed = await hasp(["list"], { urls: [], env });
  assertMatch(listed.stdout, /^app:job +held /mu);
});

test("hasp says that a name is no pattern, and lists by prefixes", async (servers) => {
  await holdByAnother(servers, "stuck:1", 65_000);
  for (const command of ["inspect", "release"]) {
    const holder = command === "release" ? ["--holder", "00000000"] : [];
    const { code, stderr } = await hasp([command, "stuck:*", ...holder], servers);
    assertEquals(code, 0);
    assertEquals(
      stderr,
      "hasp: stuck:* is taken as a name, and not as a pattern: 'hasp list stuck:' lists what " +
        "begins with stuck:\n",
    );
  }
  assertMatch((await hasp(["list", "*"], servers)).stderr, /: 'hasp list' lists all\n$/u);
  for (const name of ["check", "demo"]) { // which has no --node
    const { code, stderr } = await hasp([name, "redis://h"], servers);
    const hint = name === "check" ? " Addresses of nodes go to --node." : "";
    assertEquals([code, stderr.split("got 1.")[1]], [125, `${hint}\n`], stderr);
  }
});

test("hasp check ends with 1 if there is an error, with --json too", async (servers) => {
  const urls = [servers.urls[0], "redis://127.0.0.1:1", "redis://127.0.0.1:2"];
  const text = await hasp(["check"], { urls });
  assertEquals(text.code, 1);
  assertMatch(text.stdout, /^error NO_QUORUM: /m);
  const json = await hasp(["check", "--json"], { urls });
  assertEquals(json.code, 1);
  const report = JSON.parse(json.stdout);
  assertEquals([report.ok, report.nodes.length], [false, 3]);
});

test("hasp check --fail-on ends with 1 if a finding is at least that severe", async (servers) => {
  const urls = [...servers.urls.slice(0, 2), "redis://127.0.0.1:1"]; // one of three nodes is down
  const codes = ["error", "warning", "info"].map(async (severity) => {
    const { code, stdout } = await hasp(["check", "--fail-on", severity], { urls });
    assertMatch(stdout, /^warning NODE_UNREACHABLE: redis:\/\/127.0.0.1:1 /m);
    return code;
  });
  assertEquals(await Promise.all(codes), [0, 1, 1]);
  assertEquals((await hasp(["check", "--fail-on", "all"], { urls })).code, 125);
});

Deno.test("hasp check asks for what hasp run needs, unless it is told otherwise", async () => {
  const users = ["locker on >s3cret ~* &* +@all -incr"];
  await using servers = await startServers(3, { users });
  const urls = servers.map(({ port }) => `redis://locker:s3cret@127.0.0.1:${port}`);
  const fenced = await hasp(["check"], { urls });
  assertEquals(fenced.code, 1);
  assertMatch(fenced.stdout, /^error FENCING_REFUSED: redis:\S+ refuses INCR \(in scripts\): /m);
  assertEquals((await hasp(["check", "--no-fencing"], { urls })).code, 0);
  assertMatch(fenced.stdout, /^warning (RESTARTED|NOT_PERSISTENT): /m);
});

Deno.test("hasp prints no password, neither a right one nor a wrong one", async () => {
  const password = "s3cret/with,signs";
  await using servers = await startServers(3, { password });
  assertPrintsNone((await hasp(["check"], servers)).stdout, password);
  const urls = servers.urls.map((url) => url.replace("s3cret", "wr0ng"));
  for (const args of [["check"], ["inspect", "job"], ["run", "-r", "job", "--", "true"]]) {
    const { code, stdout, stderr } = await hasp(args, { urls });
    assert([1, 121].includes(code), stderr);
    assertPrintsNone(stdout + stderr, password.replace("s3cret", "wr0ng"));
  }
});

function assertPrintsNone(text: string, password: string): void {
  for (const form of [password, encodeURIComponent(password)]) assert(!text.includes(form), text);
}

Deno.test("hasp ends with 125 and prints no password if the addresses are wrong", async () => {
  const cases: [addresses: string, problem: string][] = [
    ["redis://:p4ss@a:x redis://b", "its port must be an integer"],
    ["redis://:p4/ss@a", "its credentials must be percent-encoded"],
    ["redis://u:p4ss@a redis://v:p4ss@a", "server redis://a:6379 is listed twice"],
    ["http://u:p4ss@a", "its scheme must be"],
  ];
  for (const [addresses, problem] of cases) {
    const { code, stdout, stderr } = await hasp(["check"], { env: { HASP_NODES: addresses } });
    assertEquals([code, stdout], [125, ""]);
    assert(stderr.startsWith("hasp: ") && stderr.includes(problem), stderr);
    assert(!/p4|ss@/.test(stderr), stderr);
  }
});

Deno.test("hasp prints no password of an address that stands in the wrong place", async () => {
  const address = "redis://user:p4ss@127.0.0.1:1";
  const wrong = [
    ["check", `--nodes=${address}`],
    ["check", "--nodes-file", address],
    ["check", "--node-timeout", address],
    ["check", address],
    [address],
    ["run", "-r", "job", "--wait", address, "--", "true"],
    ["run", "-r", "job", "--on-held", address, "--", "true"],
    ["run", "-r", "job", "--node", "redis://127.0.0.1:1", "--wait", "0", "--", address],
    ["inspect", address, "--node", "redis://127.0.0.1:1"],
    ["inspect", address, "--node", "redis://127.0.0.1:1", "--json"],
  ];
  const runs = wrong.map((args) => ({ args, env: {} as Record<string, string> }));
  for (const name of ["HASP_NODES_FILE", "HASP_CA_FILE", "CREDENTIALS_DIRECTORY"]) {
    const nodes: Record<string, string> = name === "HASP_CA_FILE" ? { HASP_NODES: address } : {};
    runs.push({ args: ["check"], env: { ...nodes, [name]: address } });
  }
  for (const { args, env } of runs) {
    const { code, stdout, stderr } = await hasp(args, { env });
    assert(code >= 120, `${args}: ${code}`);
    assert(stdout + stderr !== "" && !/p4ss/.test(stdout + stderr), `${args}: ${stdout}${stderr}`);
  }
});

test("hasp takes an empty variable for one that is not set", async (servers) => {
  const env = { HASP_CA_FILE: "", HASP_CERT_FILE: "", HASP_KEY_FILE: "", HASP_KEY_PREFIX: "" };
  const { code, stderr } = await hasp(["check"], { urls: servers.urls, env });
  assertEquals([code, stderr], [0, ""]);
});

Deno.test("hasp prints its help and its version, and ends with 125 for what it does not know", async () => {
  const help = await hasp(["--help"]);
  assertEquals([help.code, help.stderr], [0, ""]);
  assertMatch(help.stdout, /^Usage: hasp /);
  const runHelp = await hasp(["run", "--help"]);
  const lines = `${help.stdout}${runHelp.stdout}`.split("\n");
  assertEquals(lines.filter((line) => line.length > 80), []); // a terminal's columns
  assertMatch((await hasp(["--version"])).stdout, /^\d+\.\d+\.\d+/);
  assertEquals((await hasp(["help", "run"])).stdout, runHelp.stdout);
  assertEquals((await hasp([])).code, 125);
  for (const args of [["nonsense"], ["help", "nonsense"]]) {
    const { code, stderr } = await hasp(args);
    assertEquals([code, stderr], [125, "hasp: unknown command 'nonsense'\n"]);
  }
});
