/**
 * From what the nodes tell of themselves to what does not fit, and what to do about it.
 *
 * @module
 */
import type { Finding, FindingCode, NodeHealth, Severity } from "./report.ts";
import type { TriedCommand } from "../quorum/node_diagnosis.ts";
import type { Settings } from "../options.ts";
import { driftMs } from "../time/validity.ts";

/** What a server may be off when it tells for how long it runs, in milliseconds: it counts whole seconds. */
const UPTIME_PRECISION_MS = 1_000;
/** Fewer nodes than these survive no failure. */
const NODES_FEW = 3;
const REPLICA_MEANS = "no lock can be had there, and after a failover the last ones are missing";
const CLUSTER_MEANS = "keys of other shards are refused, and a failover forgets the last locks";
const SEVERITIES: readonly Severity[] = ["error", "warning", "info"];

type Nodes = readonly NodeHealth[];
/** A node whose clock is known. */
type WithClock = NodeHealth & { readonly clockOffsetMs: number };
/** What is said of one node, and of several. */
type Predicate = readonly [one: string, several: string];

/**
 * Derives the findings, the severest first.
 *
 * @param nodes What each node told.
 * @param quorum How many of them must agree.
 * @param settings What it is to fit.
 */
export function findingsOf(nodes: Nodes, quorum: number, settings: Settings): Finding[] {
  const findings = [
    ...ofAnswers(nodes, quorum),
    ...ofServers(nodes),
    ...ofEviction(nodes),
    ...ofRestarts(nodes, settings),
    ...ofClocks(nodes, settings),
    ...ofRefusals(nodes),
    ...ofCount(nodes.length),
  ];
  const rank = ({ severity }: Finding) => SEVERITIES.indexOf(severity);
  return findings.sort((a, b) => rank(a) - rank(b));
}

function ofAnswers(nodes: Nodes, quorum: number): Finding[] {
  const silent = nodes.filter(({ reachable }) => !reachable);
  const mute = nodes.filter(({ reachable, roundTripMs }) => reachable && roundTripMs === undefined);
  const answering = nodes.length - silent.length;
  const errors = silent.map(({ name, error = "" }) => {
    return error.includes(name) ? error : `${name}: ${error}`; // errors of connections name it
  }).join("; ");
  const noQuorum: Finding = {
    code: "NO_QUORUM",
    severity: "error",
    nodes: namesOf(silent),
    message: `No lock can be had: ${answering} of ${nodes.length} nodes answered, ${quorum} ` +
      "are needed",
    advice: "Bring nodes back",
  };
  const unreachable: Finding = {
    code: "NODE_UNREACHABLE",
    severity: "warning",
    nodes: namesOf(silent),
    message: `${silent.length} of ${nodes.length} nodes cannot be asked: ${errors}`,
    advice: "See whether the server runs, and whether address, network, TLS and login are right",
  };
  return [
    ...(answering < quorum ? [noQuorum] : []),
    ...(silent.length > 0 ? [unreachable] : []),
    ...about(
      "NOT_DIAGNOSED",
      "info",
      mute,
      ["answers, but tells nothing of itself", "answer, but tell nothing of themselves"],
      "Implement diagnose() of LockNode",
    ),
  ];
}

function ofServers(nodes: Nodes): Finding[] {
  const runs = new Map<string, NodeHealth[]>();
  for (const node of nodes) {
    if (node.runId) runs.set(node.runId, [...runs.get(node.runId) ?? [], node]);
  }
  const same = [...runs.values()].filter(({ length }) => length > 1).flatMap((group) => {
    const predicate = `are one and the same server, which has ${group.length} votes: a quorum ` +
      "of names is none of servers";
    return about(
      "SAME_SERVER",
      "error",
      group,
      ["", predicate],
      "List every server once, under one name, and start one for each vote",
    );
  });
  return [
    ...same,
    ...about(
      "REPLICA",
      "error",
      nodes.filter(({ role }) => role === "replica"),
      [`is a replica: ${REPLICA_MEANS}`, `are replicas: ${REPLICA_MEANS}`],
      "Use independent masters, and no failover between them",
    ),
    ...about(
      "CLUSTER_NODE",
      "error",
      nodes.filter(({ clustered }) => clustered),
      [`belongs to a cluster: ${CLUSTER_MEANS}`, `belong to a cluster: ${CLUSTER_MEANS}`],
      "Use independent servers with cluster-enabled no",
    ),
  ];
}

function ofEviction(nodes: Nodes): Finding[] {
  const evicting = nodes.filter(({ maxmemoryPolicy = "noeviction" }) =>
    maxmemoryPolicy !== "noeviction"
  );
  const limited = evicting.filter(({ maxmemoryBytes }) => maxmemoryBytes !== 0);
  const unlimited = evicting.filter((node) => !limited.includes(node));
  return [
    ...mayEvict("error", limited, "to make room"),
    ...mayEvict("warning", unlimited, "as soon as maxmemory is set"),
  ];
}

function mayEvict(severity: Severity, nodes: Nodes, when: string): Finding[] {
  const policies = [...new Set(nodes.map(({ maxmemoryPolicy }) => maxmemoryPolicy))].join(", ");
  return about(
    "MAY_EVICT",
    severity,
    nodes,
    both(`may drop a lock ${when}, by maxmemory-policy ${policies}`),
    "Set maxmemory-policy noeviction: then a full server refuses locks and keeps those that are held",
  );
}

