/**
 * Findings about how single servers are set up: identity, role, version, eviction, restarts, refused commands.
 *
 * @module
 */
import { about, both, distinct, type Nodes } from "./finding.ts";
import type { Finding, FindingCode, NodeHealth, Severity } from "./report.ts";
import type { TriedCommand } from "../quorum/node_diagnosis.ts";
import type { Settings } from "../options.ts";

/** Precision of a server's uptime, in milliseconds: it counts whole seconds. */
const UPTIME_PRECISION_MS = 1_000;
/** The first major version whose scripts may write after they have read the clock. */
const MAJOR_MIN = 5;
/** The first version that restricts the channels of an ACL user. */
const CHANNEL_ACL_VERSION = [6, 2] as const;

const REPLICA_MEANS =
  "no lock can be acquired there, and after a failover the latest locks are missing";
const ACTIVE_REPLICA_MEANS = "writes from another server can overwrite locks";
const CLUSTER_MEANS =
  "keys of other shards are refused, and after a failover the latest locks are missing";
const INDEPENDENT = "Use independent masters, without replication or failover between them";

/** Derives the findings about single servers. */
export function serverFindings(nodes: Nodes, settings: Settings): Finding[] {
  return [
    ...ofIdentity(nodes),
    ...ofRoles(nodes),
    ...ofVersions(nodes),
    ...ofEviction(nodes),
    ...ofRestarts(nodes, settings),
    ...ofRefusals(nodes),
  ];
}

/** An address must lead to one server, and a server must have one address. */
function ofIdentity(nodes: Nodes): Finding[] {
  const runs = new Map<string, NodeHealth[]>();
  for (const node of nodes) {
    if (node.runId) runs.set(node.runId, [...runs.get(node.runId) ?? [], node]);
  }
  const same = [...runs.values()].filter(({ length }) => length > 1).flatMap((group) => {
    const several = `are the same server, which has ${group.length} votes: a majority of votes ` +
      "need not be a majority of servers";
    const advice = "List each server once, under one name, and run one server for each vote";
    return about("SAME_SERVER", "error", group, ["", several], advice);
  });
  const means = "a lock that is set on one of them is not seen on the others";
  return [
    ...same,
    ...about(
      "SEVERAL_SERVERS",
      "error",
      nodes.filter(({ otherRunIds = [] }) => otherRunIds.length > 0),
      [`leads to more than one server: ${means}`, `each lead to more than one server: ${means}`],
      "List the address of each server itself, not that of a load balancer or of several hosts",
    ),
  ];
}

function ofRoles(nodes: Nodes): Finding[] {
  return [
    ...about(
      "REPLICA",
      "error",
      nodes.filter(({ role }) => role === "replica"),
      [`is a replica: ${REPLICA_MEANS}`, `are replicas: ${REPLICA_MEANS}`],
      INDEPENDENT,
    ),
    ...about(
      "REPLICA",
      "error",
      nodes.filter(({ role }) => role === "active-replica"),
      [
        `is an active replica: ${ACTIVE_REPLICA_MEANS}`,
        `are active replicas: ${ACTIVE_REPLICA_MEANS}`,
      ],
      INDEPENDENT,
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

function ofVersions(nodes: Nodes): Finding[] {
  const older = (major: number, minor: number) =>
    nodes.filter(({ version = "" }) => {
      const [, nodeMajor, nodeMinor] = /^(\d+)\.(\d+)/u.exec(version)?.map(Number) ?? [];
      return nodeMajor < major || nodeMajor === major && nodeMinor < minor;
    });
  const tooOld = older(MAJOR_MIN, 0);
  const old = older(...CHANNEL_ACL_VERSION).filter((node) => !tooOld.includes(node));
  const versionOld = (severity: Severity, concerned: Nodes, means: string) => {
    const versions = distinct(concerned.map(({ version }) => version));
    const what = `${severity === "error" ? "too old" : "old"} (version ${versions}): ${means}`;
    const advice = "Upgrade to Redis 6.2 or newer, or to Valkey";
    return about("VERSION_OLD", severity, concerned, [`is ${what}`, `are ${what}`], advice);
  };
  return [
    ...versionOld(
      "error",
      tooOld,
      "fencing tokens and the restart guard fail there, and waiting calls poll; they need version 5",
    ),
    ...versionOld(
      "info",
      old,
      "locks work, but the channels of an ACL user cannot be restricted before version 6.2",
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
    ...mayEvict("error", limited, "may delete locks when its memory is full"),
    ...mayEvict("warning", unlimited, "may delete locks as soon as maxmemory is set"),
  ];
}

function mayEvict(severity: Severity, nodes: Nodes, what: string): Finding[] {
  const policies = distinct(nodes.map(({ maxmemoryPolicy }) => maxmemoryPolicy));
  return about(
    "MAY_EVICT",
    severity,
    nodes,
    both(`${what} (maxmemory-policy ${policies})`),
    "Set maxmemory-policy noeviction: a full server then refuses new locks and keeps existing ones",
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
      `started less than ttlMs (${ttlMs} ms) ago without appendfsync always, and may have ` +
        "forgotten locks that are still held",
    ),
    "Set appendonly yes and appendfsync always, or set restartGuardMs, or keep a node that " +
      "crashed stopped for longer than the longest TTL",
  );
}

/** The consequence of each refused command, and the ACL rules that allow it. */
const REFUSALS: readonly (readonly [
  TriedCommand,
  FindingCode,
  Severity,
  consequence: string,
  rules: string,
])[] = [
  ["EVAL", "EVAL_REFUSED", "error", "locks cannot be extended or released", "+eval +evalsha"],
  ["EVALSHA", "EVALSHA_REFUSED", "error", "locks cannot be extended or released", "+eval +evalsha"],
  ["PUBLISH", "PUBLISH_REFUSED", "warning", "waiting calls poll", "+publish &hasp:*"],
  ["SUBSCRIBE", "SUBSCRIBE_REFUSED", "warning", "waiting calls poll", "+subscribe &hasp:*"],
  [
    "INFO",
    "INFO_REFUSED",
    "info",
    "version, role, run id, uptime, persistence and eviction policy are unknown",
    "+info",
  ],
  ["TIME", "TIME_REFUSED", "info", "the offset of its clock is unknown", "+time"],
];

function ofRefusals(nodes: Nodes): Finding[] {
  return REFUSALS.flatMap(([command, code, severity, consequence, rules]) => {
    const refusing = nodes.filter(({ refused }) => refused?.[command] !== undefined);
    const replies = distinct(refusing.map(({ refused }) => refused?.[command]));
    const what = `${command} (${replies}): ${consequence}`;
    const advice = `Allow the command; in an ACL: ${rules}`;
    return about(code, severity, refusing, [`refuses ${what}`, `refuse ${what}`], advice);
  });
}
