/** `hasp run`: the session of the command and its watcher, whatever is killed, stopped or fails. */

import { assert, assertEquals } from "@std/assert";
import { LEFT, OVER, WATCHER } from "../../src/cli/run/shell_scripts.ts";
import {
  childrenOf,
  hasp,
  isRunning,
  makeFolder,
  processGone,
  SOURCE_EDITION,
  startHasp,
} from "../support/command_line.ts";
import { plainCommand } from "../support/plain_command.ts";
import { Program } from "../support/programs.ts";
import { onAll, shareServers } from "../support/shared_servers.ts";

const { test } = shareServers(3);

/** The process that watches over the command of a `hasp`. */
function watcherOf({ pid }: Program): number {
  const [watcher, ...others] = childrenOf(pid, "command-watcher");
  assertEquals(others, []);
  return watcher;
}

/**
 * `timeout` makes a process group, as the job control of shells does. What it starts ignores
 * SIGTERM.
 */
const OWN_GROUP = `timeout 600 sh -c "trap '' TERM; echo \\$\\$ ready; sleep 600"; true`;

/**
 * Starts `hasp run` with a command that makes a process group, and resolves to the processes in
 * that too.
 */
async function startOwnGroup(urls: readonly string[], ...options: string[]) {
  const args = ["run", "-r", "job", "--grace", "500ms", ...options];
  const program = startHasp([...args, "--", "sh", "-c", OWN_GROUP], { urls });
  await program.line(/^\d+ ready$/u);
  const [command] = childrenOf(program.pid, "timeout");
  const [timeout] = childrenOf(command, "timeout");
  const [shell] = childrenOf(timeout, "trap");
  const pids = [command, timeout, shell];
  assertEquals(pids.filter((pid) => groupOf(pid) === timeout), [timeout, shell]);
  return { program, pids };
}

const STOPPED = "The command was killed, because hasp did not run in time to extend the lock";

function groupOf(pid: number): number {
  const stat = Deno.readTextFileSync(`/proc/${pid}/stat`);
  return Number(stat.slice(stat.lastIndexOf(")")).split(" ")[3]);
}

for (const [how, ttl] of [["the loss of its lock", "3s"], ["SIGKILL", "10m"], ["SIGSTOP", "3s"]]) {
  test(`process groups that a command has made end at ${how}`, async (servers) => {
    const { program, pids } = await startOwnGroup(servers.urls, "--ttl", ttl);
    await using _ = program;
    if (how.startsWith("SIG")) program.signal(how as Deno.Signal);
    else await onAll(servers, "DEL", "job");
    for (const pid of pids) await processGone(pid);
    if (how === "SIGSTOP") program.signal("SIGCONT");
    const { code, stderr } = await program.end();
    if (how !== "SIGKILL") assertEquals(code, 122);
    if (how === "SIGSTOP") assertEquals(stderr, `hasp: ${STOPPED}\n`);
  });
}

test("hasp run passes signals to process groups that the command has made", async (servers) => {
  const inGroup = "trap 'echo caught; exit' USR1; echo ready; while :; do sleep 0.1; done";
  const script = `trap : USR1; timeout 600 sh -c "${inGroup}"; exit 9`;
  const args = ["run", "-r", "job", "--", "sh", "-c", `exec 2>/dev/null; ${script}`];
  await using program = startHasp(args, servers);
  await program.line("ready");
  program.signal("SIGUSR1");
  await program.line("caught");
  const { code, stderr } = await program.end();
  assertEquals([code, stderr], [9, ""]);
});

test("hasp run returns the code of a command that ends in time while hasp is stopped", async (servers) => {
  const args = ["run", "-r", "job", "--ttl", "2s", "--", "sh", "-c", "echo ready; read x; exit 7"];
  await using program = startHasp(args, servers);
  await program.line("ready");
  const watcher = watcherOf(program);
  program.signal("SIGSTOP");
  await program.write("");
  await processGone(watcher); // as its time was over
  program.signal("SIGCONT");
  const { code, stderr } = await program.end();
  assertEquals([code, stderr], [7, ""]);
});

test("hasp run ends the command if its watcher is killed", async (servers) => {
  await using program = startHasp(
    ["run", "-r", "job", "--", "sh", "-c", "echo ready; cat"],
    servers,
  );
  await program.line("ready");
  Deno.kill(-watcherOf(program), "SIGKILL");
  const { code, stderr } = await program.end();
  assertEquals([code, stderr], [
    122,
    "hasp: The process that watches over the command has ended; the command is stopped\n",
  ]);
});

test("hasp run ends if its watcher is stopped", async (servers) => {
  const args = ["run", "-r", "job", "--", "sh", "-c", "echo ready; read x; exit 7"];
  await using program = startHasp(args, servers);
  await program.line("ready");
  const watcher = watcherOf(program);
  Deno.kill(-watcher, "SIGSTOP");
  await program.write("");
  assertEquals((await program.end()).code, 7);
  await processGone(watcher);
});

