/**
 * Swarm testing: one seed decides everything, also which kinds of faults there are at all, so that
 * each kind is met alone, in any company, and in any strength.
 */
import {
  type ClientPlan,
  type Fault,
  type NodePlan,
  type Op,
  PLAIN_OP,
  type Plan,
} from "./plan.ts";
import { SeededRandom } from "./seeded_random.ts";
import {
  type Crowd,
  crowdIn,
  fullAndDemoted,
  lostExtensions,
  missedAdoption,
  sleepsAndLosses,
  withManners,
} from "./swarm_callers.ts";

/** Every kind of fault that swarms choose from. */
export const FAULT_KINDS = [
  "slow",
  "partition",
  "cut",
  "half-open",
  "replay",
  "unconnectable",
  "crash",
  "forget",
  "hang",
  "flush-scripts",
  "errors",
  "foreign",
  "node-step",
  "node-rate",
  "pause",
  "suspend",
  "wall-step-ahead",
  "wall-step-back",
  "die",
  "stalls",
  "skewed-rates",
] as const;

/** See {@linkcode FAULT_KINDS}. */
export type FaultKind = typeof FAULT_KINDS[number];

/** Kinds that leave what the library assumes: nodes that forget, clocks that jump or run wild. */
export const OUTSIDE_KINDS: readonly FaultKind[] = ["forget", "node-step", "node-rate"];

/** What is fixed whatever the seed. */
export interface SwarmOptions {
  /** The kinds to choose from. */
  readonly kinds?: readonly FaultKind[];
  /** Whether there may be a crowd; left out: there may. */
  readonly crowd?: boolean;
}

/** How often something goes wrong while clients crowd. */
const TROUBLES_MAX = 2;
/** What the guard does not help against: it goes by these clocks. */
const CLOCK_KINDS: readonly string[] = ["node-step", "node-rate"];
const YEAR_MS = 365 * 24 * 60 * 60 * 1_000;
/** As long as the locks that demand progress in the end, in milliseconds. */
const GUARD_MS_MIN = 5_000;
/** Longer locks would have a run wait too long for nodes that are kept out, in milliseconds. */
const GUARDED_TTL_MS_MAX = 15_000;

const ERRORS: readonly { text: string; commands: readonly string[] }[] = [
  { text: "OOM command not allowed when used memory > 'maxmemory'.", commands: ["SET"] },
  { text: "LOADING Redis is loading the dataset in memory", commands: ["SET", "EVAL", "EVALSHA"] },
  { text: "BUSY Redis is busy running a script.", commands: ["SET", "EVAL", "EVALSHA", "GET"] },
  { text: "READONLY You can't write against a read only replica.", commands: ["SET"] },
  { text: "MISCONF Redis is configured to save RDB snapshots", commands: ["SET", "EVALSHA"] },
  { text: "NOPERM this user has no permissions to run 'evalsha'", commands: ["EVALSHA", "EVAL"] },
  { text: "ERR max number of clients reached", commands: ["AUTH", "SELECT", "SET"] },
  { text: "WRONGPASS invalid username-password pair or user is disabled.", commands: ["AUTH"] },
];

