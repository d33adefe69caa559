/**
 * From a run that fails to the smallest that still does: faults and ops are left out for as long as the same checker
 * complains.
 *
 * @module
 */
import type { ClientPlan, Plan } from "./plan.ts";
import { type Outcome, run } from "./run.ts";

/** The most runs that shrinking may take. */
const RUNS_MAX = 400;

/** What is left. */
export interface Shrunk {
  readonly plan: Plan;
  readonly outcome: Outcome;
  /** How many runs it took. */
  readonly runs: number;
}

/**
 * Leaves out whatever is not needed for the failure, greedily: halves first, then one by one.
 *
 * @param plan A plan whose run fails.
 * @returns The smallest plan found, and its run with a trace; `undefined` where the plan does not fail.
 */
export async function shrink(plan: Plan): Promise<Shrunk | undefined> {
  const checker = (await run(plan)).violations[0]?.checker;
  if (checker === undefined) return undefined;
  let runs = 1;
  const fails = async (smaller: Plan) => {
    if (++runs > RUNS_MAX) return false;
    try {
      return (await run(smaller)).violations.some((violation) => violation.checker === checker);
    } catch {
      return false;
    }
  };
  let smallest = plan;
  smallest = await without(smallest, smallest.faults, fails, (faults) => ({ faults }));
  for (let client = 0; client < plan.clients.length; client++) {
    const { ops } = smallest.clients[client];
    const base = smallest;
    smallest = await without(smallest, ops, fails, (kept) => withOps(base, client, { ops: kept }));
  }
  smallest = await without(smallest, smallest.faults, fails, (faults) => ({ faults }));
  return { plan: smallest, outcome: await run(smallest, true), runs };
}

/** Leaves out runs of items that are not needed: long ones first. */
async function without<Item>(
  plan: Plan,
  items: readonly Item[],
  fails: (plan: Plan) => Promise<boolean>,
  change: (items: readonly Item[]) => Partial<Plan>,
): Promise<Plan> {
  let kept = [...items];
  for (let length = kept.length; length >= 1; length = Math.floor(length / 2)) {
    for (let from = 0; from < kept.length;) {
      const fewer = [...kept.slice(0, from), ...kept.slice(from + length)];
      if (await fails({ ...plan, ...change(fewer) })) kept = fewer;
      else from += length;
    }
  }
  return kept.length === items.length ? plan : { ...plan, ...change(kept) };
}

function withOps(plan: Plan, client: number, { ops }: Pick<ClientPlan, "ops">): Partial<Plan> {
  const clients = plan.clients.map((other, index) => index === client ? { ...other, ops } : other);
  return { clients };
}
