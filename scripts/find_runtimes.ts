/**
 * Finds the runtimes beside Deno that the library is tested on, and fetches them from npm into the project
 * when the machine has none.
 *
 * Looked at in this order: `PATH`; an earlier download in `.cache/runtimes`; npm. Node counts from the release
 * on that runs TypeScript as it is.
 *
 * Run as a program it prints the path of each executable.
 *
 * @module
 */

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** A runtime that runs the library's source as it is. */
export type Runtime = "deno" | "node" | "bun";

/** How long a download may take, in milliseconds. */
const INSTALL_WITHIN_MS = 120_000;

/** How a runtime that is not Deno is told from an old one, and where npm has it. */
const SOURCES = {
  node: { versionMin: [22, 18], npmPackage: "node@24" },
  bun: { versionMin: [1, 2], npmPackage: "bun@1" },
};

/** The project's ignored folder for downloads. */
const CACHE = join(dirname(fileURLToPath(import.meta.url)), "..", ".cache", "runtimes");

/**
 * Finds one runtime, fetching it into the project's cache when the machine has none.
 *
 * Any number of processes may call this at the same time: a download becomes visible only when it is
 * complete and was seen to run.
 *
 * @returns The path or name of an executable.
 * @throws {Error} If there is none and none could be fetched; the message says why.
 */
export async function findRuntime(runtime: Runtime): Promise<string> {
  if (runtime === "deno") return Deno.execPath();
  if (await runs(runtime, runtime)) return runtime;
  const cached = executableIn(join(CACHE, runtime), runtime);
  if (await runs(cached, runtime)) return cached;
  try {
    await install(runtime);
  } catch (error) {
    const { versionMin, npmPackage } = SOURCES[runtime];
    throw new Error(
      `${runtime} ${versionMin.join(".")} or newer is not on PATH, and npm could not install ` +
        `${npmPackage}: ${error instanceof Error ? error.message : error}`,
    );
  }
  return cached;
}

function executableIn(folder: string, runtime: Runtime): string {
  return join(folder, "node_modules", ".bin", runtime);
}

/** Whether `path` is a runtime that is new enough. */
async function runs(path: string, runtime: "node" | "bun"): Promise<boolean> {
  try {
    const { success, stdout } = await new Deno.Command(path, { args: ["--version"] }).output();
    const [major = 0, minor = 0] = new TextDecoder().decode(stdout).replace(/^v/, "").split(".")
      .map(Number);
    const [majorMin = 0, minorMin = 0] = SOURCES[runtime].versionMin;
    return success && (major > majorMin || major === majorMin && minor >= minorMin);
  } catch {
    return false;
  }
}

/** Installs beside the final place and moves the folder there in one step. */
async function install(runtime: "node" | "bun"): Promise<void> {
  await Deno.mkdir(CACHE, { recursive: true });
  const work = await Deno.makeTempDir({ dir: CACHE, prefix: `${runtime}-` });
  try {
    const { success, stderr } = await new Deno.Command("npm", {
      args: [
        ...["install", "--prefix", work, "--silent", "--no-audit", "--no-fund"],
        ...["--fetch-retries=1", SOURCES[runtime].npmPackage],
      ],
      cwd: work,
      stdin: "null",
      signal: AbortSignal.timeout(INSTALL_WITHIN_MS),
    }).output();
    if (!success) throw new Error(`npm failed: ${new TextDecoder().decode(stderr).trim()}`);
    if (!await runs(executableIn(work, runtime), runtime)) {
      throw new Error("what it installed does not run");
    }
    await moveIntoPlace(work, runtime);
  } finally {
    await Deno.remove(work, { recursive: true }).catch(() => {});
  }
}

/** Moves `work` to its final place, where another process may have put a working runtime in the meantime. */
async function moveIntoPlace(work: string, runtime: "node" | "bun"): Promise<void> {
  const place = join(CACHE, runtime);
  try {
    await Deno.rename(work, place);
  } catch {
    if (await runs(executableIn(place, runtime), runtime)) return;
    await Deno.remove(place, { recursive: true }).catch(() => {});
    await Deno.rename(work, place);
  }
}

if (import.meta.main) {
  for (const runtime of ["deno", "node", "bun"] as const) console.log(await findRuntime(runtime));
}
