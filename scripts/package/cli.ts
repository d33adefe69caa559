/**
 * The command line of the npm package: one file, with the packages that it needs in it, so that the
 * package keeps no dependency. The library is not in it: it imports that from the package.
 *
 * @module
 */

import { dirname, join, relative } from "node:path";
import { CODE_FOLDER, PROGRAM } from "./manifest.ts";
import { findTool, findTools, ROOT, succeed } from "./tools.ts";

/** Where the command line is in the source. */
const SOURCE = "src/cli/mod.ts";
/** The licenses of what is bundled, which must go with it. */
const LICENSES = `${CODE_FOLDER}/src/cli/LICENSES.txt`;

/** Entry points of the library, which the package has as files. */
const LIBRARY = ["mod", "src/operate/mod", "src/redis/mod", "src/testing/mod"];

/**
 * Node runs it as a program; the packages in it that are CommonJS load Node's own modules by
 * `require`.
 */
const BANNER = `#!/usr/bin/env node
import { createRequire as createRequireOfPackages } from "node:module";
const require = createRequireOfPackages(import.meta.url);`;

/** Bundles the command line into the package in `folder`. */
export async function bundleCli(folder: string): Promise<void> {
  const [program, packages] = [join(folder, PROGRAM), await findTools("locked")];
  const metafile = join(folder, "meta.json");
  const said = await succeed(await findTool("locked", "esbuild"), [
    SOURCE,
    ...["--bundle", "--platform=node", "--format=esm", "--target=node20", "--log-level=warning"],
    ...["--minify-whitespace", "--minify-syntax", "--legal-comments=none"],
    ...["--define:import.meta.main=true", `--banner:js=${BANNER}`],
    ...LIBRARY.map((path) => `--external:./${path}.ts`),
    ...[`--outfile=${program}`, `--metafile=${metafile}`],
  ], { cwd: ROOT, env: { NODE_PATH: packages } });
  if (said.trim() !== "") throw new Error(`esbuild warns:\n${said}`);
  let text = await Deno.readTextFile(program);
  for (const path of LIBRARY) {
    const [from, to] = [join(ROOT, `${path}.ts`), join(folder, CODE_FOLDER, `${path}.js`)];
    const specifier = (target: string) => `"${relative(dirname(program), target)}"`;
    text = text.replaceAll(specifier(from), specifier(to));
  }
  await Deno.writeTextFile(program, text);
  await Deno.chmod(program, 0o755);
  const { inputs } = JSON.parse(await Deno.readTextFile(metafile));
  await Deno.remove(metafile);
  await Deno.writeTextFile(join(folder, LICENSES), await licensesOf(Object.keys(inputs), packages));
}

/** The licenses of the packages that the modules are from. */
async function licensesOf(modules: readonly string[], packages: string): Promise<string> {
  const names = modules.flatMap((path) =>
    /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []
  );
  const texts = [...new Set(names)].sort().map(async (name) => {
    const folder = join(packages, name);
    const { version } = JSON.parse(await Deno.readTextFile(join(folder, "package.json")));
    const files = await Array.fromAsync(Deno.readDir(folder));
    const file = files.find((it) => /^licen[cs]e(\.\w+)?$/i.test(it.name));
    if (file === undefined) throw new Error(`${name} has no license`);
    const text = await Deno.readTextFile(join(folder, file.name));
    return `${name} ${version}\n\n${text.trim()}\n`;
  });
  return `The program mod.js contains these packages.\n\n${
    (await Promise.all(texts)).join("\n\n")
  }`;
}
