/**
 * Swarms: what callers do in listeners, and what becomes of their extensions and their clocks. Each
 * has a randomness of its own, so that one more changes no other.
 */
import { type ClientPlan, type Fault, type Op, PLAIN_OP } from "./plan.ts";
import { SeededRandom } from "./seeded_random.ts";

/** The shortest lock of a run in which clients may be far away, in milliseconds. */
const FAR_TTL_MS_MIN = 200;

/** What listeners wait for: the signal's abort most often. */
const LISTENED = [
  ...["abort", "abort", "attempt", "acquired"] as const,
  ...["extended", "extend-failed", "lost"] as const,
];

/** What callers and clients do in some runs beside what all do. */
export function withManners(seed: string | number, clients: ClientPlan[]): ClientPlan[] {
  return [
    ...[withListeners, withHandOvers, withPools, withCooldown, withBusyCallers, withDistances],
    ...[withReaders, withAtLeast],
  ].reduce((plans, change) => change(seed, plans), clients);
}

/** In some runs listeners of some locks close the client or release the lock. */
function withListeners(seed: string | number, clients: ClientPlan[]): ClientPlan[] {
  const random = new SeededRandom(`${seed} listeners`);
  if (!random.chance(0.3)) return clients;
  const listener = () => ({
    on: random.pick(LISTENED),
    does: random.pick(["close", "release", "release"] as const),
  });
  return clients.map((client) => ({
    ...client,
    ops: client.ops.map((op) => random.chance(0.2) ? { ...op, listener: listener() } : op),
  }));
}

/** In some runs some locks are handed over: to one, to several, to nobody, or late. */
function withHandOvers(seed: string | number, clients: ClientPlan[]): ClientPlan[] {
  const random = new SeededRandom(`${seed} hand-overs`);
  if (!random.chance(0.3)) return clients;
  const taker = () => ({
    client: random.integer(0, clients.length - 1),
    afterMs: random.pick([0, 0.2, 3, 50, 1_000, 20_000]),
  });
  const handsTo = () => Array.from({ length: random.pick([0, 1, 1, 2, 3]) }, taker);
  return clients.map((client) => ({
    ...client,
    ops: client.ops.map((op) =>
      random.chance(0.3) ? { ...op, handsTo: handsTo(), extendsMeanwhile: random.chance(0.3) } : op
    ),
  }));
}

/** In some runs all clients have a cooldown. */
function withCooldown(seed: string | number, clients: ClientPlan[]): ClientPlan[] {
  const random = new SeededRandom(`${seed} cooldown`);
  if (!random.chance(0.2)) return clients;
  const cooldownMs = random.pick([20, 300, 3_000]);
  return clients.map((client) => ({ ...client, cooldownMs }));
}

/** In some runs some callers take any one of their resources. */
function withPools(seed: string | number, clients: ClientPlan[]): ClientPlan[] {
  const random = new SeededRandom(`${seed} pools`);
  if (!random.chance(0.3)) return clients;
  const names = ["a", "b", "c"].slice(0, random.integer(2, 3));
  const pooled = () => {
    const resources = random.some(names);
    return { resources: random.chance(0.5) ? resources : resources.reverse(), any: true };
  };
  return clients.map((client) => ({
    ...client,
    ops: client.ops.map((op) => {
      return op.kind !== "inspect" && random.chance(0.6) ? { ...op, ...pooled() } : op;
    }),
  }));
}

/** In some runs some callers take their resources in shared mode. */
function withReaders(seed: string | number, clients: ClientPlan[]): ClientPlan[] {
  const random = new SeededRandom(`${seed} readers`);
  if (!random.chance(0.3)) return clients;
  const share = random.pick([0.3, 0.6, 0.9]);
  return clients.map((client) => ({
    ...client,
    ops: client.ops.map((op) => {
      const reads = random.chance(share) && !op.any && !op.handsTo;
      return reads ? { ...op, shared: true } : op;
    }),
  }));
}

/** In some runs some locks keep their keys for a while, however they end. */
function withAtLeast(seed: string | number, clients: ClientPlan[]): ClientPlan[] {
  const random = new SeededRandom(`${seed} at least`);
  if (!random.chance(0.25)) return clients;
  return clients.map((client) => ({
    ...client,
    ops: client.ops.map((op) => {
      const share = random.pick([0, 0, 0.1, 0.7, 1]);
      return share > 0 ? { ...op, atLeastMs: share * op.ttlMs } : op;
    }),
  }));
}

/** Clients that crowd around few resources, and what becomes of some of them. */
export interface Crowd {
  readonly clients: readonly ClientPlan[];
  readonly faults: readonly Fault[];
  /** For how long something may go wrong beside that, in milliseconds. */
  readonly troubledMs: number;
}

