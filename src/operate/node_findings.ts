/**
 * Findings about single nodes: whether they answer, how they are set up, and what they refuse.
 *
 * @module
 */
import type { Finding, FindingCode, NodeHealth, Severity } from "./report.ts";
import { printable } from "../printable.ts";
import type { Settings } from "../options.ts";
import { SILENT, UNCONNECTED } from "../quorum/node_diagnosis.ts";

/** A problem of one node; the predicate follows its name. */
type Problem = readonly [FindingCode, Severity, predicate: string, advice: string];

/** Precision of a server's uptime, in milliseconds: it counts whole seconds. */
const UPTIME_PRECISION_MS = 1_000;
/** The first major version whose scripts may write after they have read the clock. */
const MAJOR_MIN = 5;

const FAILOVER = "after a failover the latest locks are missing";
const INDEPENDENT = "Use independent masters, without cluster, replication or failover";
const KEEP_LOCKS = "Set appendonly yes and appendfsync always, or set restartGuardMs";
const NO_EVICTION = "Set maxmemory-policy noeviction";

/** Derives the findings about one node. */
export function nodeFindings(node: NodeHealth, settings: Settings): Finding[] {
  const { name } = node;
  return [...problemsOf(node, settings)].map(([code, severity, predicate, advice]) => {
    return { code, severity, nodes: [name], message: `${name} ${predicate}`, advice };
  });
}

function* problemsOf(node: NodeHealth, settings: Settings): Iterable<Problem> {
  if (node.endsConnections) {
    const predicate = `answers the login, then ends the connection: ${node.error}`;
    const advice =
      "Look for a proxy without its server, a limit of clients, and what else ends connections";
    return yield ["ENDS_CONNECTIONS", "warning", predicate, advice];
  }
  if (!node.reachable) {
    const advice = "Check the server, its address, the network, TLS and the login";
    return yield ["NODE_UNREACHABLE", "warning", `is unavailable: ${node.error}`, advice];
  }
  if (node.roundTripMs === undefined) {
    const predicate = "answers, but reports nothing about itself";
    return yield ["NOT_DIAGNOSED", "info", predicate, "Implement diagnose() of LockNode"];
  }
  yield* ofPlace(node);
  yield* ofVersion(node);
  yield* ofEviction(node);
  yield* ofRestarts(node, settings);
  // A replica and a cluster's node refuse commands because of what they are.
  if (node.role !== "replica" && !node.clustered) yield* ofRefusals(node, settings);
}

/** A node must be one server that takes writes from clients alone. */
function* ofPlace({ role, clustered, otherRunIds = [] }: NodeHealth): Iterable<Problem> {
  if (role === "replica") {
    const predicate = `is a replica: no lock can be acquired there, and ${FAILOVER}`;
    yield ["REPLICA", "error", predicate, INDEPENDENT];
  }
  if (role === "active-replica") {
    const predicate = "is an active replica: writes from another server can overwrite locks";
    yield ["REPLICA", "error", predicate, INDEPENDENT];
  }
  if (clustered) {
    const predicate = `belongs to a cluster: keys of other shards are refused, and ${FAILOVER}`;
    yield ["CLUSTER_NODE", "error", predicate, INDEPENDENT];
  }
  if (otherRunIds.length > 0) {
    yield [
      "SEVERAL_SERVERS",
      "error",
      "leads to more than one server: a lock that is set on one of them is not seen on the others",
      "List the servers themselves, not a load balancer",
    ];
  }
}

function* ofVersion({ version = "" }: NodeHealth): Iterable<Problem> {
  if (!(Number.parseInt(version, 10) < MAJOR_MIN)) return;
  const predicate =
    `is too old (version ${version}): fencing tokens, the restart guard and shared ` +
    "mode fail there, and waiting calls poll";
  yield ["VERSION_OLD", "error", predicate, "Upgrade to Redis 6.2 or newer, or to Valkey"];
}

function* ofEviction({ maxmemoryPolicy, maxmemoryBytes }: NodeHealth): Iterable<Problem> {
  if ((maxmemoryPolicy ?? "noeviction") === "noeviction") return;
  const unlimited = maxmemoryBytes === 0;
  const when = unlimited ? "as soon as maxmemory is set" : "when its memory is full";
  const predicate = `may delete locks ${when} (maxmemory-policy ${maxmemoryPolicy})`;
  yield ["MAY_EVICT", unlimited ? "warning" : "error", predicate, NO_EVICTION];
}

/** For how long the restart guard does not count a node's votes yet, in milliseconds; or 0. */
export function quarantineMs(
  { uptimeMs = Infinity, markerAgeMs = Infinity }: NodeHealth,
  { restartGuardMs }: Settings,
): number {
  if (restartGuardMs === 0) return 0;
  return Math.max(restartGuardMs - Math.min(uptimeMs - UPTIME_PRECISION_MS, markerAgeMs), 0);
}

