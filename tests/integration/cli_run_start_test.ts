/** `hasp run`: what is left if a command cannot be started. */

import { assertEquals, assertRejects } from "@std/assert";
import { startCommand } from "../../src/cli/run/running_command.ts";
import { makeFolder } from "../support/command_line.ts";
import { eventually } from "../support/eventually.ts";

/** Far longer than a command needs to start, in milliseconds. */
const LONG_ENOUGH_MS = 500;

/** The processes that this one has started and that still run. */
function children(): number[] {
  return [...Deno.readDirSync("/proc")].map(({ name }) => Number(name)).filter((pid) => {
    try {
      const stat = Deno.readTextFileSync(`/proc/${pid}/stat`);
      const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return Number(parent) === Deno.pid && state !== "Z";
    } catch {
      return false;
    }
  });
}

Deno.test("a command does not start before its watcher watches over it", async () => {
  await using folder = await makeFolder();
  const before = children();
  const options = { env: {}, foreground: false, remainingMs: 60_000 };
  const starting = startCommand(["/bin/sh", "-c", `echo ran >"${folder.path}/ran"`], options);
  const [watcher] = children().filter((pid) => !before.includes(pid));
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
  const before = children();
  const starting = startCommand(["sleep", "60"], options);
  const started = children().filter((pid) => !before.includes(pid));
  assertEquals(started.length, 1);
  Deno.kill(started[0], "SIGKILL");
  await assertRejects(() => starting, Error);
  await eventually(() => children().every((pid) => before.includes(pid)));
});
