/**
 * What a contender adds to a bundle: its entry point with all it imports, minified, then compressed.
 *
 * @module
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { printTable } from "../table.ts";
import type { Bench } from "./scenario.ts";

/** What is bundled: ours as it is published, a peer with the client it needs. */
interface Entry {
  readonly source: string;
  /** Takes one lock and gives it back, with the bundle as `bundle` and addresses as `urls`. */
  readonly firstLock: string;
}

const ENTRIES: Record<string, Entry> = {
  ours: {
    source: 'export * from "../../mod.ts";',
    firstLock: `
      const redlock = bundle.createRedlock(urls);
      await (await redlock.acquire("bundled")).release();
      await redlock.close();`,
  },
  redlock5: {
    source: 'export { default } from "redlock5"; export { Redis } from "ioredis";',
    firstLock: `
      const clients = urls.map((url) => new bundle.Redis(url));
      await (await new bundle.default(clients).acquire(["bundled"], 30_000)).release();
      clients.forEach((client) => client.disconnect());`,
  },
};

/** What a runtime brings along is no part of the bundle. */
const FLAGS = ["--minify", "--platform", "deno", "--external", "cloudflare:sockets"];

/** Prints bundle sizes of ours and the measured peers that have an entry. */
export async function size(bench: Bench): Promise<void> {
  const rows: string[][] = [];
  for (const { name } of bench.workers) {
    const entry = ENTRIES[name];
    if (entry !== undefined) rows.push([name, ...await sizes(entry, bench)]);
  }
  const heading = ["", "first lock, minified kB", "gzip kB", "everything, minified kB", "gzip kB"];
  printTable("Size of the bundle: what the first lock loads, and everything", [
    heading,
    ...rows,
    ["goal of ours", "", "≤ 18", "", "≤ 28"],
  ]);
}

/** Bundles into pieces, takes a lock with them, and weighs those that this loads, and all. */
async function sizes({ source, firstLock }: Entry, { servers }: Bench): Promise<string[]> {
  const here = fileURLToPath(new URL("..", import.meta.url));
  const entry = await Deno.makeTempFile({ dir: here, prefix: "bundle-", suffix: ".ts" });
  const pieces = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(entry, source);
    await deno(["bundle", ...FLAGS, "--code-splitting", "--outdir", pieces, entry]);
    const names = [...Deno.readDirSync(pieces)].map(({ name }) => name);
    const texts = new Map(names.map((name) => [name, Deno.readTextFileSync(join(pieces, name))]));
    // Each piece notes that it was loaded.
    for (const [name, text] of texts) {
      Deno.writeTextFileSync(
        join(pieces, name),
        `${text}\n(globalThis.loaded ??= []).push("${name}");`,
      );
    }
    const main = names.find((name) => name.startsWith("bundle-"))!;
    const program = join(pieces, "first_lock.js");
    await Deno.writeTextFile(
      program,
      `import * as bundle from "./${main}";
      const urls = Deno.args;${firstLock}
      console.log(JSON.stringify(globalThis.loaded));`,
    );
    const loaded: string[] = JSON.parse(await deno(["run", "-A", program, ...servers.urls]));
    return [...weigh(loaded.map((name) => texts.get(name)!)), ...weigh([...texts.values()])];
  } finally {
    await Deno.remove(entry);
    await Deno.remove(pieces, { recursive: true });
  }
}

function weigh(texts: readonly string[]): string[] {
  const bytes = new TextEncoder().encode(texts.join(""));
  return [kilobytes(bytes.length), kilobytes(gzipSync(bytes, { level: 9 }).length)];
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
