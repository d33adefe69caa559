/**
 * The npm package's `package.json`, and what of the source goes where in it.
 *
 * @module
 */

import { join, posix } from "node:path";
import { ROOT } from "./tools.ts";

/** Where the source is. */
export const REPOSITORY = "https://github.com/hasp-lock/redlock";

/**
 * Modules that stand in for others in the package, where Deno's own transport is chosen by the
 * package's `imports` alone. Paths from the project's folder.
 */
export const MAPPINGS: Readonly<Record<string, string>> = {
  "./src/transport/default.ts": "./src/transport/default_npm.ts",
};

/** What chooses a transport at run time. */
export const TRANSPORT_MODULE = "src/transport/default_npm.js";

/**
 * Deno's transport. It is emitted apart, because it needs Deno's types, and the declarations need
 * none of it.
 */
export const DENO_TRANSPORT = "src/transport/deno";

/**
 * Modules that the package itself imports by a name, which Node and bundlers look up in its
 * `imports`. So a bundle for workers holds no import of `node:`, which it could not load, and a
 * bundle for Node none of `cloudflare:`.
 */
export const NAMED_MODULES: Readonly<Record<string, string>> = {
  [TRANSPORT_MODULE]: "#transport",
  "src/transport/node_listener.js": "#listener",
};

/**
 * Packages that single entry points import and that programs bring which use them, with the
 * versions that fit. A program has one copy of each, so the range is wider than that of
 * `deno.json`: there the oldest fits every newer one.
 */
export const PEERS: Readonly<Record<string, string>> = { "@opentelemetry/api": "^1.9.0" };

/** The folder of the code inside the package, as dnt names it. */
export const CODE_FOLDER = "esm";

/** The command line, as one file. */
export const PROGRAM = `${CODE_FOLDER}/src/cli/mod.js`;

/** What the code is compiled to: Node 20 runs it as it is. */
export const TARGET = "ES2022" as const;

/** The functions of the language that the code may call: all of Node 20's. */
export const LIBRARY = "ES2023" as const;

/** The part of `deno.json` that counts here. */
export interface Config {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly exports: Readonly<Record<string, string>>;
}

/** The sub-path of the command line: in the npm package it is a program, and no entry point. */
const CLI = "./cli";

/**
 * Reads `deno.json`, where name, version and entry points are kept; the command line is left out.
 */
export async function readConfig(): Promise<Config> {
  const config = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json")));
  const { [CLI]: _, ...exports } = config.exports;
  return { ...config, exports };
}

/**
 * The npm tag that a version is published under, so that nobody gets a prerelease who did not ask
 * for one: `latest`, or of a prerelease its own word, as `beta` of `1.0.0-beta.2`, and `next` where
 * it has none.
 */
export function npmTag(version: string): string {
  const [, prerelease] = /^[^-+]+-([^+]+)/.exec(version) ?? [];
  if (prerelease === undefined) return "latest";
  return /^[a-z]+/.exec(prerelease)?.[0] ?? "next";
}

/** The path of an entry point in the package, without its extension. */
export function builtPath(source: string): string {
  return posix.join(CODE_FOLDER, source.replace(/\.ts$/, ""));
}

/** Makes the whole `package.json`. */
export function packageJson({ name, version, license, exports }: Config): Record<string, unknown> {
  const code = (path: string) => `./${CODE_FOLDER}/${path}`;
  const built = Object.entries(exports).map(([subPath, source]) =>
    [subPath, `./${builtPath(source)}`] as const
  );
  const entries = built.map(([subPath, path]) => [subPath, {
    require: { types: `${path}.d.cts`, default: `${path}.cjs` },
    types: `${path}.d.ts`,
    default: `${path}.js`,
  }]);
  const [[, main], ...others] = built;
  return {
    name,
    version,
    description: "A distributed lock on one Redis or Valkey server, or a quorum of several",
    keywords: [
      "redlock",
      "redis",
      "valkey",
      "lock",
      "mutex",
      "semaphore",
      "leader-election",
      "cron",
      "upstash",
      "distributed",
      "deno",
      "bun",
      "workers",
    ],
    homepage: `${REPOSITORY}#readme`,
    repository: { type: "git", url: `git+${REPOSITORY}.git` },
    bugs: { url: `${REPOSITORY}/issues` },
    license,
    type: "module",
    sideEffects: false,
    engines: { node: ">=20" },
    peerDependencies: PEERS,
    peerDependenciesMeta: Object.fromEntries(
      Object.keys(PEERS).map((name) => [name, { optional: true }]),
    ),
    bin: { hasp: PROGRAM },
    exports: { ...Object.fromEntries(entries), "./package.json": "./package.json" },
    // For tools that know no `exports`, such as TypeScript with "module": "commonjs".
    main: `${main}.cjs`,
    types: `${main}.d.ts`,
    typesVersions: {
      "*": Object.fromEntries(
        others.map(([subPath, path]) => [subPath.slice(2), [`${path}.d.ts`]]),
      ),
    },
    // The first condition that a bundler sets decides. Vercel sets `edge-light`, Fastly and
    // bundlers for pages `browser`. Deno's `node:net` cannot be used before 2.8, and costs more
    // than its own sockets.
    imports: {
      "#transport": {
        deno: code(`${DENO_TRANSPORT}.js`),
        workerd: code("src/transport/workers.js"),
        "edge-light": code("src/transport/none.js"),
        node: code("src/transport/node.js"),
        browser: code("src/transport/none.js"),
        default: code(TRANSPORT_MODULE),
      },
      "#listener": {
        workerd: code("src/transport/workers.js"),
        "edge-light": code("src/transport/none.js"),
        node: code("src/transport/node_listener.js"),
        browser: code("src/transport/none.js"),
        default: code("src/transport/node_listener.js"),
      },
    },
    files: [CODE_FOLDER],
  };
}
