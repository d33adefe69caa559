/**
 * Builds the npm package, packs it, installs it as a user would, and checks what came of it.
 * `--sizes` lists the modules by weight too. `--filter TEXT` runs the checks with the text in their
 * names. `--junit-path FILE` leaves a report there.
 *
 * @module
 */

import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { buildNpm } from "./build_npm.ts";
import { findRuntime } from "./find_runtimes.ts";
import { type Consumer, startConsumer } from "./package/consumer.ts";
import { checkEdge } from "./package/edge.ts";
import { CODE_FOLDER, DENO_TRANSPORT, PROGRAM, readConfig } from "./package/manifest.ts";
import { measureMemory } from "./package/memory.ts";
import { checkBundles, weighModules } from "./package/sizes.ts";
import { measureStart } from "./package/start.ts";
import { filesIn, findTool, findTools, nodePath, run, succeed } from "./package/tools.ts";
import { checkTypes } from "./package/types.ts";
import { formatReport, type TestResult } from "./suite/report.ts";

/** What the tarball may hold; anything else fails. */
const ALLOWED_FILES = [
  /^(package\.json|README\.md|LICENSE)$/,
  /^esm\/(mod|src\/shared-\w+)\.js$/,
  /^esm\/src\/(nodes|operate|otel|redis|testing|upstash)\/mod\.js$/,
  /^esm\/src\/transport\/(default_npm|deno|node|node_listener|none|workers)\.js$/,
  /^esm\/(mod|src\/[a-z]+\/mod|src\/types-[0-9a-f]+)\.d\.ts$/,
  /^esm\/(src\/[a-z]+\/)?mod\.(cjs|d\.cts)$/,
  /^esm\/src\/cli\/(mod\.js|LICENSES\.txt)$/,
];

/**
 * The most that the library may weigh, the command line and the declarations, in bytes; what people
 * read is beside that.
 */
const CODE_BYTES_MAX = 580_000; // a third of it are the servers in memory and the suite for nodes
const PROGRAM_BYTES_MAX = 220_000;
const DECLARATION_BYTES_MAX = 140_000;

/**
 * Where the runtimes' own names may stand: in the transports, and in the command line, which is a
 * program for Node.
 */
const TRANSPORTS = /^src\/(transport|cli)\//;

/**
 * The runtimes' own names; what Deno asks to print, and what a process is called, are looked up
 * where they exist.
 */
const RUNTIME_NAMES =
  /\bDeno\.(?!(customInspect|hostname|permissions|pid)\b)|["']Deno["']|["'](?:node|cloudflare):/;

/**
 * Imports every entry point that needs no other package both ways, and takes a lock with what it
 * finds.
 */
const LOADING = `
import { createRequire } from "node:module";
const require = createRequire(import.meta.url);
const paths = Object.keys(require("@hasp/redlock/package.json").exports)
  .filter((path) => !["./package.json", "./otel"].includes(path)).map((path) => path.slice(1));
const exported = {};
for (const path of paths) {
  const module = await import("@hasp/redlock" + path);
  for (const [name, value] of Object.entries(module)) {
    if ((exported[name] ??= value) !== value) throw new Error("two copies of " + name);
  }
  if (process.features.require_module && require("@hasp/redlock" + path).default !== module.default) {
    throw new Error("two copies of " + path);
  }
}
const [main, redis, testing, nodes] = await Promise.all(
  ["", "/redis", "/testing", "/nodes"].map((path) => import("@hasp/redlock" + path)),
);
if (process.features.require_module && require("@hasp/redlock").createRedlock !== main.createRedlock) {
  throw new Error("two copies");
}
const server = new testing.MemoryRedis();
const redlock = main.createRedlock(["redis://a"], { connect: server.connect });
const lock = await redlock.acquire("resource");
if (!(await lock.release())) throw new Error("not released");
await lock[Symbol.asyncDispose]();
await redlock.close();
const client = await redis.connect("redis://a", { connect: server.connect });
const refused = await client.send(["NOPE"]).catch((error) => error);
if (!(refused instanceof redis.ReplyError)) throw new Error("not a ReplyError of ./redis");
const unreachable = main.createRedlock(["redis://a"], { connect: () => Promise.reject(new Error("no")) });
const failed = await unreachable.acquire("resource", { waitMs: 0 }).catch((error) => error);
if (!(failed.votes?.[0].error instanceof redis.ConnectionError)) throw new Error("not a ConnectionError of ./redis");
await unreachable.close();
const node = nodes.commandNode({ name: "a", send: (args) => client.send(args) });
const other = new main.Redlock([node]);
await other.using("resource", () => {});
await other.close();
await client.close();
console.log(process.version, process.features.require_module ? "import and require" : "import", redis.connect.name);
`;

