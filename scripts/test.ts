/**
 * Checks and tests the whole project, part by part; `deno task test --help` tells how to run a few.
 *
 * Needs nothing but Deno: the Redis server is found or fetched by `find_redis.ts`, and where JSR
 * can't be reached the adapters in `tests/support/std` take the place of `@std`.
 *
 * @module
 */

import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, stripVTControlCharacters } from "node:util";
import { findRedisServer } from "./find_redis.ts";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const FALLBACK_IMPORT_MAP = "tests/support/std/import_map.json";
const JSR_PROBE_TIMEOUT_MS = 8000;

const HELP = `Usage: deno task test [part ...] [options] [-- arguments for deno test]

  --only <a,b>      run these parts only, as naming them does
  --filter <text>   run only the tests whose names contain the text, in the parts that hold tests
  --list            list the parts
  --help            show this text`;

/** One step of the run: a `deno` command. */
interface Part {
  name: string;
  description: string;
  /** The arguments of `deno`. */
  args: string[];
  /** Whether it resolves `@std` imports. */
  usesStd?: boolean;
  /** Whether it is a `deno test` or ends with a count as `deno test` does, so that its results are counted. */
  holdsTests?: boolean;
  /** Whether it starts Redis servers. */
  needsRedis?: boolean;
  /** A folder without which the part is left out. */
  onlyWith?: string;
}

const PARTS: readonly Part[] = [
  { name: "fmt", description: "formatting", args: ["fmt", "--check"] },
  { name: "lint", description: "lint rules", args: ["lint"] },
  {
    name: "check",
    description: "types of all code",
    args: ["check", "mod.ts", "src", "tests", "scripts"],
    usesStd: true,
  },
  {
    name: "doc",
    description: "documentation of the public API",
    args: ["doc", "--lint", ...entryPoints()],
  },
  testPart("examples", "code in doc comments and README", [
    "--doc",
    "--allow-net=127.0.0.1",
    "mod.ts",
    "src",
    "README.md",
  ]),
  testPart("unit", "tests without permissions", ["--allow-read=.", "tests/unit"]),
  {
    ...testPart("integration", "tests on real Redis servers", ["-A", "tests/integration"]),
    needsRedis: true,
  },
  {
    ...testPart("simulation", "seeded simulations", ["-A", "tests/simulation"]),
    onlyWith: "tests/simulation",
  },
  {
    name: "runtime",
    description: "one suite on Deno, Node, Bun and workerd, and the examples",
    args: ["run", "-A", "tests/runtime/main.ts"],
    holdsTests: true,
    needsRedis: true,
  },
  {
    name: "npm",
    description: "the npm package: built, packed, checked",
    args: ["run", "-A", "scripts/check_npm.ts"],
    needsRedis: true,
  },
  {
    name: "publish",
    description: "dry run of publishing",
    args: ["publish", "--dry-run", "--allow-dirty"],
  },
];

/** How many tests had which outcome. */
interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/** What the command line asks for. */
interface Choice {
  parts: readonly Part[];
  testArgs: string[];
}

function testPart(name: string, description: string, args: string[]): Part {
  return {
    name,
    description,
    args: ["test", "--no-prompt", ...args],
    usesStd: true,
    holdsTests: true,
  };
}

function entryPoints(): string[] {
  const config = JSON.parse(Deno.readTextFileSync(join(ROOT, "deno.json")));
  return Object.values<string>(config.exports);
}

