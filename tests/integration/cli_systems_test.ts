/**
 * `hasp run` without a shell and without Redis, as it runs on every system: this file is run on
 * macOS and Windows too.
 */

import { assertEquals, assertMatch } from "@std/assert";
import { LOCK_LOST } from "../../src/cli/exit_codes.ts";
import { startNodes } from "../../src/testing/mod.ts";
import { hasp, startHasp } from "../support/command_line.ts";

/** A program as the command of `hasp run`. */
function deno(program: string): string[] {
  return ["--", Deno.execPath(), "eval", program];
}

Deno.test("hasp run gives a program the lock and returns its code, on every system", async () => {
  await using nodes = await startNodes(3);
  const urls = nodes.addresses;
  const program = `console.log(Deno.env.get("HASP_RESOURCE")); Deno.exit(7);`;
  const { code, stdout, stderr } = await hasp(["run", "-r", "backup", ...deno(program)], { urls });
  assertEquals([code, stdout.trim(), stderr], [7, "backup", ""]);
});

Deno.test("hasp run skips a program whose lock another one holds, on every system", async () => {
  await using nodes = await startNodes(3);
  const urls = nodes.addresses;
  const waiting = `console.log("begun"); await Deno.stdin.read(new Uint8Array(1));`;
  await using first = startHasp(["run", "-r", "backup", ...deno(waiting)], { urls });
  await first.line("begun");
  const skipping = ["run", "-r", "backup", "--wait", "0", "--on-held", "skip"];
  const second = await hasp([...skipping, ...deno(`console.log("begun")`)], { urls });
  assertEquals([second.code, second.stdout], [0, ""]);
  await first.closeInput();
  assertEquals((await first.end()).code, 0);
});

Deno.test("hasp run ends a program whose lock is lost, on every system", async () => {
  await using nodes = await startNodes(3);
  const endless = `console.log("begun"); setInterval(() => {}, 1_000);`;
  const args = ["run", "-r", "backup", "--ttl", "12s", "--grace", "300ms", ...deno(endless)];
  await using program = startHasp(args, { urls: nodes.addresses });
  await program.line("begun");
  for (const node of nodes) await node.crash();
  for (const node of nodes) await node.restart(); // which the next extension finds out
  const { code, stderr } = await program.end();
  assertEquals(code, LOCK_LOST);
  assertMatch(stderr, /the command is stopped/u);
});
