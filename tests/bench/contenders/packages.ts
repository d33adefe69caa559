/** Loads the peers' packages in each runtime. */

/**
 * Packages that the bench alone needs; those that tests need too have their names and versions in
 * `deno.json`.
 */
export const BENCH_PACKAGES: Record<string, string> = {
  "redlock-universal": "npm:redlock-universal@0.8.5",
  sesamecare: "npm:@sesamecare-oss/redlock@1.4.0",
};

/**
 * Loads a peer's package by its name here or in `deno.json`: Deno resolves it itself; for the other
 * runtimes the variable BENCH_PACKAGES names a folder with the packages.
 */
export async function load(name: string): Promise<unknown> {
  if ("Deno" in globalThis) return await import(BENCH_PACKAGES[name] ?? name);
  const { createRequire } = await import("node:module");
  const { env } = await import("node:process");
  const loaded = createRequire(`${env.BENCH_PACKAGES}/package.json`)(name);
  return { ...loaded, default: loaded.default ?? loaded };
}