function ofRestarts(nodes: Nodes, { ttlMs }: Settings): Finding[] {
  const young = nodes.filter(({ uptimeMs = Infinity, aofEnabled, appendfsync }) => {
    return uptimeMs - UPTIME_PRECISION_MS < ttlMs && !(aofEnabled && appendfsync === "always");
  });
  return about(
    "RESTARTED",
    "warning",
    young,
    both(
      `started less than ttlMs (${ttlMs} ms) ago, without appendfsync always: locks that are ` +
        "held may be forgotten there",
    ),
    "Set appendonly yes and appendfsync always, or keep a node that crashed out for longer than " +
      "the longest TTL",
  );
}

function ofClocks(nodes: Nodes, { ttlMs, driftFactor }: Settings): Finding[] {
  const timed = nodes.filter((node): node is WithClock => node.clockOffsetMs !== undefined);
  if (timed.length === 0) return [];
  const allowanceMs = driftMs(ttlMs, driftFactor);
  const middle = middleOf(timed);
  const strays = timed.filter((node) => {
    const doubtMs = ((node.roundTripMs ?? 0) + (middle.roundTripMs ?? 0)) / 2;
    return Math.abs(node.clockOffsetMs - middle.clockOffsetMs) - doubtMs > allowanceMs;
  });
  const allowed = `${allowanceMs} ms are allowed for`;
  const aheadOf = (ms: number) => {
    const direction = ms > 0 ? "ahead of" : "behind";
    return `${Math.abs(Math.round(ms))} ms ${direction} ${middle.name}`;
  };
  const apart = strays.map(({ name, clockOffsetMs }) =>
    `${name} is ${aheadOf(clockOffsetMs - middle.clockOffsetMs)}`
  );
  const advice = "Keep clocks in step with NTP, slewed and never stepped";
  const nodeClocks: Finding = {
    code: "NODE_CLOCKS_APART",
    severity: "warning",
    nodes: namesOf(strays),
    message: `Clocks are apart: ${apart.join(", ")}; ${allowed}`,
    advice,
  };
  const clientClock: Finding = {
    code: "CLIENT_CLOCK_APART",
    severity: "warning",
    nodes: [],
    message: `This process's clock is ${aheadOf(-middle.clockOffsetMs)}; ${allowed}`,
    advice,
  };
  const doubtMs = (middle.roundTripMs ?? 0) / 2;
  return [
    ...(strays.length > 0 ? [nodeClocks] : []),
    ...(Math.abs(middle.clockOffsetMs) - doubtMs > allowanceMs ? [clientClock] : []),
  ];
}

/** The node in the middle by its clock; of two the one that agrees more with this process. */
function middleOf(timed: readonly WithClock[]): WithClock {
  const sorted = [...timed].sort((a, b) => a.clockOffsetMs - b.clockOffsetMs);
  const lower = sorted[(sorted.length - 1) >> 1];
  const upper = sorted[sorted.length >> 1];
  return Math.abs(lower.clockOffsetMs) <= Math.abs(upper.clockOffsetMs) ? lower : upper;
}

/** What follows from the refusal of each command, and what would allow it. */
const REFUSALS: readonly (readonly [
  TriedCommand,
  FindingCode,
  Severity,
  consequence: string,
  rules: string,
])[] = [
  [
    "EVALSHA",
    "EVALSHA_REFUSED",
    "error",
    "no lock can be extended or released",
    "+eval +evalsha",
  ],
  ["PUBLISH", "PUBLISH_REFUSED", "warning", "waiting polls", "+publish &hasp:wake:*"],
  ["SUBSCRIBE", "SUBSCRIBE_REFUSED", "warning", "waiting polls", "+subscribe &hasp:wake:*"],
  [
    "INFO",
    "INFO_REFUSED",
    "info",
    "role, run_id, uptime, persistence and eviction are not known",
    "+info",
  ],
  ["TIME", "TIME_REFUSED", "info", "the clock is not known", "+time"],
];

function ofRefusals(nodes: Nodes): Finding[] {
  return REFUSALS.flatMap(([command, code, severity, consequence, rules]) => {
    const refusing = nodes.filter(({ refused }) => refused?.[command] !== undefined);
    const replies = [...new Set(refusing.map(({ refused }) => refused?.[command]))].join(", ");
    const what = `${command} (${replies}): ${consequence}`;
    const advice = `Allow it, in an ACL by ${rules}`;
    return about(code, severity, refusing, [`refuses ${what}`, `refuse ${what}`], advice);
  });
}

function ofCount(count: number): Finding[] {
  const nodes = count === 1 ? "1 node" : `${count} nodes`;
  const few: Finding = {
    code: "NODES_FEW",
    severity: "warning",
    nodes: [],
    message: `There ${count === 1 ? "is" : "are"} ${nodes}, and none may fail`,
    advice: "Use three nodes or five; one is enough where you can do without locks for a while",
  };
  const even: Finding = {
    code: "NODES_EVEN",
    severity: "info",
    nodes: [],
    message: `There are ${nodes}, which survive no more failures than ${count - 1} would`,
    advice: "Use one node more, or one less",
  };
  return [...(count < NODES_FEW ? [few] : []), ...(count % 2 === 0 ? [even] : [])];
}

/** A finding about nodes, where there are any. */
function about(
  code: FindingCode,
  severity: Severity,
  concerned: Nodes,
  [one, several]: Predicate,
  advice: string,
): Finding[] {
  if (concerned.length === 0) return [];
  const nodes = namesOf(concerned);
  const message = `${listed(nodes)} ${nodes.length === 1 ? one : several}`;
  return [{ code, severity, nodes, message, advice }];
}

/** The same of one and of several. */
function both(predicate: string): Predicate {
  return [predicate, predicate];
}

function namesOf(nodes: Nodes): string[] {
  return nodes.map(({ name }) => name);
}

/** `a`, `a and b`, `a, b and c`. */
function listed(names: readonly string[]): string {
  if (names.length === 1) return names[0];
  return `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