/**
 * In some runs all clients crowd around few resources after the faults. Some locks run out, are
 * kept for a while, or handed over to nobody; some callers give up; some processes die, stop for a
 * while or close their clients meanwhile.
 */
export function crowdIn(
  seed: string | number,
  clients: readonly ClientPlan[],
  healAtMs: number,
): Crowd {
  const random = new SeededRandom(`${seed} crowd`);
  if (clients.length < 2 || !random.chance(0.5)) return { clients, faults: [], troubledMs: 0 };
  const troubledMs = new SeededRandom(`${seed} troubled crowd`).pick([0, CROWD_TROUBLED_MS]);
  const fromMs = healAtMs + random.pick([0, 2_500, 2_500, 18_000]);
  const forMs = random.pick([5, 500, 3_000, Math.max(3_000, troubledMs)]);
  const names = random.pick([["a"], ["a"], ["a", "b"], ["a", "b", "c"]]);
  const ttlMs = random.pick([1_500, 14_000, 40_000]);
  const opsMax = random.pick([1, 1, 5, 10]);
  const ways = random.chance(0.5) ? [random.pick(CROWD_WAYS)] : random.some(CROWD_WAYS);
  const share = random.pick([0.3, 1]);
  const op = (): Op => ({
    ...PLAIN_OP,
    atMs: fromMs + random.between(0, forMs),
    kind: random.pick(["acquire", "acquire", "using"]),
    resources: [random.pick(names)],
    ttlMs,
    waitMs: 60_000,
    holdMs: random.pick([0, 5, 60, 400]),
    ...random.chance(share) ? crowdWay(random, random.pick(ways), names, ttlMs) : {},
  });
  const faults: Fault[] = [];
  const client = random.integer(0, clients.length - 1);
  const atMs = fromMs + random.between(0, CROWD_MS);
  const event = random.pick([undefined, "close", "die", "pause", "stick"]);
  if (event === "die") faults.push({ kind: event, client, silent: random.chance(0.3), atMs });
  if (event === "pause") {
    faults.push({ kind: event, client, atMs, forMs: random.between(1, 3_000) });
  }
  for (let sticks = event === "stick" ? random.integer(1, 4) : 0; sticks > 0; sticks--) {
    const forMs = random.between(1, 3_000);
    faults.push({ kind: "stick", node: 0, resource: random.pick(names), atMs, forMs });
  }
  const close = event === "close" ? [{ ...PLAIN_OP, kind: event, atMs }] as const : [];
  return {
    clients: clients.map((each, index) => {
      const ops = Array.from({ length: random.integer(1, opsMax) }, op);
      return { ...each, ops: [...each.ops, ...ops, ...index === client ? close : []] };
    }),
    faults,
    troubledMs,
  };
}

/** In what ways callers of a crowd differ. */
const CROWD_WAYS = ["keep", "abandon", "hand", "abort", "pool", "several", "read"] as const;
/** How long a crowd is disturbed, in milliseconds. */
const CROWD_MS = 4_000;
/** For how long something else may go wrong in the meantime. */
const CROWD_TROUBLED_MS = 20_000;
/** The longest that locks of a crowd that are abandoned live, in milliseconds. */
const ABANDONED_MS = 1_500;

function crowdWay(
  random: SeededRandom,
  way: typeof CROWD_WAYS[number],
  names: readonly string[],
  ttlMs: number,
): Partial<Op> {
  const shortMs = Math.min(ttlMs, ABANDONED_MS);
  switch (way) {
    case "keep":
      return { atLeastMs: random.pick([50, 300, 1_000]) };
    case "abandon":
      return { kind: "acquire", end: "abandon", autoExtend: false, ttlMs: shortMs };
    case "hand":
      return { kind: "acquire", handsTo: [], ttlMs: shortMs };
    case "abort":
      return { abortAfterMs: random.between(0, CROWD_MS) };
    case "pool":
      return { resources: random.some(names), any: true };
    case "several":
      return { resources: random.some(names) };
    case "read":
      return { shared: true, holdMs: random.pick([60, 400, 3_000]) };
  }
}

/**
 * In some runs a client that adopts a lock cannot reach a node, and works on after everything was
 * mended, or does not.
 */
