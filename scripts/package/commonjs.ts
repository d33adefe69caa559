/**
 * The entry points for CommonJS: files of one line that `require` the ES modules, as Node can from
 * 20.19, and declarations for them. TypeScript lets a CommonJS file name the types of an ES module
 * only by an import that says so.
 *
 * @module
 */

import { basename, join } from "node:path";
import { builtPath, type Config } from "./manifest.ts";
import { succeed } from "./tools.ts";

/** How a type is imported from an ES module. */
const MODE = '{ "resolution-mode": "import" }';

/** Prints the names that each module exports, and which are classes. Its arguments are paths. */
const EXPORTS = `
const found = process.argv.slice(1).map(async (path) =>
  Object.entries(await import(path)).map(([name, value]) => [name, /^class /.test(value)])
);
console.log(JSON.stringify(await Promise.all(found)));
`;

/**
 * Writes two files beside each entry point of the package in `folder`. Node loads those for the names
 * that they export, not Deno the source: Deno would fetch what they import, without a lockfile.
 */
export async function addCommonJs(config: Config, folder: string): Promise<void> {
  const paths = Object.values(config.exports).map(builtPath);
  const modules = paths.map((path) => `./${path}.js`);
  const script = ["--no-warnings", "--input-type=module", "--eval", EXPORTS, ...modules];
  const found: [string, boolean][][] = JSON.parse(await succeed("node", script, { cwd: folder }));
  for (const [index, path] of paths.entries()) {
    const module = `./${basename(path)}.js`;
    const own = `import("${module}", { with: ${MODE} })`;
    const lines = found[index]!.flatMap(([name, isClass]) => [
      `export declare const ${name}: typeof ${own}.${name};`,
      ...(isClass ? [`export type ${name} = ${own}.${name};`] : []),
    ]);
    const types = `export type * from "${module}" with ${MODE};`;
    await Deno.writeTextFile(
      join(folder, `${path}.cjs`),
      `module.exports = require("${module}");\n`,
    );
    await Deno.writeTextFile(join(folder, `${path}.d.cts`), [types, ...lines, ""].join("\n"));
  }
}
