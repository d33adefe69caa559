/**
 * What a contender adds to a bundle: its entry point with all it imports, minified, then
 * compressed.
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { printTable } from "../table.ts";
import type { Bench } from "./scenario.ts";

/** What is bundled: ours as it is published, a peer with the client it needs. */
const ENTRIES: Record<string, string> = {
  ours: 'export * from "../../mod.ts";',
  redlock5: 'export { default } from "redlock5"; export { Redis } from "ioredis";',
};

/** What a runtime brings along is no part of the bundle. */
const FLAGS = ["--minify", "--platform", "deno", "--external", "cloudflare:sockets"];

/** Prints bundle sizes of ours and the measured peers that have an entry. */
export async function size(bench: Bench): Promise<void> {
  const rows: string[][] = [];
  for (const { name } of bench.workers) {
    const entry = ENTRIES[name];
    if (entry !== undefined) rows.push([name, ...await sizes(entry)]);
  }
  printTable("Size of the bundle: everything in one piece", [
    ["", "minified kB", "gzip kB"],
    ...rows,
    ["goal of ours", "", "≤ 38"],
  ]);
}

/** Bundles into one file and weighs it. */
async function sizes(source: string): Promise<string[]> {
  const here = fileURLToPath(new URL("..", import.meta.url));
  const entry = await Deno.makeTempFile({ dir: here, prefix: "bundle-", suffix: ".ts" });
  const output = await Deno.makeTempFile({ suffix: ".js" });
  try {
    await Deno.writeTextFile(entry, source);
    await deno(["bundle", ...FLAGS, "--output", output, entry]);
    const bytes = await Deno.readFile(output);
    return [kilobytes(bytes.length), kilobytes(gzipSync(bytes, { level: 9 }).length)];
  } finally {
    await Deno.remove(entry);
    await Deno.remove(output);
  }
}

function kilobytes(bytes: number): string {
  return (bytes / 1_000).toFixed(1);
}

/** Runs Deno and resolves to what it prints. @throws {Error} If it fails, with its own words. */
async function deno(args: readonly string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args: [...args] })
    .output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}
