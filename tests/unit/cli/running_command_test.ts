import { assertEquals } from "@std/assert";
import type { ChildProcess } from "node:child_process";
import { notStarted } from "../../../src/cli/run/running_command.ts";

Deno.test("a command that could not be started does not run, and passes no signal to hasp's own process group", async () => {
  const kills = () => {
    throw new Error("no such process");
  };
  const command = notStarted({ kill: kills } as unknown as ChildProcess, 127);
  assertEquals(command.signal("SIGTERM"), true);
  assertEquals(await command.ended, [127, null]);
  assertEquals(await command.close(1), undefined);
});