function* ofRestarts(node: NodeHealth, settings: Settings): Iterable<Problem> {
  const { uptimeMs = Infinity, aofEnabled, appendfsync } = node;
  const { ttlMs, restartGuardMs } = settings;
  const leftMs = quarantineMs(node, settings);
  if (restartGuardMs > 0) {
    if (leftMs === 0) return;
    const since = node.markerAgeMs === 0 ? " from its first vote on" : "";
    const predicate =
      "was restarted or emptied, or is new to the restart guard: its votes do not " +
      `count for ${Math.ceil(leftMs / 1_000)} s${since}`;
    yield ["QUARANTINED", "warning", predicate, "Wait; if nobody restarted it, ask who emptied it"];
  } else if (uptimeMs - UPTIME_PRECISION_MS < ttlMs && !(aofEnabled && appendfsync === "always")) {
    yield [
      "RESTARTED",
      "warning",
      `started less than ttlMs (${ttlMs} ms) ago without appendfsync always, and may have ` +
      "forgotten locks that are still held",
      KEEP_LOCKS,
    ];
  } else if (aofEnabled === false) {
    yield [
      "NOT_PERSISTENT",
      "warning",
      "has no append-only file: after a restart it forgets locks that are still held",
      KEEP_LOCKS,
    ];
  }
}

/** What a refusal asks for, by the first word of the reply, or what stands in its place. */
const REFUSAL_ADVICE: ReadonlyMap<string, string> = new Map([
  ["OOM", "Raise maxmemory, or delete data"],
  ["NOREPLICAS", "Set min-replicas-to-write 0"],
  ["MISCONF", "Make room on the server's disk"],
  ["READONLY", INDEPENDENT],
  ["ERR", "Use no Sentinel, and take rename-command out of the server's configuration"],
  [SILENT, "End CLIENT PAUSE, or wait until a failover of the service is over"],
  [UNCONNECTED, "Raise maxclients, or end connections that are not needed"],
]);

/** What fails if a server is full: a call that waits leaves the queue first, which makes room. */
const OUT_OF_MEMORY = "at most calls that wait get a lock there";

/** Further advice if a right is missing: it may be there for the keys that locks have. */
const PREFIX_ADVICE =
  ". If all your locks begin with a prefix, set it as 'keyPrefix', and check again";

/**
 * What fails if commands are refused, the ACL rules that allow them, and whether the settings ask
 * for it.
 */
type Feature = readonly [
  FindingCode,
  Severity,
  consequence: string,
  rules: string,
  wanted?: (settings: Settings) => boolean,
];

const FEATURES: readonly Feature[] = [
  ["ACQUIRE_REFUSED", "error", "no lock can be acquired there", "~KEYS +set"],
  [
    "RELEASE_REFUSED",
    "error",
    "locks cannot be extended or released there",
    "~KEYS +eval +evalsha +get +del +exists +pexpire +pttl",
  ],
  [
    "FENCING_REFUSED",
    "error",
    "calls with 'fencing' get no lock there",
    "~hasp:* +decr +incr +time",
    ({ fencing }) => fencing,
  ],
  [
    "GUARD_REFUSED",
    "error",
    "calls with 'restartGuardMs' get no lock there, or do not notice its restarts",
    "~hasp:* +info +time",
    ({ restartGuardMs }) => restartGuardMs > 0,
  ],
  [
    "NOTIFY_REFUSED",
    "warning",
    "waiting calls poll, and calls in shared mode may get no lock there",
    "~hasp:* &hasp:* +publish +pubsub|numsub +subscribe +time +zadd +zcard +zrange +zrank +zrem +zremrangebyscore +zscore",
  ],
  ["INFO_REFUSED", "info", "check() sees a part of its state only", "+info +time"],
  ["LIST_REFUSED", "info", "list() does not see its keys", "+scan"],
];

function* ofRefusals({ refused = {} }: NodeHealth, settings: Settings): Iterable<Problem> {
  // A server that refuses SET for another reason than a missing right refuses all writes.
  const features = ["NOPERM", undefined].includes(refused.SET) ? FEATURES : FEATURES.slice(0, 1);
  for (const [code, severity, consequence, rules, wanted] of features) {
    const commands = rules.toUpperCase().match(/(?<=\+)\w+/gu)!.filter((name) => refused[name]);
    if (commands.length === 0 || wanted?.(settings) === false) continue;
    const replies = [...new Set(commands.map((name) => refused[name]))].join(", ");
    const effect = replies === "OOM" ? OUT_OF_MEMORY : consequence;
    const predicate = `refuses ${commands.join(", ")} (${replies}): ${effect}`;
    const acl = rules.replace("KEYS", `${printable(settings.keyPrefix)}*`);
    const advice = REFUSAL_ADVICE.get(replies) ?? `Allow what is refused; in an ACL: ${acl}` +
        (rules.includes("KEYS") && settings.keyPrefix === "" ? PREFIX_ADVICE : "");
    yield [code, severity, predicate, advice];
  }
}
