/**
 * Looks after the project's ignored folder for downloads.
 *
 * @module
 */

import { join } from "node:path";
import { CACHE, isToolSet, TOOLS_FOLDER } from "../package/tools.ts";

/** What stays in the folder, beside the tools. */
const KEPT = ["redis", "bench", "site"];

/**
 * Folders of work in progress are younger than that, in milliseconds; older ones were left by runs
 * that were killed.
 */
const LEFT_BEHIND_MS = 3_600_000;

/**
 * Removes what no run uses any more: tools that were replaced, and folders that killed runs left
 * behind.
 *
 * @returns The bytes that what is left takes.
 */
export async function tidyCache(): Promise<number> {
  await removeUnless(CACHE, (name) => KEPT.includes(name) || join(CACHE, name) === TOOLS_FOLDER);
  await removeUnless(TOOLS_FOLDER, isToolSet);
  return await bytesBelow(CACHE, new Set());
}

async function removeUnless(folder: string, isKept: (name: string) => boolean): Promise<void> {
  for (const { name } of await entriesOf(folder)) {
    if (isKept(name)) continue;
    const path = join(folder, name);
    const { mtime } = await Deno.lstat(path);
    if (Date.now() - (mtime?.getTime() ?? 0) < LEFT_BEHIND_MS) continue;
    await Deno.remove(path, { recursive: true });
  }
}

/** A file with several names counts once. */
async function bytesBelow(folder: string, seen: Set<number>): Promise<number> {
  let bytes = 0;
  for (const { name, isDirectory, isFile } of await entriesOf(folder)) {
    const path = join(folder, name);
    if (isDirectory) bytes += await bytesBelow(path, seen);
    if (!isFile) continue;
    const { size, ino } = await Deno.lstat(path);
    if (ino !== null && seen.has(ino)) continue;
    if (ino !== null) seen.add(ino);
    bytes += size;
  }
  return bytes;
}

async function entriesOf(folder: string): Promise<Deno.DirEntry[]> {
  try {
    return await Array.fromAsync(Deno.readDir(folder));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}
