/**
 * Runs the tests with the real `@std` packages where JSR is out of reach: from a work tree of denoland/std, which is
 * served on the loopback interface as JSR serves packages.
 *
 *   git clone --depth 1 https://github.com/denoland/std /tmp/std
 *   deno task test:std /tmp/std [arguments of deno task test]
 *
 * @module
 */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { makeWorkFolder, ROOT } from "./package/tools.ts";

/** One package as its `deno.json` describes it. */
interface Package {
  readonly name: string;
  readonly version: string;
  readonly exports: string | Readonly<Record<string, string>>;
}

/** A package that can be served: its files by their paths, with a slash in front. */
interface ServedPackage extends Package {
  readonly files: ReadonlyMap<string, string>;
}

/** Reads every package of a work tree. */
function readPackages(folder: string): Map<string, ServedPackage> {
  const folders = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(join(folder, entry.name, "deno.json")))
    .map(({ name }) => join(folder, name));
  const packages = folders.map((path): [string, Package] => {
    return [path, JSON.parse(readFileSync(join(path, "deno.json"), "utf8"))];
  }).filter(([, { name }]) => name !== undefined);
  const versions = new Map(packages.map(([, { name, version }]) => [name, version]));
  return new Map(packages.map(([path, found]) => {
    const files = new Map(
      sourcesIn(path).map((file) => {
        return [file, withVersions(readFileSync(path + file, "utf8"), versions)];
      }),
    );
    return [found.name, { ...found, files }];
  }));
}

/** The modules below a folder, tests left out. */
function sourcesIn(folder: string, below = ""): string[] {
  return readdirSync(folder + below, { withFileTypes: true }).flatMap((entry) => {
    const path = `${below}/${entry.name}`;
    if (entry.isDirectory()) return sourcesIn(folder, path);
    return /\.(ts|js|mjs|json)$/.test(path) && !/(_test|\.test)\.ts$/.test(path) ? [path] : [];
  });
}

/** Names the version in imports of other packages, as publishing does. */
function withVersions(text: string, versions: ReadonlyMap<string, string>): string {
  return text.replace(/(["'])(@std\/[^/"']+)(\/[^"']*)?\1/g, (whole, quote, name, path = "") => {
    const version = versions.get(name);
    return version === undefined ? whole : `${quote}jsr:${name}@^${version}${path}${quote}`;
  });
}

/** Answers a request as JSR does: a package's versions, a version's files, a file. */
async function answer(packages: Map<string, ServedPackage>, path: string): Promise<Response> {
  const [, name = "", rest = ""] = /^\/(@[^/]+\/[^/]+)(\/.*)$/.exec(path) ?? [];
  const found = packages.get(name);
  if (found === undefined) return new Response("not found", { status: 404 });
  const { version, exports, files } = found;
  if (rest === "/meta.json") {
    return Response.json({ name, latest: version, versions: { [version]: {} } });
  }
  if (rest === `/${version}_meta.json`) {
    const entryPoints = typeof exports === "string" ? { ".": exports } : exports;
    return Response.json({ manifest: await manifestOf(files), exports: entryPoints });
  }
  const text = files.get(rest.replace(`/${version}`, ""));
  if (text === undefined) return new Response("not found", { status: 404 });
  const kind = rest.endsWith(".ts") ? "text/typescript" : "text/javascript";
  const type = rest.endsWith(".json") ? "application/json" : kind;
  return new Response(text, { headers: { "content-type": type } });
}

async function manifestOf(files: ReadonlyMap<string, string>) {
  const entries = [...files].map(async ([path, text]) => {
    const bytes = new TextEncoder().encode(text);
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    return [path, { size: bytes.length, checksum: `sha256-${digest.toHex()}` }];
  });
  return Object.fromEntries(await Promise.all(entries));
}

async function main(): Promise<number> {
  const [folder, ...args] = Deno.args;
  if (folder === undefined || folder.startsWith("-")) {
    console.log(
      "Usage: deno task test:std <work tree of denoland/std> [arguments of deno task test]",
    );
    return 2;
  }
  const packages = readPackages(folder);
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    ({ url }) => answer(packages, decodeURIComponent(new URL(url).pathname)),
  );
  // What was cached from JSR itself has other checksums.
  const cache = await makeWorkFolder("std-");
  try {
    const { code } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", join(ROOT, "scripts", "test.ts"), ...args],
      env: { JSR_URL: `http://127.0.0.1:${server.addr.port}/`, DENO_DIR: cache },
      stdin: "null",
    }).spawn().status;
    return code;
  } finally {
    await Deno.remove(cache, { recursive: true });
  }
}

if (import.meta.main) Deno.exitCode = await main();
