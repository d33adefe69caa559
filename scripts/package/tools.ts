/**
 * The tools and runtimes that the npm package is built and checked with: pinned, fetched from npm
 * on first use into the project's ignored folder `.cache/npm-tools`, one folder a set.
 *
 * @module
 */

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The project's folder. */
export const ROOT: string = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

/** The project's ignored folder for downloads and work in progress. */
export const CACHE: string = join(ROOT, ".cache");

/**
 * Makes a folder in {@linkcode CACHE} for work in progress; if this run is killed, a later one
 * removes it.
 */
export async function makeWorkFolder(prefix: string): Promise<string> {
  await Deno.mkdir(CACHE, { recursive: true });
  return await Deno.makeTempDir({ dir: CACHE, prefix });
}

/** Every file below a folder, as sorted paths from there. */
export async function filesIn(folder: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (!isDirectory) found.push(name);
    else for (const path of await filesIn(join(folder, name))) found.push(`${name}/${path}`);
  }
  return found.sort();
}

/** Where the sets are. */
export const TOOLS_FOLDER: string = join(CACHE, "npm-tools");

/** How long one set may take to install, in milliseconds. */
const INSTALL_WITHIN_MS = 180_000;

/**
 * How long a program may run, in milliseconds. It ends only what hangs: beside other work, `tsc`
 * may need minutes.
 */
const RUN_WITHIN_MS = 600_000;

/**
 * What the package is made with, and what it has in it, down to the last dependency: `package.json`
 * and a lockfile. None of their install scripts is run.
 */
const LOCKED_FOLDER = join(ROOT, "scripts", "package", "tools");
const LOCK_FILES = ["package.json", "package-lock.json"];

/** What is installed together, each at an exact version; `locked` by its lockfile. */
const SETS = {
  locked: [Deno.readTextFileSync(join(LOCKED_FOLDER, "package-lock.json"))],
  check: [
    "publint@0.3.25",
    "@arethetypeswrong/cli@0.18.5",
    "typescript_first@npm:typescript@5.0.4",
    "typescript_oldest@npm:typescript@5.4.5",
    "typescript_newest@npm:typescript@7.0.2",
    "@types/node@20.19.43",
  ],
  peers: ["redlock@5.0.0-beta.2", "ioredis@5.11.1"],
  edge: ["@edge-runtime/vm@5.0.0"],
  next: ["next@16.4.6", "react@19.3.1", "react-dom@19.3.1"],
  workerd: ["miniflare@4.20260730.0"],
  node20: ["node@20.20.2"],
  node22: ["node@22.23.3"],
  node24: ["node@24.21.0"],
  node26: ["node@26.10.0"],
  bun: ["bun@1.4.5"],
  deno25: ["deno@2.5.0"],
  tsx: ["tsx@4.23.15"],
  bullmq: ["bullmq@6.7.0", "ioredis@5.11.1"],
  vitest: ["vitest@5.1.1"],
  jest: ["jest@30.5.2"],
  tsJest: [
    "jest@30.5.2",
    "ts-jest@29.4.15",
    "typescript@5.9.3",
    "@types/jest@30.0.0",
    "@types/node@20.19.43",
  ],
  sinon: ["sinon@22.1.0"],
  site: [
    "vitepress@1.6.4",
    "typedoc@0.28.20",
    "typedoc-plugin-markdown@4.14.1",
    "typescript@5.9.3",
  ],
} as const;

/** The name of a set. */
export type ToolSet = keyof typeof SETS;

/**
 * What the packages of Node bring that nothing here uses: the headers are a third of their size.
 */
const UNUSED = ["include", "share"];

/** Whether there is a set of that name. */
export function isToolSet(name: string): name is ToolSet {
  return Object.hasOwn(SETS, name);
}

/** Written last into a set's folder: what is in it. */
const STAMP = "installed.json";

/**
 * Installs a set, if it is not there yet. Any number of processes may call this at the same time: a
 * folder becomes visible only when it is complete.
 *
 * @param set Which one.
 * @returns The absolute path of its `node_modules`.
 * @throws {Error} If npm could not install it; the message says why.
 */