const LOGINS = ["password", "database", "open"] as const;
/** Makes the plan of one seed. */
export function swarmPlan(
  seed: string | number,
  { kinds = FAULT_KINDS, crowd = true }: SwarmOptions = {},
): Plan {
  const random = new SeededRandom(`${seed} plan`);
  const share = random.pick([0.15, 0.35, 0.6]);
  const chosen = new Set(kinds.filter(() => random.chance(share)));
  const driftFactor = random.pick([0.01, 0.01, 0.05, 0.002]);
  const nodes = random.pick([1, 2, 3, 3, 3, 4, 5, 5, 6, 7]);
  const healAtMs = random.integer(4_000, 20_000);
  const stalls = chosen.has("stalls");
  const rate = () =>
    chosen.has("skewed-rates") ? 1 + random.between(-driftFactor / 2, driftFactor / 2) : 1;
  const network = {
    delayMs: random.pick([0.05, 0.3, 1, 5]),
    jitterMs: random.pick([0, 0.5, 3, 20]),
    splitChance: random.pick([0, 0, 0.2, 0.8]),
    partialWriteChance: random.pick([0, 0, 0.2]),
    slowWriteChance: random.pick([0, 0, 0, 0.1]),
  };
  const callers = withManners(seed, clientPlans(random, healAtMs, rate));
  const missed = missedAdoption(seed, kinds === FAULT_KINDS ? nodes : 0, callers, healAtMs);
  const crowded = crowd && kinds === FAULT_KINDS
    ? crowdIn(seed, missed.clients, healAtMs)
    : { clients: missed.clients, faults: [], troubledMs: 0 };
  const { clients } = crowded;
  const waiting = waitingPlan(new SeededRandom(`${seed} waiting`), nodes, healAtMs);
  const restartGuardMs = guardPlan(new SeededRandom(`${seed} guard`), clients);
  const clocks = clockPlan(new SeededRandom(`${seed} wrong clocks`));
  const minority = nodes - Math.floor(nodes / 2) - 1;
  return {
    seed,
    nodes: Array.from({ length: nodes }, (): NodePlan => ({
      rate: rate(),
      wallOffsetMs: (random.chance(0.5) ? random.integer(-100_000, 100_000) : 0) + clocks.node(),
    })),
    clients: clients.map((client) => ({
      ...patient(client, network),
      wallOffsetMs: client.wallOffsetMs + clocks.client(),
      notify: waiting.notify(),
      fencing: waiting.fencing || clocks.wrong,
      restartGuardMs,
    })),
    faults: [
      ...[
        ...faultPlans(random, chosen, { nodes, clients: clients.length, healAtMs }),
        ...troublesIn(seed, crowded, nodes, healAtMs),
      ].filter((fault) => restartGuardMs === undefined || !CLOCK_KINDS.includes(fault.kind)),
      ...(kinds === FAULT_KINDS ? waiting.faults : []),
      ...(kinds === FAULT_KINDS ? lostExtensions(seed, nodes, clients.length, healAtMs) : []),
      ...(kinds === FAULT_KINDS ? fullAndDemoted(seed, nodes, healAtMs) : []),
      ...missed.faults,
      ...crowded.faults,
      ...(kinds === FAULT_KINDS ? sleepsAndLosses(seed, clients.length, healAtMs) : []),
    ],
    messages: crowded.troubledMs > 0 ? undefined : waiting.messages,
    driftFactor,
    login: random.chance(0.3) ? new SeededRandom(`${seed} login`).pick(LOGINS) : undefined,
    gatherMs: new SeededRandom(`${seed} gather`).pick([undefined, 5, 50]),
    network,
    process: {
      timerLateMs: random.pick([0, 0.5, 2, 15]),
      timerEarlyMs: random.pick([0, 0, 0.9]),
      stallChance: stalls ? random.pick([0.001, 0.01]) : 0,
      stallMaxMs: stalls ? random.pick([5, 100, 3_000]) : 0,
      timersFirst: random.chance(0.5),
    },
    healAtMs: healAtMs + crowded.troubledMs,
    left: random.chance(0.3) && minority > 0
      ? Array.from({ length: random.integer(1, minority) }, (_, index) => index)
      : [],
    leftHow: random.pick(["crashed", "hung", "unreachable"]),
  };
}

/** What goes wrong once or a few times while clients crowd; of a randomness of its own. */
function troublesIn(
  seed: string | number,
  { clients, troubledMs }: Crowd,
  nodes: number,
  healAtMs: number,
): Fault[] {
  if (troubledMs === 0) return [];
  const random = new SeededRandom(`${seed} troubles`);
  const kinds = new Set([random.pick(FAULT_KINDS)]);
  return faultPlans(random, kinds, { nodes, clients: clients.length, healAtMs: troubledMs })
    .slice(0, TROUBLES_MAX).map((fault) => ({ ...fault, atMs: fault.atMs + healAtMs }));
}

/** What may be wrong with waiting alone; of a randomness of its own. */
function waitingPlan(random: SeededRandom, nodes: number, healAtMs: number) {
  const mute = random.chance(0.08);
  const faults: Fault[] = !mute ? [] : [{
    kind: "errors",
    node: random.integer(0, nodes - 1),
    text: "NOPERM this user has no permissions to access one of the channels used as arguments",
    commands: [random.pick(["SUBSCRIBE", "PUBLISH"])],
    atMs: random.integer(0, healAtMs / 2),
    forMs: healAtMs / 2,
  }];
  const messages = random.chance(0.3)
    ? {
      lostChance: random.pick([0, 0.05, 0.5, 1]),
      twiceChance: random.pick([0, 0.3]),
      lateMs: random.pick([0, 20, 1_000]),
    }
    : undefined;
  const poll = random.chance(0.1);
  const fencing = random.chance(0.4);
  for (let sticks = random.chance(0.3) ? random.integer(1, 8) : 0; sticks > 0; sticks--) {
    const atMs = random.integer(0, healAtMs - 1);
    const forMs = random.pick([100, 1_000, 10_000]) * random.between(0.1, 1);
    const node = random.integer(0, nodes - 1);
    const resource = random.pick(["a", "a", "b", "c"]);
    faults.push({ kind: "stick", node, resource, atMs, forMs: Math.min(forMs, healAtMs - atMs) });
  }
  for (let forges = random.chance(0.3) ? random.integer(1, 20) : 0; forges > 0; forges--) {
    const node = random.integer(0, nodes - 1);
    faults.push({ kind: "forge", node, atMs: random.integer(0, healAtMs - 1) });
  }
  return { faults, messages, fencing, notify: () => !poll || random.chance(0.5) };
}

