/**
 * Runs the one suite on every runtime that is there or can be fetched, and the examples each on its
 * own, on redis-server processes of this run. Prints a table and ends with status 1 if anything
 * failed. Arguments, if any, name the runtimes to run: `Deno "Node 22" workerd`, or `examples`.
 * `--junit-path=FILE` leaves a report there.
 */

import { parseArgs } from "node:util";
import { type Consumer, startConsumer } from "../../scripts/package/consumer.ts";
import { formatReport, type TestResult } from "../../scripts/suite/report.ts";
import type { Feature, Outcome } from "./context.ts";
import { runExamples } from "./examples.ts";
import { type Candidate, CANDIDATES } from "./runtimes.ts";
import { startWorld, type World } from "./world.ts";

/** How many runtimes run at once. */
const ROWS_AT_ONCE = 5;

/** What came of one runtime, or of the examples. */
interface Row {
  readonly name: string;
  readonly outcomes: readonly Outcome[];
  /** Why it was left out. */
  readonly missing?: string;
  readonly tookMs: number;
}

/** What became of a case, and why it failed. */
interface CaseResult extends TestResult {
  readonly error?: string;
}

async function runRow(
  name: string,
  run: () => Promise<Outcome[]>,
): Promise<Row> {
  const startMs = performance.now();
  const tookMs = () => performance.now() - startMs;
  try {
    return { name, outcomes: await run(), tookMs: tookMs() };
  } catch (error) {
    const outcome = { name: "the whole suite", tookMs: tookMs(), error: String(error) };
    return { name, outcomes: [outcome], tookMs: tookMs() };
  }
}

/** Runs a few at once, because each waits more than it computes; the results are in their order. */
async function runAll(runs: readonly (() => Promise<Row>)[]): Promise<Row[]> {
  const rows: Row[] = [];
  const pending = runs.entries();
  await Promise.all(Array.from({ length: ROWS_AT_ONCE }, async () => {
    for (const [index, run] of pending) rows[index] = await run();
  }));
  return rows;
}

async function runCandidate(
  { name, find }: Candidate,
  consumer: Consumer,
  world: World,
): Promise<Row> {
  const found = await find(consumer, world).catch((error) => String(error));
  if (typeof found === "string") return { name, outcomes: [], missing: found, tookMs: 0 };
  const lacks = Object.keys(found.lacks) as Feature[];
  for (const feature of lacks) console.log(`${name}: no ${feature}, as ${found.lacks[feature]}`);
  return await runRow(name, async () => await found.run(await world.contextFor(lacks)));
}

function printTable(rows: readonly Row[]): void {
  console.log(`\n${"runtime".padEnd(12)}${"passed".padStart(8)}${"failed".padStart(8)}       s`);
  for (const { name, outcomes, missing, tookMs } of rows) {
    const failed = outcomes.filter(({ error }) => error !== undefined).length;
    const cells = missing !== undefined ? "  left out" : [
      String(outcomes.length - failed).padStart(8),
      String(failed).padStart(8),
      (tookMs / 1_000).toFixed(1).padStart(8),
    ].join("");
    console.log(name.padEnd(12) + cells);
  }
  for (const { name, missing } of rows) {
    if (missing !== undefined) console.log(`${name} was left out: ${missing}`);
  }
}

/** What became of each case, and of cases that some runtimes ran and others did not. */
function resultsOf(rows: readonly Row[], runtimes: readonly Row[]): CaseResult[] {
  const names = new Set(runtimes.flatMap(({ outcomes }) => outcomes.map(({ name }) => name)));
  return rows.flatMap((row) => {
    const { name: place, outcomes, missing } = row;
    if (missing !== undefined) return [{ place, name: "the whole suite", outcome: "skipped" }];
    const ran = outcomes.map(({ name, error }): CaseResult => {
      return { place, name, error, outcome: error === undefined ? "passed" : "failed" };
    });
    if (!runtimes.includes(row)) return ran;
    const absent = [...names].filter((name) => !outcomes.some((outcome) => outcome.name === name));
    return [
      ...ran,
      ...absent.map((name): CaseResult => {
        return { place, name, error: "it did not run", outcome: "failed" };
      }),
    ];
  });
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    args: Deno.args,
    allowPositionals: true,
    options: { "junit-path": { type: "string" } },
  });
  await using consumer = await startConsumer();
  await using world = await startWorld();
  const isChosen = ({ name }: { readonly name: string }) =>
    positionals.length === 0 || positionals.includes(name);
  const candidates = CANDIDATES.filter(isChosen);
  const examples = [{ name: "examples" }].filter(isChosen);
  const rows = await runAll([ // what takes longest comes first
    ...examples.map(({ name }) => () => runRow(name, () => runExamples(consumer, world))),
    ...candidates.map((candidate) => () => runCandidate(candidate, consumer, world)),
  ]);
  const runtimes = rows.slice(examples.length);
  printTable(rows);
  const results = resultsOf(rows, runtimes);
  for (const { place, name, error } of results) {
    if (error !== undefined) console.log(`\nFAILED  ${place}: ${name}\n${error}`);
  }
  const file = values["junit-path"];
  if (file !== undefined) await Deno.writeTextFile(file, formatReport(results));
  const count = (wanted: TestResult["outcome"]) =>
    results.filter(({ outcome }) => outcome === wanted).length;
  const skipped = count("skipped") > 0 ? `, ${count("skipped")} skipped` : "";
  console.log(`\n${count("passed")} passed, ${count("failed")} failed${skipped}`);
  return count("failed") > 0 ? 1 : 0;
}

if (import.meta.main) {
  // Servers are stopped when the program unloads, which a signal alone would prevent.
  const signals: Deno.Signal[] = Deno.build.os === "windows" ? ["SIGINT"] : ["SIGINT", "SIGTERM"];
  const interrupt = () => Deno.exit(130);
  for (const signal of signals) Deno.addSignalListener(signal, interrupt);
  try {
    Deno.exitCode = await main();
  } finally {
    for (const signal of signals) Deno.removeSignalListener(signal, interrupt);
  }
}
