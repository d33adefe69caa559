/** `hasp run`: what is left if a command cannot be started, and what it says while it waits. */

import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import process from "node:process";
import { createRedlock, type Lock, type Redlock, type RedlockEvent } from "../../mod.ts";
import { run, runLocked, type RunOptions } from "../../src/cli/run/run_command.ts";
import { startCommand, type StartOptions } from "../../src/cli/run/running_command.ts";
import { gate, WATCHER } from "../../src/cli/run/shell_scripts.ts";
import { Signals } from "../../src/cli/run/signals.ts";
import { startFakeClock } from "../../src/testing/mod.ts";
import { childrenOf, makeFolder } from "../support/command_line.ts";
import { eventually } from "../support/eventually.ts";
import { shareServers } from "../support/shared_servers.ts";

const shared = shareServers(3);

/** Far longer than a command needs to start, in milliseconds. */
const LONG_ENOUGH_MS = 500;

/**
 * The shells that `startCommand` has started here: other files of tests have children in this
 * process too.
 */
function shells(): number[] {
  return [WATCHER, gate(3)].flatMap((script) => childrenOf(Deno.pid, script));
}

function optionsOf(limitMs: number): StartOptions {
  return { env: {}, foreground: false, limitMs: () => limitMs, beforeBegin: () => {} };
}

Deno.test("a command does not start before its watcher watches over it", async () => {
  await using folder = await makeFolder();
  const command = ["/bin/sh", "-c", `echo ran >"${folder.path}/ran"`];
  const starting = startCommand(command, optionsOf(60_000));
  const [watcher] = shells();
  Deno.kill(watcher, "SIGSTOP");
  await new Promise((resolve) => setTimeout(resolve, LONG_ENOUGH_MS));
  assertEquals([...Deno.readDirSync(folder.path)], []);
  Deno.kill(watcher, "SIGCONT");
  const running = await starting;
  assertEquals(await running.ended, [0, null]);
  assertEquals(folder.lines("ran"), ["ran"]);
  assertEquals(await running.close(0), undefined);
});

Deno.test("a command whose watcher is killed at once is not started, and leaves no process", async () => {
  const starting = startCommand(["sleep", "60"], optionsOf(10_000));
  const [watcher, ...others] = shells();
  assertEquals(others, []);
  Deno.kill(watcher, "SIGKILL");
  await assertRejects(() => starting, Error);
  await eventually(() => shells().length === 0);
});

Deno.test("a command whose watcher does not answer is not started, and leaves no process", async () => {
  const starting = startCommand(["sleep", "60"], optionsOf(200));
  const [watcher] = shells();
  Deno.kill(watcher, "SIGSTOP");
  const message = "The process that watches over the command does not answer";
  await assertRejects(() => starting, Error, message);
  await eventually(() => shells().length === 0);
});

Deno.test("a command whose lock is lost before it begins does not begin", async () => {
  await using folder = await makeFolder();
  const lost = new Error("lost");
  const lock = {
    signal: AbortSignal.abort(lost),
    remainingMs: () => 10_000,
    release: () => Promise.resolve(false),
    resources: ["a"],
  } as unknown as Lock;
  const options = { grace: 0, ttl: 30_000, atLeast: 0 } as RunOptions;
  const signals = new Signals();
  const command = ["/bin/sh", "-c", `echo ran >"${folder.path}/ran"`];
  const running = runLocked(command, lock, options, signals, {}, {} as Redlock);
  assertEquals(await assertRejects(() => running, Error), lost);
  signals.stop();
  await eventually(() => shells().length === 0);
  assertEquals([...Deno.readDirSync(folder.path)], []);
});

for (const atLeast of [0, 10_000]) {
  Deno.test(`a lock is released, and not lost, if a signal ends its waiting with --at-least ${atLeast}`, async () => {
    await using servers = shared.lend();
    const events: RedlockEvent["type"][] = [];
    const settings = { autoExtend: true, atLeastMs: atLeast, ttlMs: 30_000 };
    const onEvent = ({ type }: RedlockEvent) => void events.push(type);
    const redlock = createRedlock(servers.urls, { ...settings, onEvent });
    const lock = await redlock.acquire("job");
    const interrupted = new Error("interrupted");
    const signals = { waiting: AbortSignal.abort(interrupted) } as Signals;
    const options = { grace: 0, ttl: 30_000, atLeast } as RunOptions;
    const running = runLocked(["true"], lock, options, signals, {}, redlock);
    assertEquals(await assertRejects(() => running, Error), interrupted);
    assertEquals((await redlock.inspect("job")).held, false);
    await redlock.close();
    const ends = events.filter((type) => ["released", "release-failed", "lost"].includes(type));
    assertEquals(ends, ["released"]);
    await eventually(() => shells().length === 0);
  });
}

Deno.test("hasp run says once that it waits because no node answers for a minute, and why", async () => {
  const { write } = process.stderr;
  const lines: string[] = [];
  process.stderr.write = (line: unknown) => lines.push(String(line)) > 0;
  using clock = startFakeClock();
  try {
    const nodes = ["redis://:a,b c@127.0.0.1:1, redis://127.0.0.1:2"];
    const options = { node: nodes, resource: ["a"], ttl: 30_000, wait: Infinity, atLeast: 0 };
    const running = run(["true"], options as unknown as RunOptions);
    await clock.tick(58_000);
    assertEquals(lines, []);
    await clock.tick(12_000);
    assertMatch(
      lines.join(""),
      /^hasp: Still waiting, because too few nodes have answered for a minute: 0 of 2 nodes granted it, 2 failed, 2 are needed; first error: Connection to redis:\/\/127.0.0.1:1 could not be made: .*\n$/u,
    );
    process.emit("SIGTERM", "SIGTERM");
    assertEquals(await clock.tickUntil(running), 143);
  } finally {
    process.stderr.write = write;
  }
});