export async function findTools(set: ToolSet): Promise<string> {
  const folder = join(TOOLS_FOLDER, set);
  if (await isComplete(folder, set)) return join(folder, "node_modules");
  await Deno.mkdir(TOOLS_FOLDER, { recursive: true });
  const work = await Deno.makeTempDir({ dir: TOOLS_FOLDER, prefix: `${set}-` });
  try {
    await install(work, set);
    await moveIntoPlace(work, folder, () => isComplete(folder, set));
  } finally {
    await Deno.remove(work, { recursive: true }).catch(() => {});
  }
  return join(folder, "node_modules");
}

/** The path of an executable of a set. */
export async function findTool(set: ToolSet, name: string): Promise<string> {
  return join(await findTools(set), ".bin", name);
}

async function isComplete(folder: string, set: ToolSet): Promise<boolean> {
  const installed = await Deno.readTextFile(join(folder, STAMP)).catch(() => "");
  return installed === JSON.stringify(SETS[set]);
}

async function install(folder: string, set: ToolSet): Promise<void> {
  const locked = set === "locked";
  if (locked) {
    for (const name of LOCK_FILES) {
      await Deno.copyFile(join(LOCKED_FOLDER, name), join(folder, name));
    }
  } else await Deno.writeTextFile(join(folder, "package.json"), '{"private":true}');
  await succeed("npm", [
    ...(locked ? ["ci", "--ignore-scripts"] : ["install", "--save-exact", ...SETS[set]]),
    ...["--loglevel=error", "--no-audit", "--no-fund", "--fetch-retries=1"],
  ], { cwd: folder, withinMs: INSTALL_WITHIN_MS });
  await removeUnused(folder);
  await Deno.writeTextFile(join(folder, STAMP), JSON.stringify(SETS[set]));
}

/**
 * Removes what Node's executable does without, from the package of the platform that npm nests
 * below `node`.
 */
async function removeUnused(folder: string): Promise<void> {
  const nested = join(folder, "node_modules", "node", "node_modules");
  const packages = await Array.fromAsync(Deno.readDir(nested)).catch(() => []);
  const unused = packages.flatMap(({ name }) => UNUSED.map((part) => join(nested, name, part)));
  for (const path of unused) await Deno.remove(path, { recursive: true }).catch(() => {});
}

/**
 * Moves `work` to `folder`, where another process may have put the same in the meantime, which
 * `isThere` finds out.
 */
export async function moveIntoPlace(
  work: string,
  folder: string,
  isThere: () => Promise<boolean>,
): Promise<void> {
  try {
    await Deno.rename(work, folder);
  } catch {
    if (await isThere()) return;
    await Deno.remove(folder, { recursive: true }).catch(() => {});
    await Deno.rename(work, folder);
  }
}

/**
 * The Node on `PATH` where it is of that release, else one from npm.
 *
 * @param set `node20` and its like.
 */
export async function nodePath(set: ToolSet): Promise<string> {
  const { output } = await run("node", ["--version"]).catch(() => ({ output: "" }));
  if (output.startsWith(`v${set.replace("node", "")}.`)) return "node";
  return join(await findTools(set), "node", "bin", "node");
}

/** The Deno of a set, whose package puts it in its place when it is first run. */
export async function denoPath(set: "deno25"): Promise<string> {
  await succeed(await findTool(set, "deno"), ["--version"]);
  return join(await findTools(set), "deno", Deno.build.os === "windows" ? "deno.exe" : "deno");
}

/** What a program printed, and whether it ended well. */
export interface Ran {
  readonly success: boolean;
  /** Standard output, then standard error. */
  readonly output: string;
}

/** Runs a program to its end. */
export async function run(
  command: string,
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string>; withinMs?: number } = {},
): Promise<Ran> {
  const { withinMs = RUN_WITHIN_MS, ...rest } = options;
  const { success, stdout, stderr } = await new Deno.Command(command, {
    args: [...args],
    ...rest,
    stdin: "null",
    signal: AbortSignal.timeout(withinMs),
  }).output();
  const decoder = new TextDecoder();
  return { success, output: decoder.decode(stdout) + decoder.decode(stderr) };
}

/**
 * Runs a program that must end well.
 *
 * @returns What it printed.
 * @throws {Error} If it does not.
 */
export async function succeed(
  command: string,
  args: readonly string[],
  options?: { cwd?: string; env?: Record<string, string>; withinMs?: number },
): Promise<string> {
  const { success, output } = await run(command, args, options);
  if (!success) throw new Error(`${command} ${args.join(" ")} failed:\n${output.trim()}`);
  return output;
}
