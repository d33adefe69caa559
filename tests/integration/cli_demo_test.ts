/** `hasp demo`: counts with the lock and without it, and can be ended. */

import { assert, assertEquals, assertGreater, assertLess, assertMatch } from "@std/assert";
import { hasp, startHasp } from "../support/command_line.ts";

Deno.test("hasp demo keeps every increment under the lock while nodes fail, and loses some without it", async () => {
  const { code, stdout, stderr } = await hasp(["demo"]);
  assertEquals([code, stderr], [0, ""]);
  const [kept, lost] = [...stdout.matchAll(/24 increments, counter (\d+), at most (\d)/g)]
    .map(([, count, together]) => [Number(count), Number(together)]);
  assertEquals(kept, [24, 1]);
  assertLess(lost[0], 24);
  assertGreater(lost[1], 1);
  for (const row of [/worker A .*█/, /node 2 +━+╳+$/, /node 4 +━+░/, /node 5 +━+$/]) {
    assertMatch(stdout, new RegExp(row, "m"));
  }
  assert(!stdout.includes("\x1b"));
  assertEquals(stdout.split("\n").slice(0, 3).filter((line) => line.length > 79), []);
});

Deno.test("hasp demo ends with the code of a signal", async () => {
  await using program = startHasp(["demo"]);
  await program.line("The lock is on 5 servers in memory.");
  program.signal("SIGTERM");
  const { code, stderr } = await program.end();
  assertEquals([code, stderr], [143, ""]);
});
