/**
 * Checks and tests the whole project, part by part; `deno task test --help` says how to run a few.
 *
 * Needs nothing but Deno: the Redis server is found or fetched by `find_redis.ts`, and where JSR
 * can't be reached the adapters in `tests/support/std` take the place of `@std`.
 *
 * @module
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { findRedisServer } from "./find_redis.ts";
import { packNpm } from "./build_npm.ts";
import { PACKED_VARIABLE } from "./package/consumer.ts";
import { CACHE, ROOT, run } from "./package/tools.ts";
import { tidyCache } from "./suite/cache.ts";
import { isDenoTest, isInWholeRun, isTestOfFiles, type Part, PARTS } from "./suite/parts.ts";
import { parseReport, type TestResult } from "./suite/report.ts";

const FALLBACK_IMPORT_MAP = "tests/support/std/import_map.json";
const JSR_PROBE_TIMEOUT_MS = 8000;

const INTERRUPTIONS: readonly Deno.Signal[] = Deno.build.os === "windows"
  ? ["SIGINT"]
  : ["SIGINT", "SIGTERM", "SIGHUP"];
const INTERRUPTED_STATUS = 130;

const SOURCE_FILE = /\.(ts|md)$/;

/**
 * So many tests on real servers may fail at most to be run once more, alone: a machine that stands
 * still for a while makes a few of them fail, and a fault makes them fail again.
 */
const REPEATED_MAX = 3;

const HELP = `Usage: deno task test [part ...] [options] [-- files, or arguments for deno test]

  --only <a,b>      run these parts only, as naming them does
  --filter <text>   run only the tests whose names contain the text, in the parts that are a deno test
  --list            list the parts
  --help            show this text`;

/** What the command line asks for. */
interface Choice {
  parts: readonly Part[];
  testArgs: string[];
}

/** What came of a run. */
interface Outcome {
  /** Every test that a part reported. */
  readonly results: TestResult[];
  /** What failed, one line each. */
  readonly failed: string[];
  /** How many of those are parts that broke off without a failing test: each counts as a test. */
  brokenOff: number;
  /** What failed beside other tests and passed alone, one line each. */
  readonly repeated: string[];
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
  return PARTS.filter((part) => (isDenoTest(part) || !testsOnly) && isInWholeRun(part));
}

function partsList(): string {
  return PARTS.map((part) => `  ${part.name.padEnd(13)} ${part.description}`).join("\n");
}

/** Runs `action` under a heading, says how long it took, and returns false if it failed. */
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
  const ended = ok ? "ok" : running.interrupted ? "interrupted" : "FAILED";
  console.log(`── ${title}: ${ended} (${tookS} s)`);
  return ok;
}

/** Says what is about to run, and where downloads go. */
async function announce(parts: readonly Part[]): Promise<void> {
  const cachedMB = Math.round(await tidyCache() / 1e6);
  console.log(`To run: ${namesOf(parts)}`);
  console.log(`Downloads are kept in ${CACHE} (${cachedMB} MB)`);
}

function namesOf(parts: readonly Part[]): string {
  return parts.map(({ name }) => name).join(", ");
}

/** Whether the `@std` packages can be had from JSR, or were before and are cached. */
async function reachesJsr(): Promise<boolean> {
  const probe = { cwd: ROOT, withinMs: JSR_PROBE_TIMEOUT_MS };
  return (await run(Deno.execPath(), ["info", "jsr:@std/assert@^1"], probe)).success;
}

/** Returns the arguments by which `deno` finds the `@std` packages or what stands in for them. */
async function chooseStd(): Promise<string[]> {
  const reachable = await reachesJsr();
  if (!reachable) console.log("\nJSR can't be reached: the adapters in tests/support/std are used");
  return reachable ? [] : [`--import-map=${FALLBACK_IMPORT_MAP}`];
}

