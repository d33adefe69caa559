/**
 * Joins the emitted modules into few files, because Node starts in less time with few files than with many: one with
 * what the first lock needs, one for each entry point, transport and part that is loaded later, and one for each piece
 * that several of these share. No module is in two files, so every class exists once.
 *
 * @module
 */

import { join, posix } from "node:path";
import { NAMED_MODULES, PEERS, TARGET } from "./manifest.ts";
import { findTool, succeed } from "./tools.ts";

/** The file with what the first lock needs: whatever the main entry point leads to without `import()`. */
export const CORE = "src/core.js";

/** How modules name that file until it is known where they will be. */
const CORE_NAME = "joined:core";

/** Modules that stay files of their own, as the package's `imports` choose between them. */
const TRANSPORTS = /^src\/transport\/(?!transport\.js)/;

/** An import of names from a file beside this one, or their export, as esbuild writes it. */
const NAMES_FROM = /^((?:import|export) \{([^}]*)\} from )"(\.[^"]+)";/gm;
/** The same without names: of all that a module exports, or of nothing but its effects. */
const NAMELESS_FROM =
  /^(?:import|import (?:\* as )?\w+ from|export \*(?: as \w+)? from) "(\.[^"]+)";/gm;
/** An import that happens when it is called. */
const LATER = /\bimport\("(\.[^"]+)"\)/g;

/** Options of every run of esbuild. */
const FLAGS = [
  ...["--format=esm", "--platform=neutral", `--target=${TARGET}`],
  ...["--log-level=warning", "--allow-overwrite", "--outbase=."],
];

/** Options of those that join. */
const BUNDLE = [
  ...["--bundle", "--external:node:*", "--external:cloudflare:*", `--external:${CORE_NAME}`],
  ...[...Object.values(NAMED_MODULES), ...Object.keys(PEERS)].map((name) => `--external:${name}`),
];

/**
 * Joins modules in place.
 *
 * @param code The folder with the modules.
 * @param main The main entry point, as a path from there.
 * @param entryPoints All entry points.
 * @throws {Error} If two modules of the core export the same name to others.
 */
export async function joinModules(
  code: string,
  main: string,
  entryPoints: readonly string[],
): Promise<void> {
  const esbuild = await findTool("build", "esbuild");
  const build = (...args: string[]) => succeed(esbuild, [...FLAGS, ...args], { cwd: code });
  await build(...(await readModules(code)).keys(), "--outdir=."); // in one form of imports
  const modules = await readModules(code);
  const core = reachedFrom(main, modules);
  core.delete(main);
  const parts = [...core].flatMap((path) => importsOf(path, modules.get(path)!, LATER, 1));
  const others = [...modules.keys()].filter((path) => !core.has(path));
  await writeCore(code, modules, core, others);
  await build(CORE, `--outfile=${CORE}`, ...BUNDLE, ...parts.map((path) => `--external:./${path}`));
  for (const path of core) await Deno.remove(join(code, path));
  const entries = new Set([
    ...entryPoints,
    ...parts,
    ...others.filter((path) => TRANSPORTS.test(path)),
  ]);
  const chunks = ["--splitting", "--outdir=.", "--chunk-names=src/shared-[hash]"];
  await build(...entries, ...BUNDLE, ...chunks);
  for (const path of others) if (!entries.has(path)) await Deno.remove(join(code, path));
  for (const [path, text] of await readModules(code)) {
    const to = posix.relative(posix.dirname(path), CORE);
    const specifier = to.startsWith(".") ? to : `./${to}`;
    await Deno.writeTextFile(join(code, path), text.replaceAll(CORE_NAME, specifier));
  }
}

/** The text of every module in a folder, by its path from there. */
async function readModules(code: string, below = ""): Promise<Map<string, string>> {
  const modules = new Map<string, string>();
  for await (const { name, isDirectory } of Deno.readDir(join(code, below))) {
    const path = posix.join(below, name);
    if (isDirectory) { for (const each of await readModules(code, path)) modules.set(...each); }
    else if (name.endsWith(".js")) modules.set(path, await Deno.readTextFile(join(code, path)));
  }
  return modules;
}

/** A module and all that it leads to without `import()`. */
function reachedFrom(path: string, modules: Map<string, string>, reached = new Set<string>()) {
  if (reached.has(path)) return reached;
  reached.add(path);
  const text = modules.get(path)!;
  const imported = [
    ...importsOf(path, text, NAMES_FROM, 3),
    ...importsOf(path, text, NAMELESS_FROM, 1),
  ];
  for (const each of imported) reachedFrom(each, modules, reached);
  return reached;
}

/** The modules that one imports in a form, of which a group of the pattern is the specifier. */
function importsOf(path: string, text: string, form: RegExp, group: number): string[] {
  return [...text.matchAll(form)].map((match) => posix.join(posix.dirname(path), match[group]!));
}

/** Writes the module that exports what other modules import from the core, and has them import it from there. */
async function writeCore(
  code: string,
  modules: Map<string, string>,
  core: ReadonlySet<string>,
  others: readonly string[],
): Promise<void> {
  const exported = new Map<string, string>();
  for (const path of others) {
    const text = modules.get(path)!;
    const nameless = importsOf(path, text, NAMELESS_FROM, 1).find((each) => core.has(each));
    if (nameless) throw new Error(`${path} imports no names from ${nameless}, which is joined`);
    const mapped = text.replaceAll(NAMES_FROM, (whole, before, names: string, specifier) => {
      const from = posix.join(posix.dirname(path), specifier);
      if (!core.has(from)) return whole;
      for (const [name] of names.matchAll(/\w+(?: as \w+)?/g)) {
        exportOnce(exported, name.split(" as ")[0]!, from);
      }
      return `${before}"${CORE_NAME}";`;
    });
    if (mapped !== text) await Deno.writeTextFile(join(code, path), mapped);
  }
  const lines = [...exported].sort().map(([name, from]) =>
    `export { ${name} } from "./${posix.relative(posix.dirname(CORE), from)}";\n`
  );
  await Deno.writeTextFile(join(code, CORE), lines.join(""));
}

function exportOnce(exported: Map<string, string>, name: string, from: string): void {
  const other = exported.get(name) ?? from;
  if (other !== from) throw new Error(`${other} and ${from} both export ${name}: rename one`);
  exported.set(name, from);
}
