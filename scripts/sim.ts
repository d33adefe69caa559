/**
 * Simulates the lock on a faulty network, seed by seed; `deno task sim --help` says how.
 *
 * A seed decides everything: what goes wrong, when, and what the clients want meanwhile. The same
 * seed makes the same run, line by line.
 *
 * @module
 */
import { readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { parseArgs } from "node:util";
import { describeFault } from "../tests/simulation/support/faults.ts";
import type { Plan } from "../tests/simulation/support/plan.ts";
import { type Outcome, run } from "../tests/simulation/support/run.ts";
import { complaint } from "../tests/simulation/support/scenario.ts";
import { SCENARIOS } from "../tests/simulation/support/scenarios.ts";
import { shrink } from "../tests/simulation/support/shrink.ts";
import { FAULT_KINDS, swarmPlan } from "../tests/simulation/support/swarm.ts";
import { timelineHtml } from "../tests/simulation/support/timeline.ts";
import { limitMs, seedRange, SEEDS, threadCount } from "./sim/limits.ts";
import type { SeedTask } from "./sim/seed_thread.ts";
import { runInThreads } from "./sim/seed_threads.ts";

const HOUR_MS = 3_600_000;
/** How often progress is printed, in milliseconds. */
const PROGRESS_MS = 5_000;
/** How many failing seeds are shown before the run ends. */
const FAILURES_MAX = 5;
/** How many seeds each mutation is tried on, and for how long, in milliseconds. */
const MUTATION_SEEDS = 300;
/** How many of them have to notice before the next mutation is tried. */
const MUTATION_ENOUGH = 5;
const MUTATION_MS = 20_000;

const HELP = `Usage: deno task sim [options]

  --seed <seed>      replay one seed, with everything that happens
  --seeds <n|a..b>   run that many seeds, or those from a up to b (default ${SEEDS})
  --hours <hours>    run until so many hours are simulated
  --threads <n>      run so many seeds at the same time (default: one on each core)
  --faults <a,b>     choose from these kinds of faults only
  --scenarios        run the named scenarios; with --scenario <text> those that match
  --mutations        break the library on purpose, way by way, and count the seeds that notice
  --shrink           with --seed or --plan: leave out whatever the failure does not need
  --save <file>      with --seed or --plan: write the plan to a file, shrunk if --shrink is there
  --plan <file>      replay a plan from such a file
  --html <file>      with --seed or --scenario: draw who held what when
  --help             show this text

Kinds of faults: ${FAULT_KINDS.join(", ")}`;

/** What the command line asks for. */
type Choice = NonNullable<ReturnType<typeof parseChoice>>;

function parseChoice(args: string[]) {
  const { values } = parseArgs({
    args,
    options: {
      seed: { type: "string" },
      seeds: { type: "string" },
      hours: { type: "string" },
      threads: { type: "string" },
      faults: { type: "string" },
      scenario: { type: "string" },
      scenarios: { type: "boolean" },
      mutations: { type: "boolean" },
      shrink: { type: "boolean" },
      save: { type: "string" },
      plan: { type: "string" },
      html: { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help) {
    console.log(HELP);
    return undefined;
  }
  const kinds = values.faults?.split(",").map((name) => {
    const kind = FAULT_KINDS.find((known) => known === name);
    if (!kind) throw new TypeError(`There is no fault "${name}"\n\n${HELP}`);
    return kind;
  });
  return { ...values, kinds };
}

/** Runs one plan and prints everything. */
async function replay(plan: Plan, choice: Choice): Promise<number> {
  const shrunk = choice.shrink ? await shrink(plan) : undefined;
  const outcome = shrunk?.outcome ?? await run(plan, true);
  printRun(outcome);
  if (choice.html) draw(outcome, `Seed ${plan.seed}`, choice.html);
  if (choice.save) {
    writeFileSync(choice.save, JSON.stringify(outcome.plan, undefined, 2));
    console.log(`The plan is in ${choice.save}`);
  }
  return outcome.violations.length > 0 ? 1 : 0;
}

function planOf(seed: string, { kinds }: Choice): Plan {
  return swarmPlan(seed, { kinds });
}

function printRun({ plan, world, violations, excused }: Outcome): void {
  const { nodes, clients, driftFactor, login } = plan;
  console.log(
    `${nodes.length} nodes, ${clients.length} clients, drift factor ${driftFactor}` +
      (login ? `, with a login (${login})` : ""),
  );
  for (const fault of plan.faults) console.log(`  ${fault.atMs} ms: ${describeFault(fault)}`);
  console.log(world.trace.text);
  for (const { atMs, checker, what } of excused) {
    console.log(`Expected at ${atMs.toFixed(3)} ms: ${checker}: ${what}`);
  }
  for (const { atMs, checker, what } of violations) {
    console.log(`VIOLATION at ${atMs.toFixed(3)} ms: ${checker}: ${what}`);
  }
}

function draw(outcome: Outcome, title: string, file: string): void {
  writeFileSync(file, timelineHtml(outcome, title));
  console.log(`Drawn to ${file}`);
}

/** Sums over seeds. */
interface Totals {
  seeds: number;
  simulatedMs: number;
  locks: number;
  faults: number;
  excused: number;
  failed: number[];
}

/** Runs seeds until there are enough of them, or of failures. */
async function runSeeds(choice: Choice): Promise<number> {
  const untilMs = limitMs(choice);
  const totals: Totals = { seeds: 0, simulatedMs: 0, locks: 0, faults: 0, excused: 0, failed: [] };
  const startMs = performance.now();
  let printedMs = startMs;
  await runInThreads(threadCount(choice), tasksOf(choice), (summary) => {
    totals.seeds++;
    totals.simulatedMs += summary.simulatedMs;
    totals.locks += summary.locks;
    totals.faults += summary.faults;
    totals.excused += Number(summary.excused);
    if (summary.failed) {
      totals.failed.push(summary.seed);
      console.log(`Seed ${summary.seed} fails`);
    }
    if (performance.now() - printedMs > PROGRESS_MS) {
      printedMs = performance.now();
      printTotals(totals, printedMs - startMs);
    }
    return totals.failed.length < FAILURES_MAX && totals.simulatedMs < untilMs;
  });
  printTotals(totals, performance.now() - startMs);
  totals.failed.sort((one, other) => one - other);
  for (const seed of totals.failed) {
    await printFailure(await run(planOf(String(seed), choice)), choice);
  }
  if (totals.failed.length > 0) console.log(`Failed: ${totals.failed.join(", ")}`);
  return totals.failed.length > 0 ? 1 : 0;
}

function* tasksOf(choice: Choice): Generator<SeedTask> {
  const { from, to } = seedRange(choice);
  for (let seed = from; seed < to; seed++) yield { seed, kinds: choice.kinds };
}

function printTotals(totals: Totals, tookMs: number): void {
  const { seeds, simulatedMs, locks, faults, excused, failed } = totals;
  const seconds = tookMs / 1_000;
  console.log(
    `${seeds} seeds, ${(seeds / seconds).toFixed(1)} a second; ` +
      `${(simulatedMs / HOUR_MS).toFixed(2)} hours, ${
        (simulatedMs / HOUR_MS / seconds).toFixed(2)
      } a second; ` +
      `${locks} locks, ${faults} faults; ${failed.length} failed, ` +
      `${excused} with violations to be expected`,
  );
}

/** Shows as little of a failure as is needed to understand it, and how to see it again. */
async function printFailure({ plan, violations }: Outcome, choice: Choice): Promise<void> {
  const [{ atMs, checker, what }] = violations;
  console.log(`\nSeed ${plan.seed} fails at ${atMs.toFixed(3)} ms: ${checker}: ${what}`);
  const shrunk = await shrink(plan);
  if (shrunk) {
    console.log(`What is needed for it (found in ${shrunk.runs} runs):`);
    printRun(shrunk.outcome);
  }
  const faults = choice.kinds ? ` --faults ${choice.kinds.join(",")}` : "";
  console.log(
    `Replay it: deno task sim --seed ${plan.seed}${faults} --shrink --html run.html --save plan.json\n`,
  );
}

async function runScenarios({ scenario = "", html }: Choice): Promise<number> {
  const chosen = SCENARIOS.filter(({ id, name }) => `${id} ${name}`.includes(scenario));
  let failed = 0;
  for (const each of chosen) {
    const outcome = await run(each.plan, html !== undefined);
    const wrong = complaint(each, outcome);
    failed += Number(wrong !== undefined);
    console.log(`${wrong ? "FAILED" : "ok    "} ${each.id.padEnd(3)} ${each.name}`);
    if (each.outside) console.log(`           as expected, ${each.outside} finds fault`);
    if (wrong) console.log(`           ${wrong}`);
    if (html && each === chosen[0]) draw(outcome, `${each.id}: ${each.name}`, html);
  }
  console.log(`${chosen.length} scenarios, ${failed} failed`);
  return failed > 0 || chosen.length === 0 ? 1 : 0;
}

async function runMutations(): Promise<number> {
  // Loaded here because they load a parser of TypeScript.
  const { runMutation } = await import("../tests/simulation/support/mutation_run.ts");
  const { MUTATIONS } = await import("../tests/simulation/support/mutations.ts");
  const range = { from: 0, to: MUTATION_SEEDS, enough: MUTATION_ENOUGH, limitMs: MUTATION_MS };
  let missed = 0;
  console.log("caught by   broken on purpose");
  for (const mutation of MUTATIONS) {
    const { seeds, caught, scenarios, checkers } = await runMutation(mutation, range);
    const names = Object.entries(checkers).sort(([, one], [, other]) => other - one)
      .map(([checker, count]) => `${checker} ${count}`);
    if (scenarios.length > 0) names.push(`scenario ${[...new Set(scenarios)].join(" ")}`);
    const bites = SCENARIOS.every(({ id, catches }) =>
      !catches.includes(mutation.mark) || scenarios.includes(id)
    );
    if (!bites) names.push("its own scenario did NOT notice");
    missed += Number(!bites || names.length === 0);
    const share = `${caught.length} of ${seeds}`.padEnd(11);
    console.log(`${share} ${mutation.name} (${names.join(", ") || "MISSED"})`);
  }
  const sound = await runMutation(undefined, { ...range, enough: 1 });
  console.log(`${sound.caught.length} of ${sound.seeds}`.padEnd(11), "nothing");
  console.log(`${MUTATIONS.length - missed} of ${MUTATIONS.length} mutations are caught`);
  return missed + sound.caught.length > 0 ? 1 : 0;
}

async function main(): Promise<number> {
  const choice = parseChoice(process.argv.slice(2));
  if (!choice) return 0;
  if (choice.mutations) return await runMutations();
  if (choice.scenarios || choice.scenario !== undefined) return await runScenarios(choice);
  if (choice.plan !== undefined) {
    return await replay(JSON.parse(readFileSync(choice.plan, "utf8")), choice);
  }
  if (choice.seed !== undefined) return await replay(planOf(choice.seed, choice), choice);
  return await runSeeds(choice);
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof TypeError)) throw error;
  console.error(error.message);
  process.exit(2); // threads that were started would keep it alive
}
