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
    "info NODES_EVEN [] There are 2 nodes, which tolerate no more failures than 1 would",
  ]],
  ["four nodes", [{}, {}, {}, {}], [
    "info NODES_EVEN [] There are 4 nodes, which tolerate no more failures than 3 would",
  ]],
  ["a server under two names", [{ runId: "x" }, {}, { runId: "x" }], [
    "error SAME_SERVER [a,c] a and c are the same server, which has 2 votes: a majority of votes " +
    "need not be a majority of servers",
  ]],
  ["two servers under two names each", ["x", "y", "x", "y", "z"].map((runId) => ({ runId })), [
    "error SAME_SERVER [a,c] a and c are the same server, which has 2 votes: a majority of votes " +
    "need not be a majority of servers",
    "error SAME_SERVER [b,d] b and d are the same server, which has 2 votes: a majority of votes " +
    "need not be a majority of servers",
  ]],
  ["nodes without a run_id", [{ runId: undefined }, { runId: undefined }, { runId: "" }], []],
  ["a replica", [{}, { role: "replica" }, {}], [
    "error REPLICA [b] b is a replica: no lock can be acquired there, and after a failover the " +
    "latest locks are missing",
  ]],
  ["replicas", [{ role: "replica" }, { role: "replica" }, { role: "replica" }], [
    "error REPLICA [a,b,c] a, b and c are replicas: no lock can be acquired there, and after a " +
    "failover the latest locks are missing",
  ]],
  ["an active replica", [{}, {}, { role: "active-replica" }], [
    "error REPLICA [c] c is an active replica: writes from another server can overwrite locks",
  ]],
  [
    "a replica and active replicas",
    ["active-replica", "replica", "active-replica"].map((role) => ({
      role: role as NodeHealth["role"],
    })),
    [
      "error REPLICA [b] b is a replica: no lock can be acquired there, and after a failover the " +
      "latest locks are missing",
      "error REPLICA [a,c] a and c are active replicas: writes from another server can overwrite locks",
    ],
  ],
  ["an address of several servers", [{}, { otherRunIds: ["x"] }, { otherRunIds: [] }], [
    "error SEVERAL_SERVERS [b] b leads to more than one server: a lock that is set on one of them " +
    "is not seen on the others",
  ]],
  ["addresses of several servers", [{ otherRunIds: ["x", "y"] }, {}, { otherRunIds: ["x"] }], [
    "error SEVERAL_SERVERS [a,c] a and c each lead to more than one server: a lock that is set on " +
    "one of them is not seen on the others",
  ]],
  ["versions that are current", ["6.2.0", "8.1.8", "10.0.1"].map((version) => ({ version })), []],
  [
    "versions that are not numbers",
    ["unstable", "", undefined].map((version) => ({
      version,
    })),
    [],
  ],
  ["versions of development", ["255.255.255", "7", "df-v1.2"].map((version) => ({ version })), []],
  ["a version that is old", [{}, { version: "6.0.16" }, {}], [
    "info VERSION_OLD [b] b is old (version 6.0.16): locks work, but the channels of an ACL " +
    "user cannot be restricted before version 6.2",
  ]],
  [
    "versions that are old, and too old",
    ["5.0.6", "4.0.14", "6.1.240", "3.2.6", "4.0.14"].map(
      (version) => ({ version }),
    ),
    [
      "error VERSION_OLD [b,d,e] b, d and e are too old (version 4.0.14, 3.2.6): fencing tokens and " +
      "the restart guard fail there, and waiting calls poll; they need version 5",
      "info VERSION_OLD [a,c] a and c are old (version 5.0.6, 6.1.240): locks work, but the channels " +
      "of an ACL user cannot be restricted before version 6.2",
    ],
  ],
  ["a node of a cluster", [{ clustered: true }, {}, {}], [
    "error CLUSTER_NODE [a] a belongs to a cluster: keys of other shards are refused, and after a " +
    "failover the latest locks are missing",
  ]],
  ["an eviction policy with a limit", [
    {
      maxmemoryPolicy: "allkeys-lru",
      maxmemoryBytes: 1_000_000,
    },
    {},
    {},
  ], [
    "error MAY_EVICT [a] a may delete locks when its memory is full (maxmemory-policy allkeys-lru)",
  ]],
  ["eviction policies without a limit", [
    { maxmemoryPolicy: "volatile-ttl" },
    { maxmemoryPolicy: "allkeys-lfu" },
    {},
  ], [
    "warning MAY_EVICT [a,b] a and b may delete locks as soon as maxmemory is set " +
    "(maxmemory-policy volatile-ttl, allkeys-lfu)",
  ]],
  ["a restart within the TTL, without a log", [{ uptimeMs: 29_000, aofEnabled: false }, {}, {}], [
    "warning RESTARTED [a] a started less than ttlMs (30000 ms) ago without appendfsync always, " +
    "and may have forgotten locks that are still held",
  ]],
  ["a restart within the TTL, with everysec", [{ uptimeMs: 0, appendfsync: "everysec" }, {}, {}], [
    "warning RESTARTED [a] a started less than ttlMs (30000 ms) ago without appendfsync always, " +
    "and may have forgotten locks that are still held",
  ]],
  ["a restart within the TTL, with who knows what", [
    {
      uptimeMs: 0,
      appendfsync: undefined,
    },
    {},
    {},
  ], [
    "warning RESTARTED [a] a started less than ttlMs (30000 ms) ago without appendfsync always, " +
    "and may have forgotten locks that are still held",
  ]],
  ["a restart within the second that uptimes may be off", [
    {
      uptimeMs: 30_000,
      aofEnabled: false,
    },
    {},
    {},
  ], [
    "warning RESTARTED [a] a started less than ttlMs (30000 ms) ago without appendfsync always, " +
    "and may have forgotten locks that are still held",
  ]],
  ["a restart before the TTL", [{ uptimeMs: 31_000, aofEnabled: false }, {}, {}], []],
  ["a restart within the TTL, with always", [{ uptimeMs: 0 }, {}, {}], []],
  ["an uptime that is not known", [{ uptimeMs: undefined, aofEnabled: false }, {}, {}], []],
  ["clocks as far apart as is allowed for", [{ clockOffsetMs: 302 }, {}, {
    clockOffsetMs: -302,
  }], []],
  ["a clock that is ahead", [{ clockOffsetMs: 303.6 }, {}, {}], [
    "warning NODE_CLOCKS_APART [a] Clocks differ: a is 304 ms ahead of c; the drift allowance is 302 ms",
  ]],
  ["clocks on both sides", [{ clockOffsetMs: 5_000 }, {}, { clockOffsetMs: -400 }], [
    "warning NODE_CLOCKS_APART [a,c] Clocks differ: a is 5000 ms ahead of b, c is 400 ms " +
    "behind b; the drift allowance is 302 ms",
  ]],
  ["a clock that was read slowly", [{ clockOffsetMs: 400, roundTripMs: 300 }, {}, {}], []],
  ["one of two clocks that is behind", [{ clockOffsetMs: -900 }, {}], [
    "warning NODE_CLOCKS_APART [a] Clocks differ: a is 900 ms behind b; the drift allowance is 302 ms",
    "warning NODES_FEW [] There are 2 nodes, and none may fail",
    "info NODES_EVEN [] There are 2 nodes, which tolerate no more failures than 1 would",
  ]],
  ["a clock of this process that is behind", [
    { clockOffsetMs: 1_000 },
    { clockOffsetMs: 1_001 },
    { clockOffsetMs: 1_002 },
  ], [
    "warning CLIENT_CLOCK_APART [] This process's clock is 1001 ms behind b; the drift allowance is 302 ms",
  ]],
  ["one node and a clock of this process that is ahead", [{ clockOffsetMs: -1_000 }], [
    "warning CLIENT_CLOCK_APART [] This process's clock is 1000 ms ahead of a; the drift allowance is 302 ms",
    "warning NODES_FEW [] There is 1 node, and none may fail",
  ]],
  ["clocks that are not known", [{ clockOffsetMs: undefined }, { clockOffsetMs: undefined }, {
    clockOffsetMs: undefined,
  }], []],
  ["a node that is down", [{}, DOWN, {}], [
    "warning NODE_UNREACHABLE [b] 1 of 3 nodes are unavailable: b: refused",
  ]],
  ["a node whose error names it", [{}, { ...DOWN, error: "Connection to b was lost" }, {}], [
    "warning NODE_UNREACHABLE [b] 1 of 3 nodes are unavailable: Connection to b was lost",
  ]],
  ["too many nodes that are down", [{}, DOWN, DOWN], [
    "error NO_QUORUM [b,c] No lock can be acquired: 1 of 3 nodes answered, 2 are needed",
    "warning NODE_UNREACHABLE [b,c] 2 of 3 nodes are unavailable: b: refused; c: refused",
  ]],
  ["a node that tells nothing", [{}, { roundTripMs: undefined, clockOffsetMs: undefined }, {}], [
    "info NOT_DIAGNOSED [b] b answers, but reports nothing about itself",
  ]],
  ["refusals", [
    { refused: { EVALSHA: "NOPERM", INFO: "NOPERM", CONFIG: "NOPERM" } },
    { refused: { PUBLISH: "NOPERM", SUBSCRIBE: "NOPERM", TIME: "NOPERM" } },
    { refused: { EVALSHA: "ERR", EVAL: "ERR" } },
  ], [
    "error EVAL_REFUSED [c] c refuses EVAL (ERR): locks cannot be extended or released",
    "error EVALSHA_REFUSED [a,c] a and c refuse EVALSHA (NOPERM, ERR): locks cannot be " +
    "extended or released",
    "warning PUBLISH_REFUSED [b] b refuses PUBLISH (NOPERM): waiting calls poll",
    "warning SUBSCRIBE_REFUSED [b] b refuses SUBSCRIBE (NOPERM): waiting calls poll",
    "info INFO_REFUSED [a] a refuses INFO (NOPERM): version, role, run id, uptime, persistence " +
    "and eviction policy are unknown",
    "info TIME_REFUSED [b] b refuses TIME (NOPERM): the offset of its clock is unknown",
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