/**
 * In some runs clocks of clients and nodes are wrong by up to many years, and tokens counted; of a
 * randomness of its own.
 */
function clockPlan(random: SeededRandom) {
  const wrong = random.chance(0.12);
  const aheadMs = (years: readonly number[]) =>
    wrong && random.chance(0.4) ? random.pick([random.pick(years) * YEAR_MS, 61_000, -61_000]) : 0;
  return {
    wrong,
    client: () => aheadMs([10, 300, -40]),
    node: () => aheadMs([1, 10, 200, -10, -40]), // beyond the year 2255 it would not count
  };
}

/**
 * Some runs whose locks are short have the guard on, for as long as the longest of them; of a
 * randomness of its own.
 */
function guardPlan(random: SeededRandom, clients: readonly ClientPlan[]): number | undefined {
  const ttls = clients.flatMap(({ ops }) => ops.flatMap((op) => [op.ttlMs, op.extendTtlMs ?? 0]));
  const longestMs = Math.max(...ttls);
  if (!random.chance(0.4) || longestMs > GUARDED_TTL_MS_MAX) return undefined;
  return Math.max(longestMs, GUARD_MS_MIN);
}

/** Where answers take longer than a client waits for them there is no quorum, mended or not. */
function patient(client: ClientPlan, { delayMs, jitterMs }: Plan["network"]): ClientPlan {
  const { nodeTimeoutMs, distanceMs = 0 } = client;
  if (nodeTimeoutMs === undefined && distanceMs === 0) return client;
  const leastMs = 2 * (delayMs + jitterMs + distanceMs) + 5;
  return {
    ...client,
    nodeTimeoutMs: Math.max(nodeTimeoutMs ?? 50, leastMs),
    connectTimeoutMs: Math.max(client.connectTimeoutMs, 3 * leastMs),
  };
}

function clientPlans(random: SeededRandom, healAtMs: number, rate: () => number): ClientPlan[] {
  const resources = ["a", "b", "c"].slice(0, random.integer(1, 3));
  const ttls = random.pick([[10, 15], [20, 60], [200, 1_000], [1_000, 5_000], [10_000, 30_000], [
    60_000,
    90_000,
  ]]);
  const opsMax = random.pick([3, 8, 20]);
  return Array.from({ length: random.integer(1, 5) }, () => ({
    monotonicRate: rate(),
    wallRate: rate(),
    wallOffsetMs: random.chance(0.5) ? random.integer(-1_000_000, 1_000_000) : 0,
    nodeTimeoutMs: random.pick([undefined, undefined, 20, 200, 3_000]),
    connectTimeoutMs: random.pick([100, 1_000]),
    retryDelayMs: random.pick([10, 50, 100]),
    retryDelayMaxMs: random.pick([200, 2_000]),
    ops: [
      ...Array.from(
        { length: random.integer(1, opsMax) },
        () => opPlan(random, resources, ttls, healAtMs),
      ),
      ...(random.chance(0.05) ? [closePlan(random, healAtMs)] : []),
    ],
  }));
}

function closePlan(random: SeededRandom, healAtMs: number): Op {
  return { ...PLAIN_OP, kind: "close", atMs: random.integer(0, healAtMs) };
}

function opPlan(
  random: SeededRandom,
  resources: readonly string[],
  [ttlMin, ttlMax]: readonly number[],
  healAtMs: number,
): Op {
  const ttlMs = random.integer(ttlMin, ttlMax);
  const extends_ = random.chance(0.3);
  const autoExtend = random.pick([undefined, undefined, true]);
  const end = random.pick(
    ["release", "release", "release", "release", "twice", "abandon"] as const,
  );
  return {
    atMs: random.integer(0, healAtMs),
    kind: random.pick(["acquire", "acquire", "acquire", "tryAcquire", "using", "using", "inspect"]),
    resources: random.chance(0.2) ? random.some(resources) : [random.pick(resources)],
    ttlMs,
    waitMs: random.pick([0, 500, 5_000, 20_000]),
    holdMs: random.pick([0, 1, ttlMs / 2, ttlMs * 1.5, 3_000]),
    extendEveryMs: extends_ ? Math.max(1, ttlMs * random.pick([0.1, 0.5, 0.9])) : undefined,
    extendTtlMs: random.chance(0.3) ? random.integer(ttlMin, 2 * ttlMax) : undefined,
    autoExtend,
    extensionsMax: end === "abandon" ? random.pick([0, 2]) : random.pick([0, 3, 10, 30]),
    abortAfterMs: random.chance(0.15) ? random.integer(0, 2_000) : undefined,
    end,
    ignoresSignal: random.chance(0.15),
  };
}

