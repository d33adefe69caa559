/** The command line of the npm package, in Node and in a binary of Bun. */

import { join } from "node:path";
import { type Consumer, startConsumer } from "../../scripts/package/consumer.ts";
import { PROGRAM } from "../../scripts/package/manifest.ts";
import { nodePath, succeed } from "../../scripts/package/tools.ts";
import type { Edition } from "../support/command_line.ts";
import { testExclusion, testExitPaths } from "../support/edition_cases.ts";
import { findRuntimes } from "../support/programs.ts";

Deno.test("hasp of the npm package", async (t) => {
  await using consumer = await startConsumer();
  const installed = await installedProgram(consumer);
  await t.step("in Node 20 never runs two commands at once while nodes and processes fail", () => {
    return testExclusion(installed);
  });
  await t.step("in Node 20 has an exit code for each end, and leaves nothing behind", () => {
    return testExitPaths(installed);
  });
  for (const { name, path, missing } of await findRuntimes()) {
    if (name !== "bun") continue;
    await t.step({
      name: `in a binary of Bun${missing ? ` (skipped: ${missing})` : ""}`,
      ignore: missing !== undefined,
      fn: async () => testExitPaths(await binaryOfBun(path!, consumer)),
    });
  }
});

/** The program that npm installs, in the oldest Node that is supported. */
async function installedProgram({ folder }: Consumer): Promise<Edition> {
  return [await nodePath("node20"), join(folder, "node_modules", ".bin", "hasp")];
}

/** A binary that Bun makes of the installed program. */
async function binaryOfBun(bun: string, { folder }: Consumer): Promise<Edition> {
  const binary = join(folder, "hasp");
  const program = join(folder, "node_modules", "@hasp", "redlock", PROGRAM);
  await succeed(bun, ["build", "--compile", program, "--outfile", binary]);
  return [binary];
}
