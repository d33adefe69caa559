/** Makes a failing plan smaller: what is left is needed for the failure. */
import {
  type ClientPlan,
  type Op,
  PLAIN_OP,
  type Plan,
  STEADY_CLIENT,
  STEADY_NETWORK,
  STEADY_PROCESS,
} from "./plan.ts";
import { type Outcome, run } from "./run.ts";

/** The most runs that shrinking may take. */
const RUNS_MAX = 600;

/** What is left. */
export interface Shrunk {
  readonly plan: Plan;
  readonly outcome: Outcome;
  /** How many runs it took. */
  readonly runs: number;
}

type Fails = (plan: Plan) => Promise<boolean>;

/**
 * Leaves out whatever is not needed for the failure, greedily: faults and ops, halves first, then
 * one by one; clients that do nothing; and then whatever is unusual about the machines, the network
 * and the ops.
 *
 * @param plan A plan whose run fails.
 * @returns The smallest plan found, and its run with a trace; `undefined` where the plan does not
 * fail.
 */
export async function shrink(plan: Plan): Promise<Shrunk | undefined> {
  const checker = (await run(plan)).violations[0]?.checker;
  if (checker === undefined) return undefined;
  let runs = 1;
  const fails = async (smaller: Plan) => {
    if (!isSound(smaller)) return false;
    if (++runs > RUNS_MAX) return false;
    try {
      return (await run(smaller)).violations.some((violation) => violation.checker === checker);
    } catch {
      return false;
    }
  };
  let smallest = await withoutFaults(plan, fails);
  for (let client = 0; client < plan.clients.length; client++) {
    const base = smallest;
    smallest = await without(
      base,
      base.clients[client].ops,
      fails,
      (ops) => ({ clients: base.clients.with(client, { ...base.clients[client], ops }) }),
    );
  }
  smallest = await withoutFaults(smallest, fails);
  smallest = await withoutIdlers(smallest, fails);
  for (const calmer of calmed(smallest)) {
    const next = calmer(smallest);
    if (JSON.stringify(next) === JSON.stringify(smallest)) continue; // it was calm already
    if (await fails(next)) smallest = next;
  }
  return { plan: smallest, outcome: await run(smallest, true), runs };
}

/** Whether the library takes its options: a TTL that was drawn longer is another fault. */
export function isSound({ clients }: Plan): boolean {
  return clients.every(({ restartGuardMs = Infinity, ops }) =>
    ops.every(({ ttlMs, extendTtlMs = 0, atLeastMs = 0 }) =>
      Math.max(ttlMs, extendTtlMs) <= restartGuardMs && atLeastMs <= ttlMs
    )
  );
}

/** Leaves out runs of items that are not needed: long ones first. */
async function without<Item>(
  plan: Plan,
  items: readonly Item[],
  fails: Fails,
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

function withoutFaults(plan: Plan, fails: Fails): Promise<Plan> {
  return without(plan, plan.faults, fails, (faults) => ({ faults }));
}

/** Leaves out clients that do nothing, from the last on, as long as no fault is about them. */
async function withoutIdlers(plan: Plan, fails: Fails): Promise<Plan> {
  for (let client = plan.clients.length - 1; client > 0; client--) {
    if (
      plan.clients[client].ops.length > 0 || plan.faults.some((fault) => concerns(fault, client))
    ) {
      return plan;
    }
    const fewer = { ...plan, clients: plan.clients.slice(0, client) };
    if (!await fails(fewer)) return plan;
    plan = fewer;
  }
  return plan;
}

function concerns(fault: Plan["faults"][number], client: number): boolean {
  return "client" in fault && fault.client === client ||
    "clients" in fault && fault.clients.includes(client);
}

/** Ways to take from a plan something that is unusual, each for itself. */
function calmed(plan: Plan): ((plan: Plan) => Plan)[] {
  const ways: ((plan: Plan) => Plan)[] = [
    (each) => ({ ...each, network: STEADY_NETWORK, process: STEADY_PROCESS }),
    (each) => ({ ...each, messages: undefined, login: undefined, left: [] }),
    (each) => ({ ...each, nodes: each.nodes.map(() => ({ rate: 1, wallOffsetMs: 0 })) }),
    ...fieldsOf(STEADY_NETWORK).map((network) => (each: Plan) => ({
      ...each,
      network: { ...each.network, ...network },
    })),
    ...fieldsOf(STEADY_PROCESS).map((process) => (each: Plan) => ({
      ...each,
      process: { ...each.process, ...process },
    })),
    (each) => ({ ...each, messages: undefined }),
    (each) => ({ ...each, login: undefined }),
    (each) => ({ ...each, gatherMs: undefined }),
    (each) => ({ ...each, left: [] }),
  ];
  plan.clients.forEach((client, index) => {
    ways.push(
      ...[STEADY_CLIENT, ...fieldsOf({ ...STEADY_CLIENT, ...unset(client) })].map((change) =>
        changeClient(index, (each) => ({ ...each, ...change }))
      ),
    );
    client.ops.forEach((op, place) => {
      ways.push(
        ...fieldsOf({ ...unset(op), ...PLAIN_OP, resources: op.resources }).map((change) =>
          changeClient(index, (each) => ({
            ...each,
            ops: each.ops.with(place, { ...each.ops[place], ...change } as Op),
          }))
        ),
      );
    });
  });
  return ways;
}

/** One part of an object for each of its fields. */
function fieldsOf<Fields extends object>(fields: Fields): Partial<Fields>[] {
  return Object.entries(fields).map(([name, value]) => ({ [name]: value }) as Partial<Fields>);
}

/** The fields that may be left out, left out. */
function unset(fields: ClientPlan | Op): object {
  const needed: readonly string[] = ["atMs", "ops", ...Object.keys(STEADY_CLIENT)];
  const names = Object.keys(fields).filter((name) => !needed.includes(name) && !(name in PLAIN_OP));
  return Object.fromEntries(names.map((name) => [name, undefined]));
}

function changeClient(index: number, change: (client: ClientPlan) => ClientPlan) {
  return (plan: Plan): Plan => ({
    ...plan,
    clients: plan.clients.with(index, change(plan.clients[index])),
  });
}
