/**
 * What the command line must do in every form in which people get it: exclusion while nodes fail,
 * and every exit path.
 */
import { assertEquals, assertMatch } from "@std/assert";
import { succeed } from "../../scripts/package/tools.ts";
import {
  type Edition,
  hasp,
  type HaspOptions,
  makeFolder,
  processGone,
  startHasp,
} from "./command_line.ts";
import { eventually } from "./eventually.ts";
import type { Program } from "./programs.ts";
import { type ServerGroup, startServers } from "./servers.ts";
import { gone, holdByAnother, onAll } from "./shared_servers.ts";

const END_WITHIN_MS = 120_000;

/**
 * Processes that run `hasp run` at the same time, how often each does, and how often each command
 * writes.
 */
const PROCESSES = 4;
const RUNS = 4;
const BEATS = 15;

/**
 * Far more than a command writes before it is killed, and yet not endless: it must not outlive a
 * test that fails.
 */
const MANY_BEATS = 2_000;

/** A command that writes its token and a name again and again. */
function beats(count: number, name: string): string[] {
  const beat = `echo "$HASP_FENCING_TOKEN ${name}" >>"$FILE"; sleep 0.01; i=$((i + 1))`;
  return ["--", "sh", "-c", `i=0; while [ $i -lt ${count} ]; do ${beat}; done`];
}

/** One client after the other in the file that the commands write, and what came of them. */
class Beats {
  readonly #lines: () => string[];

  constructor(lines: () => string[]) {
    this.#lines = lines;
  }

  get length(): number {
    return this.#lines().length;
  }

  /** The first line with a token that is smaller than the one before, between its neighbours. */
  get disorder(): string[] {
    const lines = this.#lines();
    const token = (line: string) => Number(line.split(" ")[0]);
    const at = lines.findIndex((line, at) => at > 0 && token(line) < token(lines[at - 1]));
    return at < 0 ? [] : lines.slice(at - 1, at + 2);
  }

