/**
 * Plans in which a node is replaced while clients lock: processes with one list end, and processes
 * with the next begin, one after the other, as in a deployment.
 */
import { type Fault, type Op, PLAIN_OP, type Plan, STEADY_CLIENT, STEADY_PROCESS } from "./plan.ts";
import { FOR_GOOD_MS } from "./scenarios_replacing.ts";
import { SeededRandom } from "./seeded_random.ts";
import { FAULT_KINDS, type FaultKind, faultPlans, OUTSIDE_KINDS } from "./swarm.ts";

/** The ways of the manual, with which no two clients may ever hold one lock. */
export const SAFE_WAYS = [
  "stop, wait, add",
  "stop, add with the guard",
  "remove, wait, add",
] as const;
/** Ways with which two may. */
export const UNSAFE_WAYS = ["stop, add", "remove, add", "swap"] as const;
/** How a node is replaced. */
export type Way = typeof SAFE_WAYS[number] | typeof UNSAFE_WAYS[number];

/** The longest TTL of all clients, and the pause that the manual asks for, in milliseconds. */
const TTL_MS = 2_000;
const WAIT_MS = 1.1 * TTL_MS;
/**
 * How long everything runs with the old list, how long a deployment takes, and how long the new
 * list runs after it.
 */
const BEFORE_MS = 3_000;
const DEPLOYMENT_MS = 4_000;
const AFTER_MS = 2_000;
/**
 * How far clocks are apart: less than the pause without the second by which clients propose
 * counters ahead.
 */
const CLOCKS_APART_MS = 1_000;
/** How many processes run at a time. */
const PROCESSES = 3;
/** How likely a process cannot reach some minority of its nodes for all its life. */
const CUT_OFF_CHANCE = 0.5;

/**
 * What goes wrong besides: all that the assumptions allow; tokens rise only as long as clocks are
 * not wrong.
 */
const KINDS = FAULT_KINDS.filter((kind) => !OUTSIDE_KINDS.includes(kind) && kind !== "foreign");
const CLOCK_KINDS: readonly FaultKind[] = ["suspend", "wall-step-ahead", "wall-step-back"];

/** A list of nodes, and when the processes with it begin and end, one by one. */
interface Stage {
  readonly nodes: readonly number[];
  readonly beginMs: readonly number[];
  readonly endMs: readonly number[];
}

/** Makes the plan of one seed. */
export function replacementPlan(seed: number, way: Way): Plan {
  const random = new SeededRandom(`${seed} replacement`);
  const count = random.pick([3, 5]);
  const nodes = count + 1;
  const [old, added] = [count - 1, count];
  const stages = drawStages(random, way, count);
  const healAtMs = Math.max(...stages.at(-1)!.beginMs) + AFTER_MS;
  const share = random.pick([0, 0.15, 0.35]);
  const fencing = random.chance(0.5);
  const chosen = KINDS.filter((kind) =>
    random.chance(share) && !(fencing && CLOCK_KINDS.includes(kind))
  );
  const lives = stages.flatMap(({ nodes, beginMs, endMs }) =>
    beginMs.map((fromMs, index) => ({ nodes, fromMs, toMs: endMs[index] }))
  );
  const stopped = way.startsWith("stop");
  const drawn = faultPlans(random, new Set(chosen), { nodes, clients: lives.length, healAtMs })
    // What has stopped for good neither crashes again nor comes back from it.
    .filter((fault) => !stopped || !("node" in fault && fault.node === old));
  const minority = Math.floor(stages[0].nodes.length / 2);
  const cutOff = lives.flatMap(({ nodes, fromMs, toMs }, client): Fault[] =>
    !random.chance(CUT_OFF_CHANCE) ? [] : [{
      kind: "partition",
      clients: [client],
      nodes: random.some(nodes).slice(0, Math.min(minority, Math.floor((nodes.length - 1) / 2))),
      directions: ["requests", "replies"],
      atMs: fromMs,
      forMs: Math.min(toMs, healAtMs) - fromMs,
    }]
  );
  const replaced: Fault[] = [
    ...(stopped ? [stopOf(old)] : []),
    ...(way.endsWith("guard") ? [{ kind: "flush", node: added, atMs: BEFORE_MS } as const] : []),
  ];
  return {
    seed: `${seed} ${way}`,
    nodes: Array.from({ length: nodes }, () => ({
      rate: 1,
      wallOffsetMs: random.integer(0, CLOCKS_APART_MS),
    })),
    clients: lives.map(({ nodes, fromMs, toMs }) => ({
      ...STEADY_CLIENT,
      wallOffsetMs: random.integer(0, CLOCKS_APART_MS),
      nodes,
      fencing,
      notify: random.chance(0.8),
      restartGuardMs: way.endsWith("guard") ? TTL_MS : undefined,
      ops: drawOps(random, fromMs, Math.min(toMs, healAtMs), toMs < Infinity),
    })),
    faults: [...drawn, ...cutOff, ...replaced].sort((one, other) => one.atMs - other.atMs),
    driftFactor: 0.01,
    network: {
      delayMs: random.pick([0.3, 1, 5]),
      jitterMs: random.pick([0, 0.5, 3]),
      splitChance: 0,
      partialWriteChance: 0,
      slowWriteChance: 0,
    },
    process: STEADY_PROCESS,
    healAtMs,
    left: stopped ? [old] : [],
    leftHow: "crashed",
  };
}

function stopOf(node: number): Fault {
  return { kind: "crash", node, data: "all", silent: false, atMs: BEFORE_MS, forMs: FOR_GOOD_MS };
}

/** The lists one after the other, and when each process changes from one to the next. */
function drawStages(random: SeededRandom, way: Way, count: number): Stage[] {
  const common = Array.from({ length: count - 1 }, (_, index) => index);
  const old = [...common, count - 1];
  const added = [...common, count];
  const lists = way.startsWith("remove") ? [old, common, added] : [old, added];
  const waits = way.includes("wait");
  const stages: Stage[] = [];
  let beginMs = new Array<number>(PROCESSES).fill(0);
  let deployMs = BEFORE_MS + (way.startsWith("stop") && waits ? WAIT_MS : 0);
  for (const [index, nodes] of lists.entries()) {
    const isLast = index === lists.length - 1;
    const endMs = beginMs.map((fromMs) => {
      if (isLast) return Infinity;
      return Math.max(fromMs, random.integer(deployMs, deployMs + DEPLOYMENT_MS));
    });
    stages.push({ nodes, beginMs, endMs });
    beginMs = endMs;
    // Who does not wait deploys the third list while processes with the first still run.
    deployMs = waits ? Math.max(...endMs) + WAIT_MS : Math.min(...endMs);
  }
  return stages;
}

/** What a process does from its beginning to its end. */
function drawOps(random: SeededRandom, fromMs: number, toMs: number, ends: boolean): Op[] {
  const ops: Op[] = [];
  for (let atMs = fromMs; atMs < toMs; atMs += random.integer(50, 1_500)) {
    const ttlMs = random.integer(TTL_MS / 4, TTL_MS);
    ops.push({
      ...PLAIN_OP,
      atMs,
      ttlMs,
      waitMs: random.pick([0, 500, 2_000]),
      holdMs: random.pick([10, ttlMs / 2, ttlMs * 1.5]),
      autoExtend: random.chance(0.5),
      extensionsMax: 5,
      end: random.pick(["release", "release", "abandon"]),
    });
  }
  return ends ? [...ops, { ...PLAIN_OP, kind: "close", atMs: toMs }] : ops;
}
