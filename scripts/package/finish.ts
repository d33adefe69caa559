/**
 * What is done to the emitted code whichever way it was emitted: after this both ways have written the same files.
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

/** What dnt leaves. A package.json beside the code would hide `sideEffects` and `imports` of the real one. */
const LEFTOVERS = [
  `${CODE_FOLDER}/package.json`,
  ".npmignore",
  "node_modules",
  "package-lock.json",
];

/** For people; copied as they are. */
const PAPERS = ["README.md", "LICENSE"];

/** An import or export of a file beside this one, or the type of one. */
const RELATIVE_IMPORT = /\b(from |import |import\()"(\.[^"]+)"/g;

/** Modules that stay files of their own, as the package's `imports` choose between them. */
const TRANSPORTS = /^src\/transport\/(default_npm|node|node_listener|none|workers)\.js$/;

/** Finishes the package in `folder`. */
export async function finish(config: Config, folder: string): Promise<void> {
  for (const left of LEFTOVERS) {
    await Deno.remove(join(folder, left), { recursive: true }).catch(() => {});
  }
  const code = join(folder, CODE_FOLDER);
  await pruneDeclarations(code, Object.values(config.exports));
  for (const path of await filesIn(code)) await mapImports(code, path);
  await joinModules(code, Object.values(config.exports).map(emittedPath));
  await addDenoTransport(code);
  await addCommonJs(config, folder);
  await bundleCli(folder);
  const manifest = JSON.stringify(packageJson(config), undefined, 2) + "\n";
  await Deno.writeTextFile(join(folder, "package.json"), manifest);
  for (const name of PAPERS) {
    await Deno.copyFile(join(ROOT, name), join(folder, name)).catch((error) => {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
      console.log(`There is no ${name}: the package goes without`);
    });
  }
}

/**
 * Joins the modules into few files, because Node starts in less time with few files than with many: one for each entry
 * point and transport, and one for each piece that several of these share. No module is in two files, so every class
 * exists once. Every entry point leads to the main one, so that all of that is one piece.
 */
async function joinModules(code: string, entryPoints: readonly string[]): Promise<void> {
  const modules = (await filesIn(code)).filter((path) => path.endsWith(".js"));
  const [main, ...others] = entryPoints;
  for (const path of others) {
    const specifier = posix.relative(posix.dirname(path), main!);
    const text = await Deno.readTextFile(join(code, path));
    await Deno.writeTextFile(join(code, path), `import "${specifier}";\n${text}`);
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
    ...["--format=esm", `--target=${TARGET}`, "--log-level=warning", `--outfile=${path}`],
  ]);
  await mapImports(code, `${DENO_TRANSPORT}.js`);
}

/** Removes the declarations that no entry point leads to. */
async function pruneDeclarations(code: string, entryPoints: readonly string[]): Promise<void> {
  const reached = new Set<string>();
  const pending = entryPoints.map((path) => declarationOf(posix.normalize(path)));
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    if (reached.has(path)) continue;
    reached.add(path);
    const text = await Deno.readTextFile(join(code, path));
    for (const [, , specifier = ""] of text.matchAll(RELATIVE_IMPORT)) {
      pending.push(declarationOf(posix.join(posix.dirname(path), specifier)));
    }
  }
  for (const path of await filesIn(code)) {
    if (path.endsWith(".d.ts") && !reached.has(path)) await Deno.remove(join(code, path));
  }
}

/** The path of what was emitted for a module, from the folder of the code. */
function emittedPath(source: string): string {
  return posix.normalize(source).replace(/\.ts$/, ".js");
}

function declarationOf(path: string): string {
  return path.replace(/\.[jt]s$/, ".d.ts");
}

/** Has modules import by name what the package's `imports` lead to, and declarations name modules as they are now. */
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