/** What faults are drawn for. */
export interface Size {
  readonly nodes: number;
  readonly clients: number;
  readonly healAtMs: number;
}

/** Draws faults of the chosen kinds. */
export function faultPlans(
  random: SeededRandom,
  kinds: ReadonlySet<FaultKind>,
  size: Size,
): Fault[] {
  const faults: Fault[] = [];
  for (const kind of FAULT_KINDS) {
    if (!kinds.has(kind)) continue;
    const count = random.integer(1, random.pick([1, 3, 8]));
    for (let index = 0; index < count; index++) {
      const fault = faultPlan(random, kind, size);
      if (fault) faults.push(fault);
    }
  }
  return faults.sort((one, other) => one.atMs - other.atMs);
}

function faultPlan(
  random: SeededRandom,
  kind: FaultKind,
  size: Size,
): Fault | undefined {
  const atMs = random.integer(0, size.healAtMs - 1);
  const forMs = Math.min(
    random.pick([50, 500, 3_000, 10_000]) * random.between(0.1, 1),
    size.healAtMs - atMs,
  );
  const node = random.integer(0, size.nodes - 1);
  const client = random.integer(0, size.clients - 1);
  const directions = random.some(["requests", "replies"] as const);
  switch (kind) {
    case "slow": {
      const extraMs = random.pick([5, 50, 500, 2_500]) * random.between(0.1, 1);
      return { kind, client, node, direction: directions[0], extraMs, atMs, forMs };
    }
    case "partition":
      return {
        kind,
        clients: random.some(Array.from({ length: size.clients }, (_, index) => index)),
        nodes: random.some(Array.from({ length: size.nodes }, (_, index) => index)),
        directions,
        atMs,
        forMs,
      };
    case "cut":
      return { kind, client, node, requests: random.pick(["lost", "delivered"]), atMs };
    case "half-open":
      return { kind, client, node, directions, atMs };
    case "replay":
      return { kind, client, node, atMs };
    case "foreign":
      return {
        kind,
        nodes: random.some(Array.from({ length: size.nodes }, (_, index) => index)),
        resource: random.pick(["a", "b"]),
        ttlMs: random.integer(50, 3_000),
        atMs,
      };
    case "unconnectable":
      return { kind, node, mood: random.pick(["refused", "blackholed"]), atMs, forMs };
    default:
      return kind.startsWith("wall-step") || ["pause", "suspend", "die"].includes(kind)
        ? clientFault(random, kind, { atMs, forMs, client })
        : nodeFault(random, kind, { atMs, forMs, node });
  }
}

function nodeFault(
  random: SeededRandom,
  kind: FaultKind,
  { atMs, forMs, node }: { atMs: number; forMs: number; node: number },
): Fault | undefined {
  switch (kind) {
    case "crash":
      return { kind, node, data: "all", silent: random.chance(0.3), atMs, forMs };
    case "forget": {
      const how = random.pick(["flush", "evict", "crash", "crash"] as const);
      if (how !== "crash") return { kind: how, node, atMs };
      const data = random.pick(["none", 100, 1_000] as const);
      return { kind: how, node, data, silent: random.chance(0.3), atMs, forMs };
    }
    case "hang":
      return { kind, node, atMs, forMs };
    case "flush-scripts":
      return { kind, node, atMs };
    case "errors":
      return { kind, node, ...random.pick(ERRORS), atMs, forMs };
    case "node-step":
      return {
        kind,
        node,
        stepMs: random.pick([-40_000, -5_000, -500, 500, 5_000, 3_600_000]),
        atMs,
      };
    case "node-rate":
      return { kind, node, rate: random.pick([0.5, 1.1, 2]), atMs, forMs };
    default:
      return undefined;
  }
}

function clientFault(
  random: SeededRandom,
  kind: FaultKind,
  { atMs, forMs, client }: { atMs: number; forMs: number; client: number },
): Fault | undefined {
  switch (kind) {
    case "pause":
    case "suspend":
      return { kind, client, atMs, forMs };
    case "wall-step-ahead":
      return { kind: "wall-step", client, stepMs: random.pick([1, 30, 1_000, 60_000]), atMs };
    case "wall-step-back":
      return { kind: "wall-step", client, stepMs: -random.pick([1, 30, 1_000, 60_000]), atMs };
    case "die":
      return { kind, client, silent: random.chance(0.3), atMs };
    default:
      return undefined;
  }
}