function parseChoice(args: string[]): Choice | undefined {
  const end = args.includes("--") ? args.indexOf("--") : args.length;
  const { values, positionals } = parseArgs({
    args: args.slice(0, end),
    allowPositionals: true,
    options: {
      only: { type: "string", multiple: true, default: [] },
      filter: { type: "string" },
      list: { type: "boolean" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help || values.list) {
    console.log(values.help ? `${HELP}\n\n${partsList()}` : partsList());
    return undefined;
  }
  const testArgs = args.slice(end + 1);
  if (values.filter !== undefined) testArgs.unshift("--filter", values.filter);
  const names = [...values.only.flatMap((list) => list.split(",")), ...positionals];
  return { parts: chosenParts(names, testArgs.length > 0), testArgs };
}

function chosenParts(names: string[], testsOnly: boolean): readonly Part[] {
  const unknown = names.find((name) => !PARTS.some((part) => part.name === name));
  if (unknown !== undefined) throw new TypeError(`There is no part "${unknown}"\n\n${partsList()}`);
  if (names.length > 0) return PARTS.filter((part) => names.includes(part.name));
  return PARTS.filter((part) => (part.holdsTests || !testsOnly) && isPresent(part));
}

function partsList(): string {
  return PARTS.map((part) => `  ${part.name.padEnd(13)} ${part.description}`).join("\n");
}

function isPresent(part: Part): boolean {
  return part.onlyWith === undefined || existsSync(join(ROOT, part.onlyWith));
}

/** Runs `action` under a heading, tells how long it took, and returns false if it failed. */
async function timed(title: string, action: () => Promise<boolean>): Promise<boolean> {
  console.log(`\n── ${title}`);
  const startMs = performance.now();
  let ok = false;
  try {
    ok = await action();
  } catch (error) {
    console.log(error instanceof Error ? error.message : String(error));
  }
  const tookS = ((performance.now() - startMs) / 1000).toFixed(1);
  console.log(`── ${title}: ${ok ? "ok" : "FAILED"} (${tookS} s)`);
  return ok;
}

/** Whether the `@std` packages can be had from JSR, or were before and are cached. */
async function reachesJsr(): Promise<boolean> {
  const probe = new Deno.Command(Deno.execPath(), {
    args: ["info", "jsr:@std/assert@^1"],
    cwd: ROOT,
    stdin: "null",
    stdout: "null",
    stderr: "null",
    signal: AbortSignal.timeout(JSR_PROBE_TIMEOUT_MS),
  });
  return (await probe.output()).success;
}

/** Runs `deno` with `args`, passing its output on as it comes; the standard output is returned too. */
async function runDeno(
  args: string[],
  env: Record<string, string>,
): Promise<{ success: boolean; output: string }> {
  const command = new Deno.Command(Deno.execPath(), {
    args,
    cwd: ROOT,
    env,
    stdin: "null",
    stdout: "piped",
  });
  const child = command.spawn();
  const decoder = new TextDecoder();
  let output = "";
  for await (const chunk of child.stdout) {
    writeAll(chunk);
    output += decoder.decode(chunk, { stream: true });
  }
  return { success: (await child.status).success, output };
}

function writeAll(bytes: Uint8Array): void {
  for (let offset = 0; offset < bytes.length;) {
    offset += Deno.stdout.writeSync(bytes.subarray(offset));
  }
}

/** Reads the last summary line of `deno test`, such as `ok | 3 passed (1 step) | 0 failed (9ms)`. */
function countsIn(output: string): Counts {
  const summary =
    /^(?:(?:ok|FAILED) \| )?(\d+) passed(?: \(.*?\))?(?: \||,) (\d+) failed(?: \(.*?\))?(?:(?: \||,) (\d+) (?:ignored|skipped))?/gm;
  const last = [...stripVTControlCharacters(output).matchAll(summary)].at(-1) ?? [];
  const [, passed = 0, failed = 0, skipped = 0] = last;
  return { passed: Number(passed), failed: Number(failed), skipped: Number(skipped) };
}

/** Runs the chosen parts one after the other and returns the names of those that failed. */
async function runParts({ parts, testArgs }: Choice, total: Counts): Promise<string[]> {
  const env: Record<string, string> = {};
  if (Deno.stdout.isTerminal() && !Deno.noColor) env.FORCE_COLOR = "1";
  const failed: string[] = [];

  if (parts.some((part) => part.needsRedis)) {
    const found = await timed("redis", async () => {
      env.REDIS_SERVER = await findRedisServer();
      console.log(env.REDIS_SERVER);
      return true;
    });
    if (!found) failed.push("redis");
  }
  const stdArgs = parts.some((part) => part.usesStd) ? await chooseStd() : [];
  for (const part of parts) {
    const runnable = !part.needsRedis || env.REDIS_SERVER !== undefined;
    if (!runnable) total.failed += 1;
    if (!runnable || !await runPart(part, stdArgs, testArgs, env, total)) failed.push(part.name);
  }
  return failed;
}

/** Returns the arguments by which `deno` finds the `@std` packages or what stands in for them. */
async function chooseStd(): Promise<string[]> {
  const reachable = await reachesJsr();
  if (!reachable) console.log("\nJSR can't be reached: the adapters in tests/support/std are used");
  return reachable ? [] : [`--import-map=${FALLBACK_IMPORT_MAP}`];
}

async function runPart(
  part: Part,
  stdArgs: string[],
  testArgs: string[],
  env: Record<string, string>,
  total: Counts,
): Promise<boolean> {
  const [subcommand = "", ...rest] = part.args;
  const args = [
    subcommand,
    ...(part.usesStd ? stdArgs : []),
    ...rest,
    ...(part.holdsTests ? testArgs : []),
  ];
  return await timed(part.name, async () => {
    const { success, output } = await runDeno(args, env);
    if (part.holdsTests) addCounts(total, countsIn(output), success);
    return success;
  });
}

/** Adds a run to the total; one that broke off without a failing test counts as one that failed. */
function addCounts(total: Counts, run: Counts, success: boolean): void {
  total.passed += run.passed;
  total.failed += success ? run.failed : Math.max(run.failed, 1);
  total.skipped += run.skipped;
}

async function main(): Promise<number> {
  const choice = parseChoice(Deno.args);
  if (choice === undefined) return 0;
  const total: Counts = { passed: 0, failed: 0, skipped: 0 };
  const failed = await runParts(choice, total);
  console.log(failed.length > 0 ? `\nFailed: ${failed.join(", ")}` : "");
  const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : "";
  console.log(`${total.passed} passed, ${total.failed} failed${skipped}`);
  return failed.length > 0 ? 1 : 0;
}

if (import.meta.main) {
  try {
    Deno.exitCode = await main();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    console.error(error.message);
    Deno.exitCode = 2;
  }
}