  /** Who has written since there were so many lines. */
  namesSince(length: number): string[] {
    return [...new Set(this.#lines().slice(length))];
  }

  /** How often each token was written under a name. */
  countsOf(name: string): number[] {
    const lines = this.#lines().filter((line) => line.endsWith(` ${name}`));
    return [...Map.groupBy(lines, (line) => line).values()].map(({ length }) => length);
  }

  /** Resolves once so many more commands of a name have begun. */
  async begun(name: string, more: number): Promise<void> {
    const before = this.countsOf(name).length;
    await eventually(() => this.countsOf(name).length >= before + more, END_WITHIN_MS);
  }
}

/** No two commands run at once while nodes and processes fail. */
export async function testExclusion(edition: Edition): Promise<void> {
  await using servers = await startServers(5);
  await using folder = await makeFolder();
  const options = { edition, urls: servers.urls, env: { FILE: `${folder.path}/beats` } };
  const run = ["run", "-r", "job", "--ttl", "4s", "--grace", "300ms", "-w", "forever"];
  const written = new Beats(() => folder.lines("beats"));

  // Of those that run for long, one is killed, one is stopped, and one loses its lock with the
  // quorum.
  await using killed = startHasp([...run, ...beats(MANY_BEATS, "killed")], options);
  await eventually(() => written.length > 0);
  await using stopped = startHasp([...run, ...beats(MANY_BEATS, "stopped")], options);
  await eventually(async () => assertEquals(await queueLengths(servers), [1, 1, 1, 1, 1]));
  const crowd = Array.from({ length: PROCESSES }, async () => {
    for (let index = 0; index < RUNS; index++) {
      assertEquals((await hasp([...run, ...beats(BEATS, "crowd")], options)).code, 0);
    }
  });
  const over = Promise.all(crowd);
  over.catch(() => {}); // awaited below
  const stopping = written.begun("stopped", 1);
  await servers[0].kill();
  killed.signal("SIGKILL");
  await stopping;
  await servers[1].pause();
  stopped.signal("SIGSTOP");
  await written.begun("crowd", RUNS);
  const losing = written.begun("losing", 1);
  await using loser = startHasp([...run, ...beats(MANY_BEATS, "losing")], options);
  await losing;
  await servers[2].kill();
  await testNobodyRuns(loser, written, options);
  const going = written.begun("crowd", 1);
  servers[1].resume();
  await going;
  await over;

  stopped.signal("SIGCONT");
  assertEquals((await stopped.end(END_WITHIN_MS)).code, 122);
  assertEquals(written.disorder, [], "two commands wrote at once");
  assertEquals(written.countsOf("crowd"), new Array(PROCESSES * RUNS).fill(BEATS));
  await gone([servers[1], servers[3], servers[4]], "job");
}

/**
 * Two of five nodes are left: the command that ran is ended, and none of those that wait begins.
 */
async function testNobodyRuns(loser: Program, written: Beats, options: HaspOptions): Promise<void> {
  const { code, stderr } = await loser.end(END_WITHIN_MS);
  assertEquals(code, 122);
  assertMatch(stderr, /^hasp: Cannot extend lock "job": .*; the command is stopped\n/);
  const { length } = written;
  assertEquals((await hasp(["run", "-r", "job", "-w", "3s", "--", "true"], options)).code, 121);
  assertEquals(written.namesSince(length), []);
}

function queueLengths(servers: ServerGroup): Promise<unknown[]> {
  return onAll(servers, "ZCARD", "hasp:queue:job");
}

/** There is an exit code for each end, and nothing is left behind. */
export async function testExitPaths(edition: Edition): Promise<void> {
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
  for (
    const [command, code, why] of [["/", 126, "Permission denied"], ["./no", 127, "not found"]]
  ) {
    const ended = await hasp(["run", "-r", "job", "--", `${command}`], { edition, urls });
    assertEquals([ended.code, ended.stderr.endsWith(`: ${command}: ${why}\n`)], [code, true]);
  }
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
  await testNoFileLeft(edition, servers);
  await testLoss(edition, servers);

  assertEquals((await hasp(["check"], { edition, urls })).code, 0);
  assertEquals((await hasp(["check"], { edition, urls: unreachable })).code, 1);
  assertEquals((await hasp(["inspect", "job"], { edition, urls })).code, 0);
  assertEquals((await hasp(["inspect", "job"], { edition, urls: unreachable })).code, 121);
  assertEquals((await hasp(["--help"], { edition })).code, 0);
  assertEquals((await hasp(["check"], { edition })).code, 125);
  await testOutput(edition, urls);
}

/**
 * Two outputs that cannot be written, as scripts for a shell that runs `"$@"` and prints its code.
 */
const TO_FULL_DISK = '"$@" >/dev/full; echo $?';
const TO_NOBODY = '{ { yes; "$@"; echo $? >&3; } | true; } 3>&1'; // `yes` ends when the reader has

/** What could not be written is no success. */
async function testOutput(edition: Edition, urls: readonly string[]): Promise<void> {
  const ends = async (script: string, args: string[]) => {
    const through = ["/bin/sh", "-c", script, "sh", ...edition] as const;
    const { stdout, stderr } = await hasp(args, { edition: through, urls });
    return [stdout.trim(), stderr];
  };
  for (const args of [["inspect", "job"], ["check", "--json"], ["--help"]]) {
    const [code, message] = await ends(TO_FULL_DISK, args);
    assertMatch(message, /^hasp: .*no space left on device/i);
    assertEquals([code, (await ends(TO_NOBODY, args))[0]], ["125", "141"]);
  }
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

/**
 * If no process can be started, `hasp` ends with a code of its own, and releases the lock. Another
 * client has it before.
 */
async function testNoFileLeft(edition: Edition, servers: ServerGroup): Promise<void> {
  const args = ["run", "-r", "job", "-w", "forever", "--", "true"];
  await using waiting = startHasp(args, { edition, urls: servers.urls });
  await eventually(async () => assertEquals(await queueLengths(servers), [1, 1, 1]));
  // it may open no further file
  await succeed("prlimit", ["--pid", `${waiting.pid}`, "--nofile=3"]);
  await onAll(servers, "DEL", "job");
  const { code, stderr } = await waiting.end(END_WITHIN_MS);
  assertEquals(code, 125);
  assertMatch(stderr, /^hasp: .*\n$/);
  await gone(servers, "job");
}

/** A lock that is lost ends the command. */
async function testLoss(edition: Edition, servers: ServerGroup): Promise<void> {
  await using folder = await makeFolder();
  const command = ["sh", "-c", 'sleep 600 & echo "$$ $!" >"$FILE"; echo begun; wait'];
  const args = ["run", "-r", "job", "--ttl", "3s", "--", ...command];
  const env = { FILE: `${folder.path}/pids` };
  await using losing = startHasp(args, { edition, urls: servers.urls, env });
  await losing.line("begun");
  await onAll(servers, "DEL", "job");
  const { code, stderr } = await losing.end(END_WITHIN_MS);
  assertEquals(code, 122);
  assertMatch(stderr, /^hasp: Cannot keep lock "job": .*; the command is stopped\n$/);
  for (const pid of folder.lines("pids")[0].split(" ")) await processGone(Number(pid));
  await gone(servers, "job");
}
