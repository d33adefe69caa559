/**
 * Bundles by esbuild, as users of the npm package would make them.
 *
 * @module
 */

import { basename, join } from "node:path";
import { findTool, succeed } from "./tools.ts";

/** What a bundle is for. */
export type Platform = "node" | "workers";

/** How to bundle for a platform: what its own tools pass to esbuild. */
const FLAGS: Record<Platform, readonly string[]> = {
  node: ["--platform=node", "--target=node20"],
  workers: [
    ...["--platform=browser", "--conditions=workerd,worker,browser", "--target=es2022"],
    ...["--external:cloudflare:*", "--external:node:*"],
  ],
};

/** A bundle in pieces, as bundlers make it that split. */
export interface SplitBundle {
  /** What is loaded at the start. */
  readonly first: string;
  /** What is loaded when it is asked for. */
  readonly later: string;
}

/** Where the pieces go, below the folder that they are made in. */
const OUT = "out";

interface Output {
  readonly entryPoint?: string;
  readonly imports: readonly { readonly path: string; readonly kind: string }[];
}

/** Bundles `entry` for a platform into `folder`, minified; what is imported dynamically goes into files of its own. */
export async function bundleSplit(
  entry: string,
  folder: string,
  { platform, packages }: Pick<BundleOptions, "platform" | "packages">,
): Promise<SplitBundle> {
  const metafile = join(folder, "meta.json");
  await succeed(await findTool("build", "esbuild"), [
    entry,
    ...["--bundle", "--splitting", "--format=esm", "--log-level=warning", "--minify"],
    ...[`--outdir=${OUT}`, `--metafile=${metafile}`],
    ...FLAGS[platform],
  ], { cwd: folder, env: { NODE_PATH: packages ?? "" } });
  const { outputs } = JSON.parse(await Deno.readTextFile(metafile));
  const files = new Map(Object.entries(outputs as Record<string, Output>));
  const first = new Set<string>();
  const visit = (path: string) => {
    const file = files.get(path);
    if (!file || first.has(path)) return;
    first.add(path);
    for (const { path, kind } of file.imports) if (kind === "import-statement") visit(path);
  };
  visit(`${OUT}/${basename(entry)}`);
  const joined = async (paths: string[]) =>
    (await Promise.all(paths.map((path) => Deno.readTextFile(join(folder, path))))).join("");
  return {
    first: await joined([...first]),
    later: await joined([...files.keys()].filter((path) => !first.has(path))),
  };
}

/** Options of {@linkcode bundle}. */
export interface BundleOptions {
  readonly platform: Platform;
  /** The `node_modules` with the npm package; without it the bundle imports the package by name. */
  readonly packages?: string;
  readonly minify?: boolean;
  /** Where to write which module weighs how much. */
  readonly metafile?: string;
}

/** Bundles `entry` into `outfile`; fails on a warning too. */
export async function bundle(
  entry: string,
  outfile: string,
  options: BundleOptions,
): Promise<void> {
  const said = await succeed(await findTool("build", "esbuild"), [
    entry,
    ...["--bundle", "--format=esm", "--log-level=warning", `--outfile=${outfile}`],
    ...FLAGS[options.platform],
    ...(options.packages === undefined ? ["--packages=external"] : []),
    ...(options.minify ? ["--minify"] : []),
    ...(options.metafile === undefined ? [] : [`--metafile=${options.metafile}`]),
  ], { env: { NODE_PATH: options.packages ?? "" } });
  if (said.trim() !== "") throw new Error(`esbuild warns:\n${said}`);
}
