/**
 * Builds the npm package into `npm/`: through dnt, or, where JSR cannot be reached, through
 * TypeScript itself. It says which way it went; the files are the same, as `check_npm.ts` checks
 * wherever dnt can be had. With `--pack` it leaves in a folder what is to be published: the
 * tarball, and in the file `tag` the npm tag to publish it under.
 *
 * @module
 */

import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { emitThroughDnt, emitThroughTsc, loadDnt } from "./package/emit.ts";
import { finish } from "./package/finish.ts";
import { npmTag, readConfig } from "./package/manifest.ts";
import { findTools, ROOT, succeed } from "./package/tools.ts";

const HELP = `Usage: deno run -A scripts/build_npm.ts [options]

  --pack <folder>     build and pack the package in this folder
  --through dnt|tsc   insist on one way; without it, dnt where it can be had
  --help              show this text`;

/** Where the package is built; the folder is ignored by git. */
export const PACKAGE_FOLDER: string = join(ROOT, "npm");

/**
 * Where {@linkcode packNpm} builds the package, below its folder, what `npm pack` said of it, and
 * the way it went.
 */
export const [BUILT, PACKED, WAY]: [string, string, string] = ["built", "packed.json", "way"];

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
    console.log(`${error.message}\nThe package is built through TypeScript itself in place of dnt`);
  });
  await Deno.remove(folder, { recursive: true }).catch(() => {});
  await Deno.mkdir(folder, { recursive: true });
  // The locked packages that its code imports: dnt would have npm install others.
  const tools = join(folder, "node_modules");
  await Deno.symlink(await findTools("locked"), tools);
  if (dnt) await emitThroughDnt(dnt, config, folder);
  else await emitThroughTsc(config, folder);
  await finish(config, folder);
  await Deno.remove(tools);
  return dnt ? "dnt" : "tsc";
}

/**
 * Builds and packs the package.
 *
 * @param folder Where to; what is there is replaced.
 * @param through Insists on one way.
 * @returns The way it went.
 * @throws {Error} If that fails.
 */
export async function packNpm(folder: string, through?: Way): Promise<Way> {
  const built = join(folder, BUILT);
  const way = await buildNpm(through, built);
  const args = ["pack", "--json", "--silent", "--ignore-scripts", "--pack-destination", folder];
  const packed = await succeed("npm", args, { cwd: built });
  const tarballs = packed.slice(packed.indexOf("["), packed.lastIndexOf("]") + 1);
  await Deno.writeTextFile(join(folder, PACKED), tarballs);
  await Deno.writeTextFile(join(folder, WAY), way);
  await Deno.writeTextFile(join(folder, "tag"), npmTag((await readConfig()).version));
  return way;
}

async function main(): Promise<number> {
  const { values: { pack, through, help } } = parseArgs({
    args: Deno.args,
    options: {
      pack: { type: "string" },
      through: { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (help || through !== undefined && through !== "dnt" && through !== "tsc") {
    console.log(HELP);
    return help ? 0 : 2;
  }
  try {
    const way = pack === undefined
      ? await buildNpm(through as Way | undefined)
      : await packNpm(resolve(pack), through as Way | undefined);
    console.log(`${pack ?? "npm"}/ was built through ${way}`);
    return 0;
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    return 1;
  }
}

if (import.meta.main) Deno.exitCode = await main();
