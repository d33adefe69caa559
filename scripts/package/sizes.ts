/**
 * What the package adds to a bundle, and which of its modules weigh most in it.
 *
 * @module
 */

import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { bundle, type Platform } from "./bundle.ts";
import type { Consumer } from "./consumer.ts";
import { nodePath, ROOT, succeed } from "./tools.ts";

/**
 * Everything of the main entry point in one piece, minified and compressed: a larger one fails the
 * check, in bytes.
 */
const GZIP_BYTES_MAX = 48_000;

/**
 * A program that needs nothing but an error's class must not carry the rest, in bytes before
 * compression.
 */
const SHAKEN_BYTES_MAX = 1_200;

/** Says why there is no lock, with and without TLS: nobody listens. */
const REFUSED = `
import { createRedlock } from "@hasp/redlock";
globalThis.outcomes = Promise.all(["redis://127.0.0.1:1", "rediss://127.0.0.1:1"].map((address) =>
  createRedlock(address).tryAcquire("a").catch(String)
));
`;

/** Runs a program as what compiles programs to bytecode does: in it, `import()` fails. */
const WITHOUT_IMPORT = `
import { readFileSync } from "node:fs";
import { Script } from "node:vm";
new Script(readFileSync("bundle.js", "utf8")).runInThisContext();
for (const outcome of await globalThis.outcomes) console.log(outcome);
`;

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
  await bundled(consumer, REFUSED, "node");
  const args = ["--input-type=module", "--eval", WITHOUT_IMPORT];
  const said = await succeed(await nodePath("node20"), args, { cwd: consumer.folder });
  if (!said.trim().split("\n").every((outcome) => outcome.includes("ECONNREFUSED"))) {
    throw new Error(`a bundle without import() says ${said}`);
  }
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

/**
 * Which modules of the source weigh most in a bundle for workers, in minified bytes: a table by
 * esbuild.
 */
export async function weighModules({ folder }: Consumer): Promise<string> {
  const outfile = join(folder, "bundle.js");
  return await bundle(join(ROOT, "mod.ts"), outfile, {
    platform: "workers",
    minify: true,
    analyze: true,
  });
}
