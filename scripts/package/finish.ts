/**
 * What is done to the emitted code whichever way it was emitted: after this both ways have written
 * the same files.
 *
 * @module
 */

import { join, posix } from "node:path";
import { bundleCli } from "./cli.ts";
import { addCommonJs } from "./commonjs.ts";
import {
  CODE_FOLDER,
  type Config,
  DENO_TRANSPORT,
  NAMED_MODULES,
  packageJson,
  PEERS,
  TARGET,
} from "./manifest.ts";
import { filesIn, findTool, ROOT, succeed } from "./tools.ts";

/**
 * What dnt leaves. A package.json beside the code would hide `sideEffects` and `imports` of the
 * real one.
 */
const LEFTOVERS = [`${CODE_FOLDER}/package.json`, ".npmignore", "package-lock.json"];

/** For people; copied as they are. */
const PAPERS = ["README.md", "LICENSE"];

/** An import or export of a file beside this one, or the type of one. */
const RELATIVE_IMPORT = /\b(from |import |import\()"(\.[^"]+)"/g;

/** Modules that stay files of their own, as the package's `imports` choose between them. */
const TRANSPORTS = /^src\/transport\/(default_npm|node|node_listener|none|workers)\.js$/;

/** Finishes the package in `folder`, which has in `node_modules` what its code imports. */
export async function finish(config: Config, folder: string): Promise<void> {
  for (const left of LEFTOVERS) {
    await Deno.remove(join(folder, left), { recursive: true }).catch(() => {});
  }
  const manifest = JSON.stringify(packageJson(config), undefined, 2) + "\n";
  await Deno.writeTextFile(join(folder, "package.json"), manifest);
  const code = join(folder, CODE_FOLDER);
  const entryPoints = Object.values(config.exports).map(emittedPath);
  for (const path of await filesIn(code)) if (/\.[jt]s$/.test(path)) await mapImports(code, path);
  await joinDeclarations(code, entryPoints);
  await joinModules(code, entryPoints);
  await addDenoTransport(code);
  await addCommonJs(config, folder);
  await bundleCli(folder);
  for (const name of PAPERS) {
    await Deno.copyFile(join(ROOT, name), join(folder, name)).catch((error) => {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
      console.log(`There is no ${name}: the package goes without`);
    });
  }
}

/**
 * Joins the modules into few files, because Node starts in less time with few files than with many:
 * one for each entry point and transport, and one for each piece that several of these share. No
 * module is in two files, so every class exists once. Every entry point leads to the main one, so
 * that all of that is one piece.
 */
async function joinModules(code: string, entryPoints: readonly string[]): Promise<void> {
  const modules = (await filesIn(code)).filter((path) => path.endsWith(".js"));
  const [main, ...others] = entryPoints;
  for (const path of others) {
    const specifier = posix.relative(posix.dirname(path), main!);
    const text = await Deno.readTextFile(join(code, path));
    await Deno.writeTextFile(join(code, path), `import "${specifier}"; ${text}`);
  }
  const entries = [...entryPoints, ...modules.filter((path) => TRANSPORTS.test(path))];
  const external = [
    "node:*",
    "cloudflare:*",
    ...Object.values(NAMED_MODULES),
    ...Object.keys(PEERS),
  ];
  await succeed(await findTool("locked", "esbuild"), [
    ...entries,
    ...["--bundle", "--splitting", "--format=esm", "--platform=neutral", `--target=${TARGET}`],
    ...["--outbase=.", "--outdir=.", "--chunk-names=src/shared-[hash]", "--allow-overwrite"],
    ...["--log-level=warning", ...external.map((name) => `--external:${name}`)],
  ], { cwd: code });
  for (const path of modules) if (!entries.includes(path)) await Deno.remove(join(code, path));
}

/** Emits Deno's transport beside the others. */
async function addDenoTransport(code: string): Promise<void> {
  const path = join(code, `${DENO_TRANSPORT}.js`);
  const source = join(ROOT, `${DENO_TRANSPORT}.ts`);
  await succeed(await findTool("locked", "esbuild"), [
    source,
    ...["--format=esm", `--target=${TARGET}`, "--log-level=warning"],
    `--outfile=${path}`,
  ]);
  await mapImports(code, `${DENO_TRANSPORT}.js`);
}

/**
 * Joins declarations with rollup: its arguments are a folder, and the paths in it of the entry
 * points.
 */
const JOIN_DECLARATIONS = `
import { dts } from "rollup-plugin-dts";
import { rollup } from "rollup";
const [folder, ...paths] = process.argv.slice(2);
const bundle = await rollup({
  input: Object.fromEntries(paths.map((path) => [path, folder + "/" + path + ".d.ts"])),
  plugins: [dts()],
  external: (name) => !/^[./]/.test(name),
});
await bundle.write({
  dir: folder,
  format: "es",
  entryFileNames: "[name].d.ts",
  chunkFileNames: "src/types-[hash].d.ts",
  hashCharacters: "hex",
});
`;

/** Joins the declarations as the modules, without what no entry point exports. */
async function joinDeclarations(code: string, entryPoints: readonly string[]): Promise<void> {
  const emitted = (await filesIn(code)).filter((path) => path.endsWith(".d.ts"));
  const entries = entryPoints.map((path) => path.replace(/\.js$/, ""));
  const script = join(code, "join.mjs");
  await Deno.writeTextFile(script, JOIN_DECLARATIONS);
  await succeed("node", [script, code, ...entries]);
  await Deno.remove(script);
  for (const path of emitted) {
    if (!entries.includes(path.replace(/\.d\.ts$/, ""))) await Deno.remove(join(code, path));
  }
}

/** The path of what was emitted for a module, from the folder of the code. */
function emittedPath(source: string): string {
  return posix.normalize(source).replace(/\.ts$/, ".js");
}

/**
 * Has modules import by name what the package's `imports` lead to, and declarations name modules as
 * they are now.
 */
async function mapImports(code: string, path: string): Promise<void> {
  const text = await Deno.readTextFile(join(code, path));
  const mapped = text.replaceAll(RELATIVE_IMPORT, (_, before: string, specifier: string) => {
    const module = posix.join(posix.dirname(path), specifier);
    const name = NAMED_MODULES[module];
    if (name !== undefined && path.endsWith(".js")) return `${before}"${name}"`;
    return `${before}"${specifier.replace(/\.ts$/, ".js")}"`;
  });
  if (mapped !== text) await Deno.writeTextFile(join(code, path), mapped);
}
