/** `hasp demo`: counts with the lock and without it, needs no server, and can be ended. */

import { assert, assertEquals, assertGreater, assertLess, assertMatch } from "@std/assert";
import { hasp, startHasp } from "../support/command_line.ts";

Deno.test("hasp demo keeps every increment under the lock while nodes fail, and loses some without it", async () => {
  const { code, stdout, stderr } = await hasp(["demo"]);
  assertEquals([code, stderr], [0, ""]);
  const [kept, lost] = [...stdout.matchAll(/24 increments, counter (\d+), at most (\d)/g)]
    .map(([, count, inside]) => [Number(count), Number(inside)]);
  assertEquals(kept, [24, 1]);
  assertLess(lost[0], 24);
  assertGreater(lost[1], 1);
  for (const row of [/worker A .*█/, /node 2 .*╳ killed/, /node 4 .*░ *hung/, /node 5 +━+$/]) {
    assertMatch(stdout, new RegExp(row, "m"));
  }
  assert(!stdout.includes("\x1b"));
});

Deno.test("hasp demo ends with the code of a signal", async () => {
  await using program = startHasp(["demo"]);
  await program.line(/^Four workers/);
  program.signal("SIGTERM");
  const { code, stderr } = await program.end(60_000);
  assertEquals([code, stderr], [143, ""]);
});
