/**
 * Runs seeds and prints what came of them as one line of JSON. It stands alone, so that it can run
 * in a scratch copy of the sources, and needs no permission.
 *
 * Arguments: first seed, end of the seeds, how many seeds with violations are enough, milliseconds
 * at the most, the mark of the mutation.
 */
import process from "node:process";
import { run } from "./run.ts";
import { complaint, type Scenario } from "./scenario.ts";
import { SCENARIOS } from "./scenarios.ts";
import { swarmPlan } from "./swarm.ts";

/** What came of some seeds. */
export interface SeedsOutcome {
  /** How many were run. */
  readonly seeds: number;
  /** Those with violations. */
  readonly caught: readonly (string | number)[];
  /**
   * The named scenarios that went wrong: those that are there for the mutation, or all if nothing
   * else showed anything.
   */
  readonly scenarios: readonly string[];
  /** How often each checker spoke. */
  readonly checkers: Readonly<Record<string, number>>;
  /** What the first violation was. */
  readonly first: string;
}

/** Runs seeds until so many showed a violation, or the time is over. */
async function runSeeds(from: number, to: number, enough: number, limitMs: number) {
  const endMs = performance.now() + limitMs;
  const caught: number[] = [];
  const checkers: Record<string, number> = {};
  let first = "";
  let seed = from;
  for (; seed < to && caught.length < enough && performance.now() < endMs; seed++) {
    const violations = await violationsOf(seed);
    if (violations.length === 0) continue;
    caught.push(seed);
    first ||= `${violations[0].checker}: ${violations[0].what}`;
    for (const checker of new Set(violations.map((violation) => violation.checker))) {
      checkers[checker] = (checkers[checker] ?? 0) + 1;
    }
  }
  return { seeds: seed - from, caught, checkers, first };
}

/** What is broken badly enough may throw where nothing should. */
async function violationsOf(seed: number): Promise<readonly { checker: string; what: string }[]> {
  try {
    return (await run(swarmPlan(seed))).violations;
  } catch (error) {
    if (error instanceof ReferenceError) throw error; // not broken on purpose, but by the operator
    return [{ checker: "error", what: String(error) }];
  }
}

/**
 * The named scenarios that do not go as they should: what takes two rare things at once is one of
 * them.
 */
async function wrongScenarios(scenarios: readonly Scenario[]): Promise<string[]> {
  const wrong: string[] = [];
  for (const scenario of scenarios) {
    const complained = await run(scenario.plan).then(
      (outcome) => complaint(scenario, outcome),
      (error) => String(error),
    );
    if (complained !== undefined) wrong.push(scenario.id);
  }
  return wrong;
}

const [from, to, enough, limitMs] = process.argv.slice(2).map(Number);
const mark = process.argv[6];
const outcome = await runSeeds(from, to, enough, limitMs);
let scenarios = await wrongScenarios(SCENARIOS.filter(({ catches }) => catches.includes(mark)));
if (outcome.caught.length + scenarios.length === 0) scenarios = await wrongScenarios(SCENARIOS);
console.log(JSON.stringify({ ...outcome, scenarios } satisfies SeedsOutcome));
process.exit(0);
