/**
 * The entry points for CommonJS: files of one line that `require` the ES modules, as Node can from
 * 20.19, and declarations for them. TypeScript lets a CommonJS file name the types of an ES module
 * only by an import that says so.
 *
 * @module
 */

import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { builtPath, type Config } from "./manifest.ts";
import { ROOT } from "./tools.ts";

/** How a type is imported from an ES module. */
const MODE = '{ "resolution-mode": "import" }';

/** Writes two files beside each entry point of the package in `folder`. */
export async function addCommonJs(config: Config, folder: string): Promise<void> {
  for (const source of Object.values(config.exports)) {
    const path = builtPath(source);
    const module = `./${basename(path)}.js`;
    const own = `import("${module}", { with: ${MODE} })`;
    const values = await import(pathToFileURL(join(ROOT, source)).href);
    const lines = Object.entries(values).flatMap(([name, value]) => [
      `export declare const ${name}: typeof ${own}.${name};`,
      ...(String(value).startsWith("class ") ? [`export type ${name} = ${own}.${name};`] : []),
    ]);
    const types = `export type * from "${module}" with ${MODE};`;
    await Deno.writeTextFile(
      join(folder, `${path}.cjs`),
      `module.exports = require("${module}");\n`,
    );
    await Deno.writeTextFile(join(folder, `${path}.d.cts`), [types, ...lines, ""].join("\n"));
  }
}