/** Records telemetry of a lock, with what a program brings for that. */
const TELEMETRY = `
import { trace } from "@opentelemetry/api";
import { createRedlock } from "@hasp/redlock";
import { otelListener } from "@hasp/redlock/otel";
import { MemoryRedis } from "@hasp/redlock/testing";
const names = [];
const tracerProvider = {
  getTracer: (scope) => ({ startSpan: (name) => (names.push(name), trace.getTracer(scope).startSpan(name)) }),
};
const onEvent = otelListener({ tracerProvider });
const redlock = createRedlock(["redis://a"], { connect: new MemoryRedis().connect, onEvent });
await redlock.using("resource", () => {});
await redlock.close();
if (names.join() !== "redlock.acquire,redlock.hold") throw new Error("spans: " + names);
console.log(process.versions.bun ? "Bun " + process.versions.bun : process.version);
`;

/** A check: returns what is worth telling, or why it was left out, or throws. */
type Check = (consumer: Consumer) => Promise<string | { readonly leftOut: string }>;

const CHECKS: readonly [name: string, check: Check][] = [
  ["both ways to build give the same files", checkWays],
  ["files of the tarball", checkFiles],
  ["files of the first lock", checkFirstFiles],
  ["package.json", checkManifest],
  ["runtimes' names in transports only", checkNames],
  ["publint", checkPublint],
  ["are the types wrong", checkAttw],
  ["loads in Node", checkLoading],
  ["telemetry loads with OpenTelemetry alone", checkTelemetry],
  ["command line runs in Node", checkProgram],
  ["types compile", checkTypes],
  ["bundles", checkBundles],
  ["runs without TCP sockets", checkEdge],
  ["memory of a client in Node", measureMemory],
  ["cold start in Node", measureStart],
];

/** Builds the package through TypeScript itself too, where it was built through dnt. */
async function checkWays({ folder, built, way }: Consumer): ReturnType<Check> {
  if (way !== "dnt") return { leftOut: "the package is built without dnt, as that cannot be had" };
  const other = join(folder, "through-tsc");
  await buildNpm("tsc", other);
  const paths = await filesIn(built);
  const others = await filesIn(other);
  const [only] = [...new Set(paths).symmetricDifference(new Set(others))];
  if (only !== undefined) throw new Error(`one way alone writes ${only}`);
  for (const path of paths) {
    const [one, two] = [built, other].map((root) => Deno.readTextFile(join(root, path)));
    if (await one !== await two) throw new Error(`${path} differs`);
  }
  return `${paths.length} files, through dnt and through TypeScript itself`;
}

/** What the main entry point leads to: to start with more files takes more time. */
async function checkFirstFiles({ built }: Consumer): Promise<string> {
  const importsOf = async (path: string) => {
    const text = await Deno.readTextFile(join(built, CODE_FOLDER, path));
    return [...text.matchAll(/^(?!\s*\*).*?\b(?:from |import |import\()"([^"]+)"/gm)].map((
      [, it],
    ) => it!);
  };
  const [shared, ...others] = await importsOf("mod.js");
  if (others.length > 0) throw new Error(`mod.js imports ${others.join(", ")} too`);
  const transport = new Set(await importsOf(shared!));
  if ([...transport].join() !== "#transport") {
    throw new Error(`${shared} imports ${[...transport].join(", ")}`);
  }
  return `mod.js, ${shared}, #transport`;
}

