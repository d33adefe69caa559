/** The command line in Deno, from its source and in a binary. */

import { assert, assertGreater } from "@std/assert";
import { join } from "node:path";
import { ROOT, run, succeed } from "../../scripts/package/tools.ts";
import {
  DENO_PERMISSIONS,
  type Edition,
  makeFolder,
  SOURCE_EDITION,
} from "../support/command_line.ts";
import { testExitPaths } from "../support/edition_cases.ts";
import { plainCommand } from "../support/plain_command.ts";

/** What `deno compile` says if it cannot download the runtime that it puts into binaries. */
const NO_RUNTIME = /Setting up base binary/;

Deno.test("hasp in Deno has an exit code for each end, and leaves nothing behind", async () => {
  await testExitPaths(SOURCE_EDITION);
});

const missing = await missingForBinaries();
Deno.test({
  name: `hasp in a binary of Deno${missing ? ` (skipped: ${missing})` : ""}`,
  ignore: missing !== undefined,
  fn: async () => {
    await using folder = await makeFolder();
    await testExitPaths(await binaryOfDeno(folder.path));
  },
});

Deno.test("deno compile takes the command line with all that it imports", async () => {
  await using folder = await makeFolder();
  const binary = `${folder.path}/hasp`;
  // Deno itself stands in for the runtime that it puts into binaries, as that may have to be
  // downloaded.
  const { success, stderr } = await plainCommand(Deno.execPath(), {
    args: compileArgs(binary),
    env: { DENORT_BIN: Deno.execPath() },
  }).output();
  assert(success, new TextDecoder().decode(stderr));
  assertGreater((await Deno.stat(binary)).size, (await Deno.stat(Deno.execPath())).size);
});

/** A binary that Deno makes of the source, in `folder`. */
async function binaryOfDeno(folder: string): Promise<Edition> {
  const binary = join(folder, "hasp");
  await succeed(Deno.execPath(), compileArgs(binary), { cwd: ROOT });
  return [binary];
}

/** The arguments with which Deno makes a binary, with the permissions that the manual names. */
function compileArgs(binary: string): string[] {
  const options = ["--quiet", "--no-check", ...DENO_PERMISSIONS, "--output", binary];
  return ["compile", ...options, "src/cli/mod.ts"];
}

/** Why Deno can make no binary here; `undefined` if it can. */
async function missingForBinaries(): Promise<string | undefined> {
  const folder = await Deno.makeTempDir({ prefix: "hasp-" });
  try {
    const program = join(folder, "empty.ts");
    await Deno.writeTextFile(program, "");
    const args = ["compile", "--output", join(folder, "empty"), program];
    const { success, output } = await run(Deno.execPath(), args);
    if (success) return undefined;
    if (!NO_RUNTIME.test(output)) throw new Error(output);
    const missing = "deno compile cannot download the runtime for binaries";
    console.error(`Skipping tests: ${missing}`);
    return missing;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
