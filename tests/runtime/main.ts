/**
 * Runs the one suite on every runtime that is there or can be fetched, and the examples each on its own, on
 * redis-server processes of this run. Prints a table and ends with status 1 if anything failed. Arguments, if any,
 * name the runtimes to run: `Deno "Node 22" workerd`, or `examples`.
 *
 * @module
 */

import { type Consumer, startConsumer } from "../../scripts/package/consumer.ts";
import type { Feature, Outcome } from "./context.ts";
import { runExamples } from "./examples.ts";
import { type Candidate, CANDIDATES } from "./runtimes.ts";
import { startWorld, type World } from "./world.ts";

/** What came of one runtime, or of the examples. */
interface Row {
  readonly name: string;
  readonly outcomes: readonly Outcome[];
  /** Why it was left out. */
  readonly missing?: string;
  readonly tookMs: number;
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

async function runCandidate(
  { name, find }: Candidate,
  consumer: Consumer,
  world: World,
): Promise<Row> {
  const found = await find(consumer, world).catch((error) => String(error));
  if (typeof found === "string") return { name, outcomes: [], missing: found, tookMs: 0 };
  const lacks = Object.keys(found.lacks) as Feature[];
  for (const feature of lacks) console.log(`${name}: no ${feature}, as ${found.lacks[feature]}`);
  return await runRow(name, () => found.run(world.contextFor(lacks)));
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

/** Prints what failed, and cases that some runtimes ran and others did not. */
function printFailures(rows: readonly Row[], runtimes: readonly Row[]): number {
  let failures = 0;
  for (const { name, outcomes } of rows) {
    for (const { name: test, error } of outcomes) {
      if (error === undefined) continue;
      failures++;
      console.log(`\nFAILED  ${name}: ${test}\n${error}`);
    }
  }
  const names = new Set(runtimes.flatMap(({ outcomes }) => outcomes.map(({ name }) => name)));
  for (const { name, outcomes } of runtimes) {
    const ran = new Set(outcomes.map((outcome) => outcome.name));
    for (const test of names) {
      if (ran.has(test)) continue;
      failures++;
      console.log(`\nFAILED  ${name}: ${test}\nit did not run`);
    }
  }
  return failures;
}

async function main(): Promise<number> {
  await using consumer = await startConsumer();
  await using world = await startWorld();
  const runtimes: Row[] = [];
  const isChosen = (name: string) => Deno.args.length === 0 || Deno.args.includes(name);
  for (const candidate of CANDIDATES) {
    if (isChosen(candidate.name)) runtimes.push(await runCandidate(candidate, consumer, world));
  }
  const rows = [...runtimes];
  if (isChosen("examples")) rows.push(await runRow("examples", () => runExamples(consumer, world)));
  printTable(rows);
  const failed = printFailures(rows, runtimes.filter(({ missing }) => missing === undefined));
  const passed = rows.flatMap(({ outcomes }) => outcomes)
    .filter(({ error }) => error === undefined).length;
  const skipped = runtimes.filter(({ missing }) => missing !== undefined).length;
  const skippedPart = skipped > 0 ? `, ${skipped} skipped` : "";
  console.log(`\n${passed} passed, ${failed} failed${skippedPart}`);
  return failed > 0 ? 1 : 0;
}

if (import.meta.main) {
  // Servers are stopped by what hears the program unload, which a signal alone would keep from happening.
  const signals: Deno.Signal[] = Deno.build.os === "windows" ? ["SIGINT"] : ["SIGINT", "SIGTERM"];
  const interrupt = () => Deno.exit(130);
  for (const signal of signals) Deno.addSignalListener(signal, interrupt);
  try {
    Deno.exitCode = await main();
  } finally {
    for (const signal of signals) Deno.removeSignalListener(signal, interrupt);
  }
}
