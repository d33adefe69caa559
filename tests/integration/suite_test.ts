/** The test command itself: runs that are interrupted, match nothing, or fail in part. */

import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { join } from "node:path";
import { ROOT } from "../../scripts/package/tools.ts";
import { makeFolder } from "../support/command_line.ts";
import { eventually } from "../support/eventually.ts";
import { plainCommand } from "../support/plain_command.ts";

/** Tests that start servers and stop some of them by SIGSTOP. */
const FILE = "tests/integration/using_test.ts";

/** How long it may take until the tests begin: they are type-checked, and JSR is asked first. */
const STARTED_WITHIN_MS = 120_000;

/** Whether the folder of a server is in `folder`, or in the run's own folder below. */
async function hasServer(folder: string): Promise<boolean> {
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (name.startsWith("redis-")) return true;
    if (isDirectory && await hasServer(join(folder, name))) return true;
  }
  return false;
}

Deno.test("a run that is interrupted ends all that it has started, and leaves nothing behind", async () => {
  await using folder = await makeFolder();
  const run = plainCommand(Deno.execPath(), {
    args: ["run", "-A", join(ROOT, "scripts", "test.ts"), "integration", "--", FILE],
    env: { TMPDIR: folder.path },
    stdout: "piped",
    stderr: "null",
  }).spawn();
  // ends when nobody is left who could write to it
  const output = new Response(run.stdout).text();
  await eventually(() => hasServer(folder.path), STARTED_WITHIN_MS);
  run.kill("SIGTERM"); // this process alone, unlike Ctrl-C in a terminal
  assertEquals((await run.status).code, 130);
  assertStringIncludes(await output, "── integration: interrupted");
  assertEquals((await Array.fromAsync(Deno.readDir(folder.path))).map(({ name }) => name), []);
});

Deno.test("a run whose filter no test matches fails, and says so", async () => {
  const { code, stdout } = await plainCommand(Deno.execPath(), {
    args: [
      ...["run", "-A", join(ROOT, "scripts", "test.ts"), "unit"],
      ...["--filter", "matches nothing", "--", "tests/unit/vote_test.ts"],
    ],
    stderr: "null",
  }).output();
  assertEquals(code, 1);
  const output = new TextDecoder().decode(stdout);
  assertStringIncludes(output, 'Failed:\n  no test matches the filter "matches nothing"\n');
  assertStringIncludes(output, "\n0 passed, 1 failed\n");
});

Deno.test("a test that fails is run once more, alone: if it passes, the run names it, and does not fail", async () => {
  await using folder = await makeFolder();
  const file = join(folder.path, "some_test.ts");
  await Deno.writeTextFile(
    file,
    `
    import { define } from "./helper.ts";
    let isAlone = true;
    Deno.test("passes", () => void (isAlone = false));
    const test = Deno.env.get("FAILS") === "1" ? Deno.test : define;
    test("is (once) in the way", () => { if (!isAlone) throw new Error("once"); });
    Deno.test("fails", () => { if (Deno.env.get("FAILS") === "1") throw new Error("always"); });
  `,
  );
  const helper = "export const define = (name: string, fn: () => void) => Deno.test(name, fn);";
  await Deno.writeTextFile(join(folder.path, "helper.ts"), helper);
  for (
    const [fails, count] of [
      ["0", "3 passed, 0 failed"],
      ["1", "2 passed, 1 failed"],
    ]
  ) {
    const { code, stdout } = await plainCommand(Deno.execPath(), {
      args: ["run", "-A", join(ROOT, "scripts", "test.ts"), "docs", "--", file],
      env: { FAILS: fails },
      stderr: "null",
    }).output();
    const output = new TextDecoder().decode(stdout);
    assertStringIncludes(output, count);
    const [, repeated = ""] = output.split("Failed beside other tests, passed alone:\n");
    assertMatch(repeated, /^ {2}docs: /u);
    assertStringIncludes(repeated, `/some_test.ts:6  is (once) in the way\n`);
    assertEquals([code, /^Failed:\n.* fails$/mu.test(output)], [Number(fails), fails === "1"]);
  }
});