/** Runs the chosen parts one after the other; `folder` is for what they leave. */
async function runParts({ parts, testArgs }: Choice, folder: string): Promise<Outcome> {
  const outcome: Outcome = { results: [], failed: [], brokenOff: 0, repeated: [] };
  const env: Record<string, string> = { TMPDIR: folder };
  if (parts.some((part) => part.needsRedis)) {
    await timed("redis", async () => {
      env.REDIS_SERVER = await findRedisServer();
      console.log(env.REDIS_SERVER);
      return true;
    });
  }
  const packs = parts.filter((part) => part.needsPackage).length > 1;
  const packed = join(folder, "package");
  let packing: Promise<unknown> | undefined;
  if (packs && Deno.env.get(PACKED_VARIABLE) === undefined) {
    packing = packNpm(packed); // beside the first parts, which use one core
    packing.catch(() => {}); // it is awaited below
  }
  const stdArgs = parts.some((part) => part.usesStd) ? await chooseStd() : [];
  const checksTypes = parts.some(({ name }) => name === "check");
  for (const [index, part] of parts.entries()) {
    if (running.interrupted) break;
    if (index > 0) {
      console.log(`\n${index} of ${parts.length} parts done, left: ${namesOf(parts.slice(index))}`);
    }
    if (part.needsPackage && packing) {
      // if it fails, each of them builds its own, and says why that fails
      await timed("package", async () => {
        await packing;
        env[PACKED_VARIABLE] = packed;
        return true;
      });
      packing = undefined;
    }
    if (part.needsRedis && env.REDIS_SERVER === undefined) {
      outcome.brokenOff++;
      outcome.failed.push(`${part.name}: there is no Redis server to run it on`);
      continue;
    }
    const flags = [
      ...(part.usesStd ? stdArgs : []),
      ...(checksTypes && isTestOfFiles(part) ? ["--no-check"] : []),
    ];
    const args = argsOf(part, flags, isDenoTest(part) ? testArgs : []);
    await runPart(part, args, { ...env, ...part.env }, outcome);
  }
  await packing?.catch(() => {}); // the run was interrupted
  const filter = filterIn(testArgs);
  if (filter !== undefined && outcome.results.length === 0 && outcome.failed.length === 0) {
    outcome.brokenOff++;
    outcome.failed.push(`no test matches the filter ${JSON.stringify(filter)}`);
  }
  return outcome;
}

/** What `--filter` asks for, also among the arguments of `deno test`. */
function filterIn(testArgs: string[]): string | undefined {
  const options = { filter: { type: "string" } } as const;
  const { values } = parseArgs({ args: testArgs, options, strict: false });
  return values.filter === undefined ? undefined : String(values.filter);
}

/**
 * The arguments of `deno`. Files that are named after `--` take the place of all files of the part.
 */
function argsOf(part: Part, flags: readonly string[], testArgs: readonly string[]): string[] {
  const [subcommand = "", ...rest] = part.args;
  const own = testArgs.some((arg) => SOURCE_FILE.test(arg))
    ? rest.filter((arg) => arg.startsWith("-"))
    : rest;
  return [subcommand, ...flags, ...own, ...testArgs];
}

/** The `deno` that runs a part, and whether the run was interrupted. */
const running: { child?: Deno.ChildProcess; interrupted: boolean } = { interrupted: false };

/** Ends the part that runs, and thereby the run. */
function interrupt(): void {
  running.interrupted = true;
  signalPart("SIGINT");
}

/** Sends a signal to the part and to all that it has started. */
function signalPart(signal: Deno.Signal): void {
  try {
    if (running.child) Deno.kill(-running.child.pid, signal);
  } catch {
    // All of them have ended.
  }
}

/**
 * Runs one part, in a process group of its own. It writes to the terminal itself, so it is Deno
 * that decides about colours; what the tests found is read from the report that the part leaves in
 * a file.
 */
async function runPart(
  part: Part,
  args: string[],
  env: Record<string, string>,
  outcome: Outcome,
): Promise<void> {
  const { name, holdsTests } = part;
  const { success, results } = await runDeno(name, part, args, env);
  let failed = results.filter((result) => result.outcome === "failed");
  const line = (test: TestResult) => `${name}: ${test.place}  ${test.name}`;
  if (isRepeatable(part) && failed.length > 0 && failed.length <= REPEATED_MAX) {
    const again = await runDeno(`${name}, once more`, part, argsToRepeat(args, failed), env);
    const passed = ({ name }: TestResult) => {
      const same = again.results.filter((result) => result.name === name);
      return same.length > 0 && same.every((result) => result.outcome === "passed");
    };
    outcome.repeated.push(...failed.filter(passed).map(line));
    failed = failed.filter((test) => !passed(test));
  }
  outcome.results.push(...results.map((result): TestResult => {
    return outcome.repeated.includes(line(result)) ? { ...result, outcome: "passed" } : result;
  }));
  outcome.failed.push(...failed.map(line));
  if (success || results.some((result) => result.outcome === "failed") || running.interrupted) {
    return;
  }
  outcome.brokenOff++;
  outcome.failed.push(holdsTests ? `${name}: it ended before all tests were run` : name);
}