function checkFiles({ tarball }: Consumer): Promise<string> {
  const weightOf = (end: string) =>
    tarball.files.filter(({ path }) => path.endsWith(end)).reduce((sum, { size }) => sum + size, 0);
  for (const { path } of tarball.files) {
    if (!ALLOWED_FILES.some((pattern) => pattern.test(path))) {
      throw new Error(`${path} has no place in the package`);
    }
  }
  const [program, declarations] = [weightOf(PROGRAM), weightOf("ts")];
  const code = weightOf(".js") - program;
  if (program > PROGRAM_BYTES_MAX) throw new Error(`the command line has ${program} bytes`);
  if (code > CODE_BYTES_MAX) throw new Error(`the code has ${code} bytes`);
  if (declarations > DECLARATION_BYTES_MAX) {
    throw new Error(`the declarations have ${declarations} bytes`);
  }
  return Promise.resolve(
    `${tarball.files.length} files, ${tarball.unpackedSize} bytes (code ${code}, command line ` +
      `${program}, declarations ${declarations}, README ${
        weightOf("README.md")
      }), packed ${tarball.size}`,
  );
}

async function checkManifest({ built }: Consumer): Promise<string> {
  const manifest = JSON.parse(await Deno.readTextFile(join(built, "package.json")));
  for (const name of Object.keys(manifest)) {
    const unwanted = /dependencies$/i.test(name) && name !== "peerDependencies";
    if (unwanted || name === "scripts") throw new Error(`it has ${name}`);
  }
  for (const name of Object.keys(manifest.peerDependencies)) {
    if (!manifest.peerDependenciesMeta[name].optional) throw new Error(`it needs ${name}`);
  }
  const config = await readConfig();
  if (manifest.version !== config.version) throw new Error("its version is not deno.json's");
  for (const [subPath, target] of Object.entries(manifest.exports)) {
    if (
      typeof target !== "string" && Object.keys(target as object).join() !== "require,types,default"
    ) {
      throw new Error(`the conditions of ${subPath} are not require, types, default`);
    }
  }
  return `${manifest.name}@${manifest.version}, no dependencies but optional peers`;
}

async function checkNames({ built }: Consumer): Promise<string> {
  const code = join(built, CODE_FOLDER);
  const modules = (await filesIn(code)).filter((path) => path.endsWith(".js"));
  for (const path of modules) {
    const text = await Deno.readTextFile(join(code, path));
    const [name] = text.match(RUNTIME_NAMES) ?? [];
    const isDenos = path === `${DENO_TRANSPORT}.js`;
    if (name !== undefined && !(TRANSPORTS.test(path) && isDenos === name.includes("Deno"))) {
      throw new Error(`${path} names ${name}`);
    }
  }
  return `${modules.length} modules`;
}

async function checkPublint({ built }: Consumer): Promise<string> {
  await succeed(await findTool("check", "publint"), ["run", built, "--strict"]);
  return "strict";
}

async function checkAttw({ tarballPath }: Consumer): Promise<string> {
  await succeed(await findTool("check", "attw"), [
    tarballPath,
    "--no-emoji",
  ]);
  return "every way to find modules";
}

async function checkLoading({ folder }: Consumer): Promise<string> {
  await Deno.writeTextFile(join(folder, "loading.mjs"), LOADING);
  const said: string[] = [];
  for (const set of ["node20", "node22", "node26"] as const) {
    const line = await succeed(await nodePath(set), [
      "--disable-warning=ExperimentalWarning",
      "loading.mjs",
    ], {
      cwd: folder,
    });
    said.push(line.trim());
  }
  return said.join("; ");
}

