/**
 * The entry points for CommonJS: files of one line that `require` the ES modules, as Node can from
 * 20.19, and declarations for them. TypeScript lets a CommonJS file name the types of an ES module
 * only by an import that says so.
 *
 * @module
 */

import { basename, join } from "node:path";
import { builtPath, CODE_FOLDER, type Config } from "./manifest.ts";
import { filesIn, succeed } from "./tools.ts";

/** How a type is imported from an ES module. */
const MODE = '{ "resolution-mode": "import" }';

/** Prints the names that each module exports, and which are classes. Its arguments are paths. */
const EXPORTS = `
const found = process.argv.slice(1).map(async (path) =>
  Object.entries(await import(path)).map(([name, value]) => [name, /^class /.test(value)])
);
console.log(JSON.stringify(await Promise.all(found)));
`;

/** The declaration of a class with a type parameter: its name, and the parameter. */
const GENERIC_CLASS = /\bclass (\w+)<((\w+)[^,>]*)> /g;

/**
 * Writes two files beside each entry point of the package in `folder`. Node loads those for the names
 * that they export, not Deno the source: Deno would fetch what they import, without a lockfile.
 */
export async function addCommonJs(config: Config, folder: string): Promise<void> {
  const paths = Object.values(config.exports).map(builtPath);
  const modules = paths.map((path) => `./${path}.js`);
  const script = ["--no-warnings", "--input-type=module", "--eval", EXPORTS, ...modules];
  const parameters = await typeParameters(join(folder, CODE_FOLDER));
  const found: [string, boolean][][] = JSON.parse(await succeed("node", script, { cwd: folder }));
  for (const [index, path] of paths.entries()) {
    const module = `./${basename(path)}.js`;
    const own = `import("${module}", { with: ${MODE} })`;
    const lines = found[index]!.flatMap(([name, isClass]) => [
      `export declare const ${name}: typeof ${own}.${name};`,
      ...(isClass ? [typeOf(name, own, parameters.get(name))] : []),
    ]);
    const types = `export type * from "${module}" with ${MODE};`;
    await Deno.writeTextFile(
      join(folder, `${path}.cjs`),
      `module.exports = require("${module}");\n`,
    );
    await Deno.writeTextFile(join(folder, `${path}.d.cts`), [types, ...lines, ""].join("\n"));
  }
}

/** The type parameter of each class that has one, and its name, from the declarations in `code`. */
async function typeParameters(code: string): Promise<Map<string, [whole: string, name: string]>> {
  const found = new Map<string, [string, string]>();
  for (const path of await filesIn(code)) {
    if (!path.endsWith(".d.ts")) continue;
    for (const match of (await Deno.readTextFile(join(code, path))).matchAll(GENERIC_CLASS)) {
      found.set(match[1]!, [match[2]!, match[3]!]);
    }
  }
  return found;
}

/** Declares the type of the instances of a class, which the value beside it hides otherwise. */
function typeOf(name: string, module: string, parameter: [string, string] | undefined): string {
  if (!parameter) return `export type ${name} = ${module}.${name};`;
  const [whole, parameterName] = parameter;
  return `export type ${name}<${whole}> = ${module}.${name}<${parameterName}>;`;
}
