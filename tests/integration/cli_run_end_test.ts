/** `hasp run`: signals, a lock that is lost, and the death of `hasp` itself. */

import { assert, assertEquals, assertGreater, assertLess, assertMatch } from "@std/assert";
import { isRunning, makeFolder, processGone, startHasp } from "../support/command_line.ts";
import { eventually } from "../support/eventually.ts";
import { startServers } from "../support/servers.ts";
import { gone, onAll, shareServers } from "../support/shared_servers.ts";

/**
 * What comes later than this, on a machine that does nothing else, shows that the machine stood
 * still.
 */
const STALLED_MS = 300;

const { test } = shareServers(3);

/** A command for the shell. */
function sh(script: string): string[] {
  return ["--", "sh", "-c", script];
}

/** What shells say of processes that were ended is not compared. */
const QUIET = "exec 2>/dev/null";
/** Says its process id and its child's, and runs until both are ended. */
const FAMILY = 'sleep 600 & echo "$$ $!" >"$FILE"; echo ready; wait; sleep 600';
/** The same, deaf to what asks it to end. */
const STUBBORN_FAMILY = `trap '' TERM; ${FAMILY}`;

/** Starts a family of processes below `hasp`, and resolves to their ids when they run. */
async function startFamily(options: readonly string[], urls: readonly string[], script = FAMILY) {
  const folder = await makeFolder();
  const env = { FILE: `${folder.path}/pids` };
  const program = startHasp(["run", "-r", "job", ...options, ...sh(script)], { urls, env });
  await program.line("ready");
  const pids = folder.lines("pids")[0].split(" ").map(Number);
  return {
    program,
    pids,
    async [Symbol.asyncDispose]() {
      await program[Symbol.asyncDispose]();
      for (const pid of pids) await processGone(pid);
      await folder[Symbol.asyncDispose]();
    },
  };
}

for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const) {
  test(`hasp run passes ${signal} on, and returns the code of the command`, async (servers) => {
    const trap = `trap 'echo caught; exit 9' ${signal.slice(3)}`;
    const script = `${QUIET}; ${trap}; echo ready; while :; do sleep 0.1; done`;
    await using program = startHasp(["run", "-r", "job", ...sh(script)], servers);
    await program.line("ready");
    program.signal(signal);
    const { code, stdout, stderr } = await program.end();
    assertEquals({ code, stdout, stderr }, { code: 9, stdout: "ready\ncaught\n", stderr: "" });
    await gone(servers, "job");
  });
}

test("hasp run passes a signal to all that the command has started", async (servers) => {
  await using family = await startFamily([], servers.urls);
  family.program.signal("SIGTERM");
  assertEquals((await family.program.end()).code, 143);
  for (const pid of family.pids) await processGone(pid);
  await gone(servers, "job");
});

/** Ends itself when it is asked to, which its child does not. */
const STUBBORN_CHILD = FAMILY.replace(
  "sleep 600 &",
  "trap 'exit 0' TERM; (trap '' TERM; sleep 600) &",
);

for (const [who, script] of [["command", STUBBORN_FAMILY], ["child of it", STUBBORN_CHILD]]) {
  test(`hasp run kills a ${who} that does not end, and all others, after the grace period`, async (servers) => {
    const times = ["--ttl", "3s", "--grace", "500ms"];
    await using family = await startFamily(times, servers.urls, script);
    await onAll(servers, "DEL", "job");
    assertEquals((await family.program.end()).code, 122);
    for (const pid of family.pids) {
      if (script === STUBBORN_FAMILY) await processGone(pid); // killed at once with the command
      assert(!isRunning(pid), `${pid} outlives hasp`);
    }
  });
}

