/**
 * Finds the runtimes beside Deno that the library is tested on: on `PATH`, else from npm, among the
 * tools of `package/tools.ts`. Node counts from the release on that runs TypeScript as it is.
 *
 * Run as a program it prints the path of each executable.
 *
 * @module
 */

import { findTool, nodePath, run } from "./package/tools.ts";

/** A runtime that runs the library's source as it is. */
export type Runtime = "deno" | "node" | "bun";

/** The oldest release of a runtime that will do, and where to find one that does. */
const SOURCES = {
  node: { versionMin: [22, 18], fetched: () => nodePath("node22") },
  bun: { versionMin: [1, 2], fetched: () => findTool("bun", "bun") },
};

/**
 * Finds one runtime, fetching it into the project's cache when the machine has none.
 *
 * Any number of processes may call this at the same time: a download becomes visible only when it
 * is complete.
 *
 * @returns The path or name of an executable.
 * @throws {Error} If there is none and none could be fetched; the message says why.
 */
export async function findRuntime(runtime: Runtime): Promise<string> {
  if (runtime === "deno") return Deno.execPath();
  if (await runs(runtime, runtime)) return runtime;
  const { versionMin, fetched } = SOURCES[runtime];
  const path = await fetched();
  if (await runs(path, runtime)) return path;
  throw new Error(`${runtime} ${versionMin.join(".")} or newer is not on PATH, and ${path} is not`);
}

/** Whether `path` is a runtime that is new enough. */
async function runs(path: string, runtime: "node" | "bun"): Promise<boolean> {
  const { success, output } = await run(path, ["--version"])
    .catch(() => ({ success: false, output: "" }));
  const [major = 0, minor = 0] = output.replace(/^v/, "").split(".").map(Number);
  const [majorMin = 0, minorMin = 0] = SOURCES[runtime].versionMin;
  return success && (major > majorMin || major === majorMin && minor >= minorMin);
}

if (import.meta.main) {
  for (const runtime of ["deno", "node", "bun"] as const) console.log(await findRuntime(runtime));
}