export function missedAdoption(
  seed: string | number,
  nodes: number,
  clients: readonly ClientPlan[],
  healAtMs: number,
): { readonly clients: readonly ClientPlan[]; readonly faults: readonly Fault[] } {
  const random = new SeededRandom(`${seed} missed adoption`);
  if (nodes < 3 || clients.length < 2 || !random.chance(0.15)) return { clients, faults: [] };
  const [giver, ...others] = clients;
  const taker = random.integer(1, others.length);
  const holdMs = random.pick([500, 1_200, 3_500]);
  const op: Op = {
    ...PLAIN_OP,
    atMs: Math.max(healAtMs - holdMs - 300, 0),
    resources: [random.pick(["a", "d", "d"])],
    ttlMs: random.pick([12_000, 40_000]),
    holdMs,
    extendEveryMs: random.pick([300, 700]),
    atLeastMs: random.pick([0, 0, 2_000]),
    handsTo: [{ client: taker, afterMs: random.pick([0, 20, 200]) }],
  };
  const fault: Fault = {
    kind: "partition",
    clients: [taker],
    nodes: [random.integer(0, nodes - 1)],
    directions: ["requests", "replies"],
    atMs: Math.max(healAtMs - 1_000, 0),
    forMs: Math.min(1_000, healAtMs),
  };
  return { clients: [{ ...giver, ops: [...giver.ops, op] }, ...others], faults: [fault] };
}

/** In some runs nodes are full for a while, or become replicas. */
export function fullAndDemoted(seed: string | number, nodes: number, healAtMs: number): Fault[] {
  const random = new SeededRandom(`${seed} full and demoted`);
  return (["full", "demote"] as const).flatMap((kind) => {
    if (!random.chance(0.2)) return [];
    return Array.from({ length: random.integer(1, nodes + 1) }, (): Fault => {
      const atMs = random.integer(0, healAtMs - 1);
      const forMs = random.pick([500, 3_000, 10_000]) * random.between(0.1, 1);
      const node = random.integer(0, nodes - 1);
      return { kind, node, atMs, forMs: Math.min(forMs, healAtMs - atMs) };
    });
  });
}

/** In some runs some callers block their event loop and ask their signals. */
function withBusyCallers(seed: string | number, clients: ClientPlan[]): ClientPlan[] {
  const random = new SeededRandom(`${seed} busy`);
  if (!random.chance(0.3)) return clients;
  const busy = () => ({
    blockMs: random.pick([undefined, 1, 30, 400, 2_500]),
    asksSignal: random.chance(0.7),
  });
  return clients.map((client) => ({
    ...client,
    ops: client.ops.map((op) => random.chance(0.3) ? { ...op, ...busy() } : op),
  }));
}

/** In some runs whose locks are long some clients are far from the nodes. */
function withDistances(seed: string | number, clients: ClientPlan[]): ClientPlan[] {
  const random = new SeededRandom(`${seed} distances`);
  const ttls = clients.flatMap(({ ops }) => ops.map(({ ttlMs }) => ttlMs));
  if (!random.chance(0.5) || Math.min(...ttls) < FAR_TTL_MS_MIN) return clients;
  return clients.map((client) => ({
    ...client,
    distanceMs: random.pick([0, 0, 1, 5, 40, 100]),
  }));
}

/** In some runs the replies to some extensions are lost. */
export function lostExtensions(
  seed: string | number,
  nodes: number,
  clients: number,
  healAtMs: number,
): Fault[] {
  const random = new SeededRandom(`${seed} extensions`);
  if (!random.chance(0.3)) return [];
  const atMs = random.integer(0, healAtMs - 1);
  return Array.from({ length: random.integer(1, 2 * nodes) }, () => ({
    kind: "lost-extension",
    reset: random.chance(0.5),
    client: random.integer(0, clients - 1),
    node: random.integer(0, nodes - 1),
    atMs,
    forMs: Math.min(random.pick([500, 3_000]), healAtMs - atMs),
  }));
}

/** In some runs machines sleep and have their wall clocks set back before or after it. */
export function sleepsAndLosses(seed: string | number, clients: number, healAtMs: number): Fault[] {
  const random = new SeededRandom(`${seed} sleeps and losses`);
  if (!random.chance(0.3)) return [];
  return Array.from({ length: random.integer(1, 6) }, (): Fault[] => {
    const client = random.integer(0, clients - 1);
    const atMs = random.integer(0, healAtMs - 1);
    const lengthMs = random.pick([300, 3_000, 20_000]) * random.between(0.1, 1);
    const forMs = Math.min(lengthMs, healAtMs - atMs);
    const apartMs = random.pick([1, 300, 1_500]);
    const stepAtMs = random.chance(0.5) ? atMs - apartMs : atMs + forMs + apartMs;
    const stepMs = -random.pick([Math.ceil(forMs / 2), Math.ceil(forMs), 60_000]);
    if (stepAtMs < 0 || stepAtMs >= healAtMs) return [];
    return [
      { kind: "suspend", client, atMs, forMs },
      { kind: "wall-step", client, stepMs, atMs: stepAtMs },
    ];
  }).flat();
}
