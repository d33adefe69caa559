/**
 * The arguments of `deno task sim`: those that it refuses, so that a run without seeds is never a
 * good one.
 */

import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { join } from "node:path";
import { ROOT } from "../../scripts/package/tools.ts";
import { limitMs, seedRange, threadCount } from "../../scripts/sim/limits.ts";
import { plainCommand } from "../support/plain_command.ts";

Deno.test("seedRange() reads a count and a range, and has no end with --hours alone", () => {
  assertEquals(seedRange({}), { from: 0, to: 1_000 });
  assertEquals(seedRange({ seeds: "7" }), { from: 0, to: 7 });
  assertEquals(seedRange({ seeds: "20..30", hours: "1" }), { from: 20, to: 30 });
  assertEquals(seedRange({ hours: "1" }), { from: 0, to: Infinity });
});

for (const seeds of ["foo", "", "0", "7..7", "9..3", "1..", "..5", "1..2x", "-5", "1.5", "1e3"]) {
  Deno.test(`seedRange() refuses --seeds "${seeds}"`, () => {
    const message =
      `--seeds must be a count, or a..b with a less than b: current value is "${seeds}"`;
    assertEquals(assertThrows(() => seedRange({ seeds }), TypeError).message, message);
  });
}

Deno.test("a simulator that refuses an argument ends, though it has started threads", async () => {
  const { code, stderr } = await plainCommand(Deno.execPath(), {
    args: ["run", "-A", join(ROOT, "scripts", "sim.ts"), "--seeds", "0"],
    signal: AbortSignal.timeout(60_000),
  }).output();
  assertEquals(code, 2);
  assertStringIncludes(new TextDecoder().decode(stderr), 'current value is "0"');
});

Deno.test("limitMs() and threadCount() refuse what is no positive number", () => {
  assertEquals([limitMs({}), limitMs({ hours: "0.5" }), threadCount({ threads: "3" })], [
    Infinity,
    1_800_000,
    3,
  ]);
  for (const text of ["foo", "0", "-1", ""]) {
    assertThrows(() => limitMs({ hours: text }), TypeError, `current value is "${text}"`);
    assertThrows(() => threadCount({ threads: text }), TypeError, `current value is "${text}"`);
  }
});
