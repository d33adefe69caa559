/** `hasp run`: what is left if a command cannot be started. */

import { assertEquals, assertRejects } from "@std/assert";
import { startCommand } from "../../src/cli/run/running_command.ts";
import { GATE, WATCHER } from "../../src/cli/run/shell_scripts.ts";
import { childrenOf, makeFolder } from "../support/command_line.ts";
import { eventually } from "../support/eventually.ts";

/** Far longer than a command needs to start, in milliseconds. */
const LONG_ENOUGH_MS = 500;

/** The shells that `startCommand` has started here: other files of tests have children in this process too. */
function shells(): number[] {
  return [WATCHER, GATE].flatMap((script) => childrenOf(Deno.pid, script));
}

Deno.test("a command does not start before its watcher watches over it", async () => {
  await using folder = await makeFolder();
  const options = { env: {}, foreground: false, remainingMs: 60_000 };
  const starting = startCommand(["/bin/sh", "-c", `echo ran >"${folder.path}/ran"`], options);
  const [watcher] = shells();
  Deno.kill(watcher, "SIGSTOP");
  await new Promise((resolve) => setTimeout(resolve, LONG_ENOUGH_MS));
  assertEquals([...Deno.readDirSync(folder.path)], []);
  Deno.kill(watcher, "SIGCONT");
  const command = await starting;
  assertEquals(await command.ended, [0, null]);
  assertEquals(folder.lines("ran"), ["ran"]);
  assertEquals(await command.close(), false);
});

Deno.test("a command whose watcher is killed at once is not started, and leaves no process", async () => {
  const options = { env: {}, foreground: false, remainingMs: 10_000 };
  const starting = startCommand(["sleep", "60"], options);
  const [watcher, ...others] = shells();
  assertEquals(others, []);
  Deno.kill(watcher, "SIGKILL");
  await assertRejects(() => starting, Error);
  await eventually(() => shells().length === 0);
});
