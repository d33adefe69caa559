import { assertEquals } from "@std/assert";
import { findingsOf } from "../../../src/health/findings.ts";
import type { Finding, NodeHealth } from "../../../src/health/report.ts";
import { resolveOptions } from "../../../src/options.ts";

const SETTINGS = resolveOptions("check nodes", {}); // a TTL of 30 s, and so 302 ms of drift
const DAY_MS = 86_400_000;

/** A node with which nothing is amiss. */
function healthy(name: string): NodeHealth {
  return {
    name,
    reachable: true,
    roundTripMs: 1,
    clockOffsetMs: 0,
    version: "7.0.15",
    role: "master",
    runId: `run-of-${name}`,
    uptimeMs: DAY_MS,
    clustered: false,
    aofEnabled: true,
    appendfsync: "always",
    maxmemoryBytes: 0,
    maxmemoryPolicy: "noeviction",
  };
}

/** What is found with the nodes a, b, c … where each differs from a healthy one in one of `changes`. */
function found(...changes: Partial<NodeHealth>[]): Finding[] {
  const nodes = changes.map((change, index) => ({ ...healthy("abcdefg"[index]), ...change }));
  return findingsOf(nodes, Math.floor(nodes.length / 2) + 1, SETTINGS);
}

/** A finding in one line. */
function lines(findings: readonly Finding[]): string[] {
  return findings.map(({ severity, code, nodes, message }) =>
    `${severity} ${code} [${nodes.join()}] ${message}`
  );
}

const DOWN: Partial<NodeHealth> = {
  reachable: false,
  error: "refused",
  runId: undefined,
  roundTripMs: undefined,
  clockOffsetMs: undefined,
};

