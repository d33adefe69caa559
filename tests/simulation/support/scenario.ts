/** What a named scenario is, and functions to write one in a few lines. */
import {
  type ClientPlan,
  type Fault,
  type Op,
  PLAIN_OP,
  type Plan,
  STEADY_CLIENT,
  STEADY_NETWORK,
  STEADY_PROCESS,
} from "./plan.ts";
import type { Outcome } from "./run.ts";
import type { Held } from "./sim_client.ts";

/** A plan with a name, and what must come of it beside that no checker finds fault. */
export interface Scenario {
  /** The case it shows. */
  readonly id: string;
  /** What happens, as a sentence. */
  readonly name: string;
  readonly plan: Plan;
  /** The checker that must find fault, as the scenario leaves what the library assumes. */
  readonly outside?: string;
  /** Says what is missing from the outcome, if anything is. */
  readonly missing?: (outcome: Outcome) => string | undefined;
  /** The marks of the mutations with which it goes wrong. */
  readonly catches: readonly string[];
}

/** What is unusual about a scenario; everything else is as steady as can be. */
export interface ScenarioDetails {
  /** How many nodes; left out: three. */
  readonly nodes?: number;
  /** What each client does. */
  readonly clients: readonly (readonly Partial<Op>[])[];
  readonly faults?: readonly Fault[];
  readonly nodeTimeoutMs?: number;
  readonly login?: Plan["login"];
  readonly gatherMs?: number;
  readonly roundsMax?: number;
  readonly process?: Partial<Plan["process"]>;
  readonly network?: Partial<Plan["network"]>;
  readonly messages?: Plan["messages"];
  readonly healAtMs?: number;
  /**
   * How far the clients' wall clocks are ahead, one by one, and those of the nodes, in
   * milliseconds.
   */
  readonly clientsAheadMs?: readonly number[];
  readonly nodesAheadMs?: readonly number[];
  /**
   * How much longer the clients' ways to the nodes are, one by one, in milliseconds; left out: 0.
   */
  readonly distancesMs?: readonly number[];
  /** The nodes of each client's list; left out: all. */
  readonly lists?: readonly (readonly number[])[];
  /** How fast the clients' clocks run. */
  readonly clocks?: Partial<Pick<ClientPlan, "monotonicRate" | "wallRate">>;
  /** Options of all clients. */
  readonly options?: Partial<
    Pick<ClientPlan, "fencing" | "notify" | "restartGuardMs" | "cooldownMs" | "retryDelayMs">
  >;
  readonly outside?: string;
  readonly missing?: Scenario["missing"];
  readonly catches?: readonly string[];
}

/** Makes a scenario of what is unusual about it. */
export function scenario(id: string, name: string, details: ScenarioDetails): Scenario {
  const { nodes = 3, clients, faults = [], nodeTimeoutMs, outside, missing, catches = [] } =
    details;
  const plan: Plan = {
    seed: `${id} ${name}`,
    nodes: Array.from({ length: nodes }, (_, index) => {
      return { rate: 1, wallOffsetMs: details.nodesAheadMs?.[index] ?? 0 };
    }),
    clients: clients.map((ops, index) => ({
      ...STEADY_CLIENT,
      wallOffsetMs: details.clientsAheadMs?.[index] ?? 0,
      ...details.clocks,
      ...details.options,
      nodes: details.lists?.[index],
      distanceMs: details.distancesMs?.[index],
      nodeTimeoutMs,
      ops: ops.map((op) => ({ ...PLAIN_OP, atMs: 0, ...op })),
    })),
    faults,
    driftFactor: 0.01,
    login: details.login,
    gatherMs: details.gatherMs,
    roundsMax: details.roundsMax,
    network: { ...STEADY_NETWORK, ...details.network },
    process: { ...STEADY_PROCESS, ...details.process },
    messages: details.messages,
    healAtMs: details.healAtMs ?? 10_000,
    left: [],
    leftHow: "crashed",
  };
  return { id, name, plan, outside, missing, catches };
}

/** The locks that a client had in hand before everything was mended, in order. */
export function locksOf({ world, plan }: Outcome, client: number): Held[] {
  return world.checkers.all.filter((held) =>
    held.client.index === client && held.sinceMs < plan.healAtMs
  );
}

/** For how long a client held its locks, one after the other, in milliseconds of true time. */
export function heldMs(outcome: Outcome, client: number): number[] {
  return locksOf(outcome, client).map(({ spans }) =>
    spans.reduce((total, [from, to]) => total + to - from, 0)
  );
}

/** Complains unless a client had that many locks. */
export function expectLocks(client: number, count: number): NonNullable<Scenario["missing"]> {
  return (outcome) => {
    const had = locksOf(outcome, client).length;
    return had === count ? undefined : `client-${client + 1} had ${had} locks, expected ${count}`;
  };
}

/** Complains unless a client held its first lock for a time between two bounds. */
export function expectHeldMs(
  client: number,
  minMs: number,
  maxMs: number,
): NonNullable<Scenario["missing"]> {
  return (outcome) => {
    const [firstMs = 0] = heldMs(outcome, client);
    if (firstMs >= minMs && firstMs <= maxMs) return undefined;
    return `client-${
      client + 1
    } held its first lock for ${firstMs} ms, expected ${minMs} to ${maxMs}`;
  };
}

/** Complains unless the clients had their first locks in this order. */
export function expectOrder(...clients: readonly number[]): NonNullable<Scenario["missing"]> {
  return (outcome) => {
    const since = (client: number) => locksOf(outcome, client)[0]?.sinceMs ?? Infinity;
    const order = [...clients].sort((one, other) => since(one) - since(other));
    if (order.every((client, place) => client === clients[place])) return undefined;
    return `the locks went to ${order.map((client) => `client-${client + 1}`).join(", ")}`;
  };
}

/** Complains unless all of several are content. */
export function all(
  ...several: readonly NonNullable<Scenario["missing"]>[]
): NonNullable<Scenario["missing"]> {
  return (outcome) => several.map((missing) => missing(outcome)).find((text) => text !== undefined);
}

/** Complains unless a lock was in hand so soon after its op began. */
export function expectSoon(
  client: number,
  fromMs: number,
  withinMs: number,
): NonNullable<Scenario["missing"]> {
  return (outcome) => {
    const [first] = locksOf(outcome, client);
    const tookMs = first ? first.sinceMs - fromMs : Infinity;
    return tookMs >= 0 && tookMs <= withinMs
      ? undefined
      : `client-${
        client + 1
      } had its lock ${tookMs} ms after ${fromMs}, expected within ${withinMs}`;
  };
}

/** What happened to a scenario: `undefined` where it is as it should be. */
export function complaint({ outside, missing }: Scenario, outcome: Outcome): string | undefined {
  const [violation] = outcome.violations;
  if (violation) return `${violation.checker} at ${violation.atMs} ms: ${violation.what}`;
  if (outside === undefined && outcome.excused.length > 0) {
    return `${outcome.excused[0].checker} found fault inside the assumptions: ${
      outcome.excused[0].what
    }`;
  }
  if (outside !== undefined && !outcome.excused.some(({ checker }) => checker === outside)) {
    return `the checker "${outside}" saw nothing`;
  }
  return missing?.(outcome);
}
