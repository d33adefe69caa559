/**
 * Builds the npm package into `npm/`: through dnt, or, where JSR cannot be reached, through TypeScript itself. It
 * says which way it went; the files are the same.
 *
 * @module
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { emitThroughDnt, emitThroughTsc, loadDnt } from "./package/emit.ts";
import { finish } from "./package/finish.ts";
import { readConfig } from "./package/manifest.ts";
import { ROOT } from "./package/tools.ts";

const HELP = `Usage: deno run -A scripts/build_npm.ts [options]

  --through dnt|tsc   insist on one way; without it, dnt where it can be had
  --help              show this text`;

/** Where the package is built; the folder is ignored by git. */
export const PACKAGE_FOLDER: string = join(ROOT, "npm");

/** How the code is emitted. */
export type Way = "dnt" | "tsc";

/**
 * Builds the package anew.
 *
 * @param through Insists on one way.
 * @param folder Where to; what is there is removed.
 * @returns The way it went.
 * @throws {Error} If the way that was insisted on cannot be had, or the source does not compile.
 */
export async function buildNpm(through?: Way, folder = PACKAGE_FOLDER): Promise<Way> {
  const config = await readConfig();
  const dnt = through === "tsc" ? undefined : await loadDnt().catch((error) => {
    if (through === "dnt") throw error;
    console.log(`${error.message}; TypeScript itself is used`);
  });
  await Deno.remove(folder, { recursive: true }).catch(() => {});
  await Deno.mkdir(folder, { recursive: true });
  if (dnt) await emitThroughDnt(dnt, config, folder);
  else await emitThroughTsc(config, folder);
  await finish(config, folder);
  return dnt ? "dnt" : "tsc";
}

async function main(): Promise<number> {
  const { values: { through, help } } = parseArgs({
    args: Deno.args,
    options: { through: { type: "string" }, help: { type: "boolean", short: "h" } },
  });
  if (help || through !== undefined && through !== "dnt" && through !== "tsc") {
    console.log(HELP);
    return help ? 0 : 2;
  }
  try {
    const way = await buildNpm(through as Way | undefined);
    console.log(`npm/ was built through ${way}`);
    return 0;
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    return 1;
  }
}

if (import.meta.main) Deno.exitCode = await main();