Deno.test("hasp run asks the command to end before its lock expires, and kills it before another client can lock", async () => {
  await using servers = await startServers(3);
  await using folder = await makeFolder();
  const beat = 'while :; do date +%s%3N >>"$FILE"; sleep 0.01; done';
  const script = `trap 'echo asked >>"$FILE"' TERM; echo ready; ${beat}`;
  const args = ["run", "-r", "job", "--ttl", "6s", "--grace", "3s", ...sh(`${QUIET}; ${script}`)];
  const env = { FILE: `${folder.path}/beats` };
  await using program = startHasp(args, { urls: servers.urls, env });
  await program.line("ready");
  let expiresAtMs = 0;
  // Soon after an extension, so that the next one is far.
  await eventually(async () => {
    const remainingMs = await servers[0].command("PTTL", "job") as number;
    expiresAtMs = Date.now() + remainingMs;
    assertGreater(remainingMs, 5_400);
  });
  await servers[0].pause();
  await servers[1].kill();
  const { code, stderr } = await program.end();
  assertEquals(code, 122);
  assertMatch(
    stderr,
    /^hasp: Cannot extend lock "job": \d+ ms are left; first error: .*redis:.*; the/,
  );
  const lines = folder.lines("beats");
  const [asked, last] = [lines.indexOf("asked"), lines.length - 1];
  // and had some time to end
  assert(asked > 0 && asked < last, `asked in line ${asked} of ${last}`);
  // A beat that comes late shows that the machine stood still, and what then comes after the end
  // proves nothing.
  const onTime = lines.findLast((line, at) => Number(line) - Number(lines[at - 1]) < STALLED_MS);
  assertLess(Number(onTime), expiresAtMs);
});

test("hasp run reports a lock that was gone at the end, whatever the command returned", async (servers) => {
  await using program = startHasp(["run", "-r", "job", ...sh("echo ready; read line")], servers);
  await program.line("ready");
  await onAll(servers, "DEL", "job");
  await program.write("");
  const { code, stderr } = await program.end();
  assertEquals(code, 122);
  assertMatch(stderr, /^hasp: The lock was lost .* with the code 0: its key is gone, .*\n$/);
});

Deno.test("hasp run returns the code of the command if the release fails, and says when the lock is free", async () => {
  await using servers = await startServers(3);
  const script = sh("echo ready; read line; exit 3");
  await using program = startHasp(["run", "-r", "job", ...script], servers);
  await program.line("ready");
  await servers[0].pause();
  await servers[1].kill();
  await program.write("");
  const { code, stderr } = await program.end();
  assertEquals(code, 3);
  assertMatch(stderr, /^hasp: Cannot release lock "job": .*; the lock expires with its TTL\n$/);
});

test("a command does not outlive hasp, even if that is killed by SIGKILL", async (servers) => {
  await using family = await startFamily([], servers.urls, STUBBORN_FAMILY);
  const startMs = performance.now();
  family.program.signal("SIGKILL");
  for (const pid of family.pids) await processGone(pid);
  assertLess(performance.now() - startMs, 10_000); // the TTL is 30 seconds
  assertEquals(await onAll(servers, "EXISTS", "job"), [1, 1, 1]);
});

test("a command does not outlive its lock, even if hasp is stopped by SIGSTOP", async (servers) => {
  const times = ["--ttl", "5s", "--grace", "0"];
  await using family = await startFamily(times, servers.urls, STUBBORN_FAMILY);
  // Once the lock was extended, so that the watcher's first limit is not its last.
  await eventually(async () => {
    const remainingMs = await servers[0].command("PTTL", "job") as number;
    await new Promise((resolve) => setTimeout(resolve, 50));
    assertGreater(await servers[0].command("PTTL", "job") as number, remainingMs);
  });
  family.program.signal("SIGSTOP");
  const isOver = async () => await servers[0].command("EXISTS", "job") === 0;
  await processesGoneBefore(family.pids, isOver);
  family.program.signal("SIGCONT");
  assertEquals((await family.program.end()).code, 122);
});

async function processesGoneBefore(pids: number[], over: () => Promise<boolean>): Promise<void> {
  let lookedMs = performance.now();
  await eventually(async () => {
    const isOver = await over();
    if (!pids.some(isRunning)) return;
    const stoodStill = performance.now() - lookedMs > STALLED_MS; // in any order they go on
    assert(!isOver || stoodStill, "a process outlives the lock");
    lookedMs = performance.now();
    return false;
  });
}

test("hasp run --foreground leaves the command in its own process group", async (servers) => {
  const groupOf = 'ps -o pgid= -p $$ | tr -d " "; echo ready; read line';
  for (const options of [[], ["--foreground"]]) {
    await using program = startHasp(["run", "-r", "job", ...options, ...sh(groupOf)], servers);
    await program.line("ready");
    const ours =
      (await Deno.readTextFile(`/proc/${program.pid}/stat`)).split(") ")[1].split(" ")[2];
    await program.write("");
    const { stdout } = await program.end();
    assertEquals(stdout.split("\n")[0] === ours, options.length > 0);
  }
});