/** Each with what differs on the nodes, and what is to be found. */
const CASES: readonly (readonly [string, Partial<NodeHealth>[], string[]])[] = [
  ["three healthy nodes", [{}, {}, {}], []],
  ["five healthy nodes", [{}, {}, {}, {}, {}], []],
  ["one node", [{}], ["warning NODES_FEW [] There is 1 node, and none may fail"]],
  ["two nodes", [{}, {}], [
    "warning NODES_FEW [] There are 2 nodes, and none may fail",
    "info NODES_EVEN [] There are 2 nodes, which survive no more failures than 1 would",
  ]],
  ["four nodes", [{}, {}, {}, {}], [
    "info NODES_EVEN [] There are 4 nodes, which survive no more failures than 3 would",
  ]],
  ["a server under two names", [{ runId: "x" }, {}, { runId: "x" }], [
    "error SAME_SERVER [a,c] a and c are one and the same server, which has 2 votes: a quorum of " +
    "names is none of servers",
  ]],
  ["two servers under two names each", ["x", "y", "x", "y", "z"].map((runId) => ({ runId })), [
    "error SAME_SERVER [a,c] a and c are one and the same server, which has 2 votes: a quorum of " +
    "names is none of servers",
    "error SAME_SERVER [b,d] b and d are one and the same server, which has 2 votes: a quorum of " +
    "names is none of servers",
  ]],
  ["nodes without a run_id", [{ runId: undefined }, { runId: undefined }, { runId: "" }], []],
  ["a replica", [{}, { role: "replica" }, {}], [
    "error REPLICA [b] b is a replica: no lock can be had there, and after a failover the last " +
    "ones are missing",
  ]],
  ["replicas", [{ role: "replica" }, { role: "replica" }, { role: "replica" }], [
    "error REPLICA [a,b,c] a, b and c are replicas: no lock can be had there, and after a failover " +
    "the last ones are missing",
  ]],
  ["a node of a cluster", [{ clustered: true }, {}, {}], [
    "error CLUSTER_NODE [a] a belongs to a cluster: keys of other shards are refused, and a " +
    "failover forgets the last locks",
  ]],
  ["an eviction policy with a limit", [
    {
      maxmemoryPolicy: "allkeys-lru",
      maxmemoryBytes: 1_000_000,
    },
    {},
    {},
  ], [
    "error MAY_EVICT [a] a may drop a lock to make room, by maxmemory-policy allkeys-lru",
  ]],
  ["eviction policies without a limit", [
    { maxmemoryPolicy: "volatile-ttl" },
    { maxmemoryPolicy: "allkeys-lfu" },
    {},
  ], [
    "warning MAY_EVICT [a,b] a and b may drop a lock as soon as maxmemory is set, by " +
    "maxmemory-policy volatile-ttl, allkeys-lfu",
  ]],
  ["a restart within the TTL, without a log", [{ uptimeMs: 29_000, aofEnabled: false }, {}, {}], [
    "warning RESTARTED [a] a started less than ttlMs (30000 ms) ago, without appendfsync always: " +
    "locks that are held may be forgotten there",
  ]],
  ["a restart within the TTL, with everysec", [{ uptimeMs: 0, appendfsync: "everysec" }, {}, {}], [
    "warning RESTARTED [a] a started less than ttlMs (30000 ms) ago, without appendfsync always: " +
    "locks that are held may be forgotten there",
  ]],
  ["a restart within the TTL, with who knows what", [
    {
      uptimeMs: 0,
      appendfsync: undefined,
    },
    {},
    {},
  ], [
    "warning RESTARTED [a] a started less than ttlMs (30000 ms) ago, without appendfsync always: " +
    "locks that are held may be forgotten there",
  ]],
  ["a restart within the second that uptimes may be off", [
    {
      uptimeMs: 30_000,
      aofEnabled: false,
    },
    {},
    {},
  ], [
    "warning RESTARTED [a] a started less than ttlMs (30000 ms) ago, without appendfsync always: " +
    "locks that are held may be forgotten there",
  ]],
  ["a restart before the TTL", [{ uptimeMs: 31_000, aofEnabled: false }, {}, {}], []],
  ["a restart within the TTL, with always", [{ uptimeMs: 0 }, {}, {}], []],
  ["an uptime that is not known", [{ uptimeMs: undefined, aofEnabled: false }, {}, {}], []],
  ["clocks as far apart as is allowed for", [{ clockOffsetMs: 302 }, {}, {
    clockOffsetMs: -302,
  }], []],
  ["a clock that is ahead", [{ clockOffsetMs: 303.6 }, {}, {}], [
    "warning NODE_CLOCKS_APART [a] Clocks are apart: a is 304 ms ahead of c; 302 ms are allowed for",
  ]],
  ["clocks on both sides", [{ clockOffsetMs: 5_000 }, {}, { clockOffsetMs: -400 }], [
    "warning NODE_CLOCKS_APART [a,c] Clocks are apart: a is 5000 ms ahead of b, c is 400 ms " +
    "behind b; 302 ms are allowed for",
  ]],
  ["a clock that was read slowly", [{ clockOffsetMs: 400, roundTripMs: 300 }, {}, {}], []],
  ["one of two clocks that is behind", [{ clockOffsetMs: -900 }, {}], [
    "warning NODE_CLOCKS_APART [a] Clocks are apart: a is 900 ms behind b; 302 ms are allowed for",
    "warning NODES_FEW [] There are 2 nodes, and none may fail",
    "info NODES_EVEN [] There are 2 nodes, which survive no more failures than 1 would",
  ]],
  ["a clock of this process that is behind", [
    { clockOffsetMs: 1_000 },
    { clockOffsetMs: 1_001 },
    { clockOffsetMs: 1_002 },
  ], [
    "warning CLIENT_CLOCK_APART [] This process's clock is 1001 ms behind b; 302 ms are allowed for",
  ]],
  ["one node and a clock of this process that is ahead", [{ clockOffsetMs: -1_000 }], [
    "warning CLIENT_CLOCK_APART [] This process's clock is 1000 ms ahead of a; 302 ms are allowed for",
    "warning NODES_FEW [] There is 1 node, and none may fail",
  ]],
  ["clocks that are not known", [{ clockOffsetMs: undefined }, { clockOffsetMs: undefined }, {
    clockOffsetMs: undefined,
  }], []],
  ["a node that is down", [{}, DOWN, {}], [
    "warning NODE_UNREACHABLE [b] 1 of 3 nodes cannot be asked: b: refused",
  ]],
  ["a node whose error names it", [{}, { ...DOWN, error: "Connection to b was lost" }, {}], [
    "warning NODE_UNREACHABLE [b] 1 of 3 nodes cannot be asked: Connection to b was lost",
  ]],
  ["too many nodes that are down", [{}, DOWN, DOWN], [
    "error NO_QUORUM [b,c] No lock can be had: 1 of 3 nodes answered, 2 are needed",
    "warning NODE_UNREACHABLE [b,c] 2 of 3 nodes cannot be asked: b: refused; c: refused",
  ]],
  ["a node that tells nothing", [{}, { roundTripMs: undefined, clockOffsetMs: undefined }, {}], [
    "info NOT_DIAGNOSED [b] b answers, but tells nothing of itself",
  ]],
  ["refusals", [
    { refused: { EVALSHA: "NOPERM", INFO: "NOPERM", CONFIG: "NOPERM" } },
    { refused: { PUBLISH: "NOPERM", SUBSCRIBE: "NOPERM", TIME: "NOPERM" } },
    { refused: { EVALSHA: "ERR" } },
  ], [
    "error EVALSHA_REFUSED [a,c] a and c refuse EVALSHA (NOPERM, ERR): no lock can be extended or " +
    "released",
    "warning PUBLISH_REFUSED [b] b refuses PUBLISH (NOPERM): waiting polls",
    "warning SUBSCRIBE_REFUSED [b] b refuses SUBSCRIBE (NOPERM): waiting polls",
    "info INFO_REFUSED [a] a refuses INFO (NOPERM): role, run_id, uptime, persistence and eviction " +
    "are not known",
    "info TIME_REFUSED [b] b refuses TIME (NOPERM): the clock is not known",
  ]],
];

for (const [what, changes, expected] of CASES) {
  Deno.test(`findingsOf() ${what}`, () => {
    assertEquals(lines(found(...changes)), expected);
  });
}

Deno.test("findingsOf() goes by the TTL and the drift factor of the call", () => {
  const nodes = ["a", "b", "c"].map((name) => ({ ...healthy(name), aofEnabled: false }));
  Object.assign(nodes[0], { uptimeMs: 5_000, clockOffsetMs: 100 });
  const codes = (ttlMs: number, driftFactor?: number) => {
    const settings = resolveOptions("check nodes", { ttlMs, driftFactor });
    return findingsOf(nodes, 2, settings).map(({ code }) => code);
  };
  assertEquals(codes(60_000), ["RESTARTED"]);
  assertEquals(codes(4_000), ["NODE_CLOCKS_APART"]);
  assertEquals(codes(4_000, 0.1), []);
});

Deno.test("findingsOf() gives advice that ends without a period, as messages do", () => {
  for (const [, changes] of CASES) {
    for (const { message, advice } of found(...changes)) {
      assertEquals(
        [message.endsWith("."), advice.endsWith("."), advice === ""],
        Array(3).fill(false),
      );
    }
  }
});
