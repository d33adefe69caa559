/**
 * What a contender adds to a bundle: its entry point with all it imports, minified, then compressed.
 *
 * @module
 */

import { gzipSync } from "node:zlib";
import { fileURLToPath } from "node:url";
import { printTable } from "../table.ts";
import type { Bench } from "./scenario.ts";

/** Modules that are bundled: ours as it is published, the peer with the client it needs. */
const ENTRIES: Record<string, string> = {
  ours: 'export * from "../../mod.ts";',
  redlock5: 'export { default } from "redlock5"; export { Redis } from "ioredis";',
};

/** What a runtime brings along is no part of the bundle. */
const BUNDLE_FLAGS = ["--minify", "--platform", "deno", "--external", "cloudflare:sockets"];

/** Prints bundle sizes of ours and the measured peers that have an entry. */
export async function size(bench: Bench): Promise<void> {
  const rows: string[][] = [];
  for (const { name } of bench.workers) {
    const entry = ENTRIES[name];
    if (entry === undefined) continue;
    const bytes = await bundle(entry);
    if (bytes === undefined) continue;
    rows.push([name, kilobytes(bytes.length), kilobytes(gzipSync(bytes, { level: 9 }).length)]);
  }
  const heading = ["", "minified kB", "and gzip kB"];
  printTable("Size of the bundle", [heading, ...rows, ["goal of ours", "", "≤ 12"]]);
}

function kilobytes(bytes: number): string {
  return (bytes / 1_000).toFixed(1);
}

async function bundle(entry: string): Promise<Uint8Array | undefined> {
  const folder = fileURLToPath(new URL("..", import.meta.url));
  const file = await Deno.makeTempFile({ dir: folder, prefix: ".bundle-", suffix: ".ts" });
  const bundled = await Deno.makeTempFile({ suffix: ".js" });
  try {
    await Deno.writeTextFile(file, entry);
    const { success, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["bundle", ...BUNDLE_FLAGS, "--output", bundled, file],
    }).output();
    if (success) return await Deno.readFile(bundled);
    console.error(`size: ${new TextDecoder().decode(stderr)}`);
    return undefined;
  } finally {
    await Deno.remove(file);
    await Deno.remove(bundled);
  }
}
