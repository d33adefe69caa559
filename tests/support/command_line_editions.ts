/**
 * The forms in which people get the command line, beside the source: the npm package, and binaries.
 *
 * @module
 */

import { join } from "node:path";
import type { Consumer } from "../../scripts/package/consumer.ts";
import { PROGRAM } from "../../scripts/package/manifest.ts";
import { nodePath, ROOT, run, succeed } from "../../scripts/package/tools.ts";
import { DENO_PERMISSIONS, type Edition } from "./command_line.ts";

/** What `deno compile` says if it cannot download the runtime that it puts into binaries. */
const NO_RUNTIME = /Setting up base binary/;

/** The program that npm installs, in the oldest Node that is supported. */
export async function installedProgram({ folder }: Consumer): Promise<Edition> {
  return [await nodePath("node20"), join(folder, "node_modules", ".bin", "hasp")];
}

/** A binary that Bun makes of the installed program. */
export async function binaryOfBun(bun: string, { folder }: Consumer): Promise<Edition> {
  const binary = join(folder, "hasp");
  const program = join(folder, "node_modules", "@hasp", "redlock", PROGRAM);
  await succeed(bun, ["build", "--compile", program, "--outfile", binary]);
  return [binary];
}

/** A binary that Deno makes of the source, in `folder`. */
export async function binaryOfDeno(folder: string): Promise<Edition> {
  const binary = join(folder, "hasp");
  await succeed(Deno.execPath(), compileArgs(binary), { cwd: ROOT });
  return [binary];
}

/** The arguments with which Deno makes a binary, with the permissions that the manual names. */
export function compileArgs(binary: string): string[] {
  const options = ["--quiet", "--no-check", ...DENO_PERMISSIONS, "--output", binary];
  return ["compile", ...options, "src/cli/mod.ts"];
}

/** Why Deno can make no binary here; `undefined` if it can. */
export async function missingForBinaries(): Promise<string | undefined> {
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
