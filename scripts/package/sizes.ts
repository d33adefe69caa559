/**
 * What the package adds to a bundle, and which of its modules weigh most in it.
 *
 * @module
 */

import { join, relative, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { bundle, type Platform } from "./bundle.ts";
import type { Consumer } from "./consumer.ts";
import { findTool, ROOT, succeed } from "./tools.ts";

/** Everything of the main entry point in one piece, minified and compressed: a larger one fails the check, in bytes. */
const GZIP_BYTES_MAX = 39_900;

/** A program that needs nothing but an error's class must not carry the rest, in bytes before compression. */
const SHAKEN_BYTES_MAX = 1_000;

const WHOLE = 'export * from "@hasp/redlock";';

/**
 * Bundles the package for each platform and checks what is in the bundles.
 *
 * @returns The sizes, as one line.
 * @throws {Error} If a bundle holds what its platform cannot load, or is too large.
 */
export async function checkBundles(consumer: Consumer): Promise<string> {
  const workers = await bundled(consumer, WHOLE, "workers");
  if (/["']node:/.test(workers)) throw new Error("the bundle for workers imports node:");
  const node = await bundled(consumer, WHOLE, "node");
  if (/["']cloudflare:/.test(node)) throw new Error("the bundle for Node imports cloudflare:");
  const error = 'import { LockHeldError } from "@hasp/redlock"; console.log(LockHeldError);';
  const shaken = await bundled(consumer, error, "workers");
  if (shaken.length > SHAKEN_BYTES_MAX) {
    throw new Error(`a bundle with one error's class in it has ${shaken.length} bytes`);
  }
  const client = await bundled(
    consumer,
    'import { connect } from "@hasp/redlock/redis"; console.log(connect);',
    "node",
  );
  if (client.includes("NO_QUORUM")) throw new Error("a bundle of the client alone holds the lock");
  for (const whole of [node, workers]) {
    const bytes = compressed(whole);
    if (bytes > GZIP_BYTES_MAX) throw new Error(`a bundle has ${bytes} bytes compressed`);
  }
  return `minified, and gzip: node ${sizes(node)}, workers ${sizes(workers)}, ` +
    `the client alone ${sizes(client)}`;
}

function compressed(text: string): number {
  return gzipSync(text, { level: 9 }).length;
}

function sizes(text: string): string {
  return `${text.length}, ${compressed(text)}`;
}

async function bundled(consumer: Consumer, text: string, platform: Platform): Promise<string> {
  const [entry, outfile] = ["entry.js", "bundle.js"].map((name) => join(consumer.folder, name));
  await Deno.writeTextFile(entry!, text);
  await bundle(entry!, outfile!, { platform, minify: true, packages: packagesOf(consumer) });
  return await Deno.readTextFile(outfile!);
}

function packagesOf(consumer: Consumer): string {
  return join(consumer.folder, "node_modules");
}

/** One module's share of the bundle. */
interface Share {
  readonly path: string;
  readonly minified: number;
  /** By how much the compressed bundle shrinks without it. */
  readonly gzip: number;
}

/** Lists the modules of the source by how much each adds to a compressed bundle, the heaviest first. */
export async function weighModules(consumer: Consumer): Promise<Share[]> {
  const [metafile, outfile] = ["meta.json", "bundle.js"].map((name) => join(consumer.folder, name));
  const options = { platform: "workers", minify: true, metafile } as const;
  await bundle(join(ROOT, "mod.ts"), outfile!, options);
  const { outputs } = JSON.parse(await Deno.readTextFile(metafile!));
  const [{ inputs }] = Object.values(outputs) as [{ inputs: Record<string, Input> }];
  const modules = Object.entries(inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0)
    .map(([path, { bytesInOutput }]) => ({ path: resolve(path), minified: bytesInOutput }));
  const texts = new Map<string, string>();
  for (const { path } of modules) texts.set(path, await minified(path));
  const whole = joinedSize(texts);
  return modules.map(({ path, minified }) => {
    const others = new Map(texts);
    others.delete(path);
    return { path: relative(ROOT, path), minified, gzip: whole - joinedSize(others) };
  }).sort((a, b) => b.gzip - a.gzip);
}

interface Input {
  readonly bytesInOutput: number;
}

async function minified(path: string): Promise<string> {
  const args = [path, "--minify", "--format=esm", "--target=node20"];
  return await succeed(await findTool("locked", "esbuild"), args);
}

function joinedSize(texts: Map<string, string>): number {
  return compressed([...texts.values()].join(""));
}