/**
 * Loads the entry point for OpenTelemetry without its package, which must fail alone, and with it.
 */
async function checkTelemetry({ folder }: Consumer): Promise<string> {
  const script = join(folder, "telemetry.mjs");
  await Deno.writeTextFile(script, TELEMETRY);
  const node = await nodePath("node22");
  const { success, output } = await run(node, [script], { cwd: folder });
  if (success || !output.includes("@opentelemetry/api")) {
    throw new Error(`without @opentelemetry/api it says ${output}`);
  }
  const name = "@opentelemetry/api";
  await Deno.mkdir(join(folder, "node_modules", dirname(name)), { recursive: true });
  await succeed("cp", [
    "-R",
    join(await findTools("locked"), name),
    join(folder, "node_modules", name),
  ]);
  const runtimes = [
    await nodePath("node20"),
    node,
    await nodePath("node26"),
    await findRuntime("bun"),
  ];
  const said: string[] = [];
  for (const runtime of runtimes) said.push(await succeed(runtime, [script], { cwd: folder }));
  return said.map((line) => line.trim()).join("; ");
}

/** Runs the program as `npx` does, from the file that npm links to. */
async function checkProgram({ folder, built, tarball }: Consumer): Promise<string> {
  const licenses = await Deno.readTextFile(join(built, dirname(PROGRAM), "LICENSES.txt"));
  const [, stated] = /\bbundles (\d+) packages\b/.exec(
    (await Deno.readTextFile(join(built, "README.md"))).replaceAll("\n", " "),
  ) ?? [];
  const bundled = licenses.match(/^\S+ \d+\.\d+\.\d+$/gm)?.length;
  if (bundled !== Number(stated)) throw new Error(`it has ${bundled} packages in it`);
  const program = join(folder, "node_modules", ".bin", "hasp");
  for (const set of ["node20", "node22", "node26"] as const) {
    const node = await nodePath(set);
    const version = await succeed(node, [program, "--version"], { cwd: folder });
    if (version.trim() !== tarball.version) throw new Error(`it says that it is ${version}`);
    for (const command of ["run", "inspect", "check"]) {
      const help = await succeed(node, [program, command, "--help"], { cwd: folder });
      if (!help.startsWith(`Usage: hasp ${command}`)) throw new Error(`its help is ${help}`);
    }
  }
  return "Node 20, 22 and 26";
}

async function main(): Promise<number> {
  const { values: { sizes, filter, "junit-path": report } } = parseArgs({
    args: Deno.args,
    options: {
      sizes: { type: "boolean", default: false },
      filter: { type: "string", default: "" },
      "junit-path": { type: "string" },
    },
  });
  const chosen = CHECKS.filter(([name]) => name.includes(filter));
  if (chosen.length === 0) throw new Error(`no check has "${filter}" in its name`);
  const results: TestResult[] = [];
  await using consumer = await startConsumer();
  for (const [name, check] of chosen) {
    try {
      const said = await check(consumer);
      const leftOut = typeof said === "string" ? undefined : said.leftOut;
      console.log(`${leftOut === undefined ? "ok      " : "left out"} ${name}: ${leftOut ?? said}`);
      results.push({ place: "npm", name, outcome: leftOut === undefined ? "passed" : "skipped" });
    } catch (error) {
      results.push({ place: "npm", name, outcome: "failed" });
      console.log(`FAILED   ${name}: ${error instanceof Error ? error.message : error}`);
    }
  }
  if (report !== undefined) await Deno.writeTextFile(report, formatReport(results));
  const count = (wanted: TestResult["outcome"]) =>
    results.filter(({ outcome }) => outcome === wanted).length;
  const failed = count("failed");
  if (sizes) console.log(await weighModules(consumer));
  console.log(`\n${count("passed")} passed, ${failed} failed`);
  return failed > 0 ? 1 : 0;
}

if (import.meta.main) Deno.exitCode = await main();