test("the watcher of a command has a name of its own, ignores signals to all, and leaves nothing", async (servers) => {
  const args = ["run", "-r", "job", "--", "sh", "-c", "echo ready; read x; exit 7"];
  await using program = startHasp(args, servers);
  await program.line("ready");
  const watcher = watcherOf(program);
  assert(!(await Deno.readTextFile(`/proc/${watcher}/cmdline`)).includes("hasp"));
  for (const signal of ["HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "ALRM", "PIPE", "TSTP"]) {
    Deno.kill(-watcher, `SIG${signal}` as Deno.Signal);
  }
  const pids = childrenOf(watcher, "").flatMap((part) => [part, ...childrenOf(part, "")]);
  assert(pids.length >= 3, `${pids}`);
  await program.write("");
  assertEquals((await program.end()).code, 7);
  for (const pid of [watcher, ...pids]) await processGone(pid);
});

test("a watcher that cannot wait kills the command", async (servers) => {
  await using folder = await makeFolder();
  await Deno.writeTextFile(`${folder.path}/sleep`, "#!/bin/sh\nexit 1\n", { mode: 0o755 });
  const env = { PATH: `${folder.path}:${Deno.env.get("PATH")}` };
  const args = ["run", "-r", "job", "--", "cat"];
  await using program = startHasp(args, { urls: servers.urls, env });
  assertEquals((await program.end()).code, 122);
});

for (const PATH of ["", "/no/such/folder"]) {
  test(`hasp run needs no programs from PATH, which may be '${PATH}'`, async (servers) => {
    const args = ["run", "-r", "job", "--", "/bin/sh", "-c", "/bin/sleep 0.5; exit 7"];
    const result = await hasp(args, { urls: servers.urls, env: { PATH } });
    assertEquals(result, { code: 7, stdout: "", stderr: "" });
  });
}

test("hasp run passes on variables with any name", async (servers) => {
  const env = { "discovery.type": "single", "my-var": "two words\nand a line", "-u": "x=y" };
  const args = ["run", "-r", "job", "--", "env", "-0"];
  await using program = startHasp(args, { urls: servers.urls, env });
  const variables = (await program.end()).stdout.split("\0");
  for (const [name, value] of Object.entries(env)) {
    assert(variables.includes(`${name}=${value}`), name);
  }
  const { code } = await hasp(["run", "-r", "job", "--", "a=b"], { urls: servers.urls, env });
  assertEquals(code, 127); // `env` would take it for a variable, and print the others
});

test("hasp run passes on open files in Deno", async (servers) => {
  await using folder = await makeFolder();
  const file = `${folder.path}/three`;
  await Deno.writeTextFile(file, "from file descriptor 3\n");
  const edition = ["/bin/sh", "-c", 'exec "$@" 3<"$0"', file, ...SOURCE_EDITION] as const;
  const args = ["run", "-r", "job", "--", "sh", "-c", "cat <&3; exit 7"];
  await using program = startHasp(args, { urls: servers.urls, edition });
  const { code, stdout } = await program.end();
  assertEquals([code, stdout], [7, "from file descriptor 3\n"]);
});

/** Runs a watcher, in place of `hasp`. */
function startWatcher(options: { script?: string; as?: string[] } = {}): Program {
  const [path, ...args] = [...options.as ?? [], "/bin/sh", "-c", options.script ?? WATCHER];
  const command = plainCommand(path, {
    args,
    detached: true, // because it ends its whole process group
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  });
  return new Program("watcher", command.spawn());
}

/** Runs a watcher over a process that leads a session. */
async function watchOver(pid: number, options?: Parameters<typeof startWatcher>[0]) {
  const watcher = startWatcher(options);
  await watcher.line("3");
  await watcher.write(`${pid} session\n60`);
  await watcher.line("ready");
  return watcher;
}

/** Starts a process that leads a session. */
function startLeader(seconds: string): Deno.ChildProcess & AsyncDisposable {
  const child = plainCommand("sleep", { args: [seconds], detached: true }).spawn();
  return Object.assign(child, {
    async [Symbol.asyncDispose]() {
      try {
        child.kill("SIGKILL");
      } catch {
        // It has ended.
      }
      await child.status;
    },
  });
}

Deno.test("a watcher sees that a command has ended where there is no /proc", async () => {
  await using leader = startLeader("2");
  const script = WATCHER.replace("/proc/self/stat", "/no/such/file");
  await using watcher = await watchOver(leader.pid, { script });
  await watcher.write("drain");
  await watcher.line(OVER);
  assertEquals((await leader.status).signal, null);
});

Deno.test("a watcher finds a command behind a process that cannot be read, because it has just ended", async () => {
  await using leader = startLeader("2");
  await using folder = await makeFolder();
  await Deno.mkdir(`${folder.path}/1/stat`, { recursive: true }); // no file
  await Deno.mkdir(`${folder.path}/2`);
  await Deno.symlink(`/proc/${leader.pid}/stat`, `${folder.path}/2/stat`);
  const script = WATCHER.replace("/proc/[0-9]*", `${folder.path}/*`);
  await using watcher = await watchOver(leader.pid, { script });
  await watcher.write("drain");
  await watcher.line(OVER);
  assertEquals((await leader.status).signal, null);
});

Deno.test("a watcher ends as soon as it is not needed and kills nothing, even if it has just received a limit", async () => {
  await using leader = startLeader("600");
  for (let round = 0; round < 30; round++) {
    await using watcher = startWatcher();
    await watcher.write(`${leader.pid} session\n60\n60\nend`);
    await watcher.closeInput();
    assertEquals((await watcher.end(30_000)).stdout, "3\nready\n");
  }
  assert(isRunning(leader.pid));
});

const isRoot = Deno.uid() === 0;
Deno.test({
  name: `a watcher says what it may not end${isRoot ? "" : " (skipped: only root can start it)"}`,
  ignore: !isRoot,
  fn: async () => {
    await using leader = startLeader("600");
    const as = ["setpriv", "--reuid=65534", "--clear-groups"];
    await using watcher = await watchOver(leader.pid, { as });
    await watcher.write("0");
    await watcher.line(LEFT);
  },
});