/** Whether failing tests of a part are run once more: they wait for servers and real clocks. */
function isRepeatable(part: Part): boolean {
  return isDenoTest(part) && part.needsRedis === true;
}

/**
 * The arguments that run these tests alone, one after the other. A test that a helper defines has
 * the helper's place: then all files of the part are looked through.
 */
function argsToRepeat(args: readonly string[], tests: readonly TestResult[]): string[] {
  const names = tests.map(({ name }) => name.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&"));
  const files = new Set(tests.map(({ place }) => place.replace(/:\d+$/, "")));
  const isPath = (arg: string, index: number) =>
    index > 0 && !arg.startsWith("-") && args[index - 1] !== "--filter";
  const paths = [...files].every((file) => file.endsWith("_test.ts")) ? files : args.filter(isPath);
  const options = args.filter((arg) =>
    arg.startsWith("-") && arg !== "--parallel" && arg !== "--filter"
  );
  return ["test", ...options, "--filter", `/^(${names.join("|")})$/`, ...paths];
}

/** Runs `deno`, and returns what its tests found. */
async function runDeno(
  title: string,
  { holdsTests }: Part,
  args: string[],
  env: Record<string, string>,
): Promise<{ success: boolean; results: TestResult[] }> {
  const report = await Deno.makeTempFile({ dir: env.TMPDIR, suffix: ".xml" });
  const allArgs = holdsTests ? withReport(args, report) : args;
  const success = await timed(title, async () => {
    const options = { args: allArgs, cwd: ROOT, env, stdin: "null", detached: true } as const;
    running.child = new Deno.Command(Deno.execPath(), options).spawn();
    const { success } = await running.child.status;
    // servers that a test has stopped take no other signal
    if (running.interrupted) signalPart("SIGKILL");
    return success;
  });
  return { success, results: parseReport(await Deno.readTextFile(report)) };
}

/**
 * The arguments with the report's file: an option of `deno test`, or one of the program that `deno
 * run` starts.
 */
function withReport([subcommand = "", ...args]: string[], file: string): string[] {
  const option = `--junit-path=${file}`;
  return subcommand === "test" ? [subcommand, option, ...args] : [subcommand, ...args, option];
}

function printOutcome({ results, failed, brokenOff, repeated }: Outcome): void {
  if (repeated.length > 0) {
    console.log(`\nFailed beside other tests, passed alone:\n  ${repeated.join("\n  ")}`);
  }
  if (failed.length > 0) console.log(`\nFailed:\n${failed.map((it) => `  ${it}`).join("\n")}`);
  const count = (wanted: TestResult["outcome"]) =>
    results.filter(({ outcome }) => outcome === wanted).length;
  const skipped = count("skipped");
  const skippedPart = skipped > 0 ? `, ${skipped} skipped` : "";
  if (running.interrupted) console.log("\nInterrupted: not everything was run");
  console.log(`\n${count("passed")} passed, ${count("failed") + brokenOff} failed${skippedPart}`);
}

async function main(): Promise<number> {
  const choice = parseChoice(Deno.args);
  if (choice === undefined) return 0;
  for (const signal of INTERRUPTIONS) Deno.addSignalListener(signal, interrupt);
  await announce(choice.parts);
  const folder = await Deno.makeTempDir({ prefix: "hasp-test-" });
  const outcome = await runParts(choice, folder)
    .finally(() => Deno.remove(folder, { recursive: true }).catch(() => {}));
  printOutcome(outcome);
  if (running.interrupted) return INTERRUPTED_STATUS;
  return outcome.failed.length > 0 ? 1 : 0;
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
