/**
 * Finds a `redis-server` to run the tests against, and fetches one into the project when the
 * machine has none.
 *
 * Looked at in this order: the `REDIS_SERVER` variable; `redis-server` or `valkey-server` on `PATH`
 * and in the usual folders; an earlier download in `.cache/redis`; Debian's packages, which are
 * downloaded and unpacked there by `apt-get` and `dpkg-deb` without root and without touching the
 * system.
 *
 * Run as a program it prints the path of the executable.
 *
 * @module
 */

import { delimiter, join, relative, resolve } from "node:path";
import { CACHE, makeWorkFolder, moveIntoPlace, run, succeed } from "./package/tools.ts";

const EXECUTABLES = ["redis-server", "valkey-server"];
const USUAL_FOLDERS = ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"];
const DEBIAN_PACKAGE = "redis-server";

const REDIS = join(CACHE, "redis");
const WRAPPER = "run-redis-server";

const HOW_TO_INSTALL =
  "No redis-server was found: install Redis (for example with 'apt install redis-server' " +
  "or 'brew install redis'), or set REDIS_SERVER to the path of one";

/** How long an executable may take to state its version, in milliseconds. */
const VERSION_WITHIN_MS = 10_000;

/**
 * Finds a Redis server, fetching one into the project's cache when the machine has none.
 *
 * Any number of processes may call this at the same time: a download becomes visible only when it
 * is complete and was seen to run.
 *
 * @returns The absolute path of an executable that takes the arguments of `redis-server`. A signal
 * sent to its process reaches the server itself.
 * @throws {Error} If there is no server and none could be fetched; the message says how to install
 * one.
 */
export async function findRedisServer(): Promise<string> {
  const named = Deno.env.get("REDIS_SERVER");
  if (named) {
    if (await runs(resolve(named))) return resolve(named);
    throw new Error(`REDIS_SERVER names "${named}", which does not run as a Redis server`);
  }
  const installed = await findInstalled();
  if (installed !== undefined) return installed;

  const cached = join(REDIS, WRAPPER);
  if (await runs(cached)) return cached;
  try {
    await fetchServer();
  } catch (cause) {
    throw new Error(HOW_TO_INSTALL, { cause });
  }
  return cached;
}

async function findInstalled(): Promise<string | undefined> {
  const folders = (Deno.env.get("PATH") ?? "").split(delimiter).filter(Boolean);
  for (const name of EXECUTABLES) {
    for (const folder of [...folders, ...USUAL_FOLDERS]) {
      const path = join(folder, name);
      if (await runs(path)) return path;
    }
  }
  return undefined;
}

/** Whether `path` is an executable that can state its version, which needs all of its libraries. */
async function runs(path: string): Promise<boolean> {
  try {
    return (await run(path, ["--version"], { withinMs: VERSION_WITHIN_MS })).success;
  } catch {
    return false;
  }
}

/** Builds the server's folder next to its final place, then moves it there in one step. */
async function fetchServer(): Promise<void> {
  const work = await makeWorkFolder("redis-");
  try {
    const root = join(work, "root");
    await downloadPackages(work);
    await unpackPackages(join(work, "cache", "archives"), root);
    await writeWrapper(root);
    await succeed(join(root, WRAPPER), ["--version"]);
    await moveIntoPlace(root, REDIS, () => runs(join(REDIS, WRAPPER)));
  } finally {
    await Deno.remove(work, { recursive: true });
  }
}

/**
 * Downloads the server and every package it needs that the machine lacks. apt itself works out
 * which; it reads the system's package lists, or lists of our own where those are missing or out of
 * date.
 */
async function downloadPackages(work: string): Promise<void> {
  await Deno.mkdir(join(work, "cache", "archives", "partial"), { recursive: true });
  await Deno.mkdir(join(work, "lists", "partial"), { recursive: true });
  const config = join(work, "apt.conf");
  const apt = (...args: string[]) => succeed("apt-get", ["--config-file", config, "-qq", ...args]);
  const download = () =>
    apt("install", "--yes", "--download-only", "--no-install-recommends", DEBIAN_PACKAGE);

  await Deno.writeTextFile(config, aptConfig(work));
  try {
    await download();
  } catch {
    const ownLists = `Dir::State::lists "${join(work, "lists")}";\n`;
    await Deno.writeTextFile(config, aptConfig(work) + ownLists);
    await apt("update");
    await download();
  }
}

/**
 * Settings by which apt needs no root and writes to `work` only; hooks of the system are left out.
 */
function aptConfig(work: string): string {
  return `Dir::Cache "${join(work, "cache")}";
Dir::Cache::archives "archives/";
Dir::Log "${work}";
Debug::NoLocking "true";
APT::Sandbox::User "root";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
`;
}

async function unpackPackages(archives: string, root: string): Promise<void> {
  for await (const entry of Deno.readDir(archives)) {
    if (entry.name.endsWith(".deb")) {
      await succeed("dpkg-deb", ["--extract", join(archives, entry.name), root]);
    }
  }
}

/**
 * Writes a script that runs the unpacked server with the unpacked libraries, wherever `root` is.
 */
async function writeWrapper(root: string): Promise<void> {
  const folders = await foldersOfLibraries(root);
  const libraries = folders.map((folder) => `$root/${relative(root, folder)}`).join(":");
  const script = `#!/bin/sh
root=\${0%/*}
LD_LIBRARY_PATH="${libraries}\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export LD_LIBRARY_PATH
exec "$root/usr/bin/redis-server" "$@"
`;
  await Deno.writeTextFile(join(root, WRAPPER), script, { mode: 0o755 });
}

async function foldersOfLibraries(folder: string): Promise<string[]> {
  const entries = await Array.fromAsync(Deno.readDir(folder));
  const below = entries.filter((entry) => entry.isDirectory)
    .map((entry) => foldersOfLibraries(join(folder, entry.name)));
  const own = entries.some((entry) => /\.so(\.|$)/.test(entry.name)) ? [folder] : [];
  return [...own, ...(await Promise.all(below)).flat()];
}

if (import.meta.main) {
  console.log(await findRedisServer());
}
