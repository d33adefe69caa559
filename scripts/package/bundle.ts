/**
 * Bundles by esbuild, as users of the npm package would make them.
 *
 * @module
 */

import { findTool, succeed } from "./tools.ts";

/** What a bundle is for. */
export type Platform = "node" | "workers" | "edge" | "browser";

/** How to bundle for a platform: what its own tools pass to esbuild. */
const FLAGS: Record<Platform, readonly string[]> = {
  node: ["--platform=node", "--target=node20"],
  workers: [
    ...["--platform=browser", "--conditions=workerd,worker,browser", "--target=es2022"],
    ...["--external:cloudflare:*", "--external:node:*"],
  ],
  edge: ["--platform=neutral", "--conditions=edge-light,import", "--target=es2022"],
  browser: ["--platform=browser", "--target=es2022"],
};

/** Options of {@linkcode bundle}. */
export interface BundleOptions {
  readonly platform: Platform;
  /** The `node_modules` with the npm package; without it the bundle imports the package by name. */
  readonly packages?: string;
  readonly minify?: boolean;
  /** Whether to return a table of the modules by their weight. */
  readonly analyze?: boolean;
}

/**
 * Bundles `entry` into `outfile`; fails on a warning too. Returns a table if that is an option,
 * else nothing.
 */
export async function bundle(
  entry: string,
  outfile: string,
  options: BundleOptions,
): Promise<string> {
  const said = await succeed(await findTool("locked", "esbuild"), [
    entry,
    ...["--bundle", "--format=esm", "--log-level=warning", `--outfile=${outfile}`],
    ...FLAGS[options.platform],
    ...(options.packages === undefined ? ["--packages=external"] : []),
    ...(options.minify ? ["--minify"] : []),
    ...(options.analyze ? ["--analyze"] : []),
  ], { env: { NODE_PATH: options.packages ?? "" } });
  if (said.trim() !== "" && !options.analyze) throw new Error(`esbuild warns:\n${said}`);
  return said.trim();
}
