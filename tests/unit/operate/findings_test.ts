import { assertEquals } from "@std/assert";
import { findingsOf } from "../../../src/operate/findings.ts";
import type { Finding, NodeHealth } from "../../../src/operate/report.ts";
import { LockOptions, type RedlockOptions } from "../../../src/options.ts";

type Changes = Readonly<Record<string, Partial<NodeHealth>>>;

// a TTL of 30 s, and so 302 ms of drift
const SETTINGS = new LockOptions("check nodes", {}).defaults;

/** The nodes with these one-letter names, healthy but for `changes`. */
function nodesOf(names: string, changes: Changes): NodeHealth[] {
  return [...names].map((name) => ({
    name,
    reachable: true,
    roundTripMs: 1,
    clockOffsetMs: 0,
    version: "7.0.15",
    role: "master",
    runId: `run-of-${name}`,
    uptimeMs: 86_400_000,
    clustered: false,
    aofEnabled: true,
    appendfsync: "always",
    maxmemoryBytes: 0,
    maxmemoryPolicy: "noeviction",
    ...changes[name],
  }));
}

function found(names: string, changes: Changes): Finding[] {
  return findingsOf(nodesOf(names, changes), Math.floor(names.length / 2) + 1, SETTINGS);
}

/** Gives each node one value of a property. */
function each(property: keyof NodeHealth, values: Readonly<Record<string, unknown>>): Changes {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, { [property]: value }]),
  );
}

const DOWN = {
  reachable: false,
  error: "refused",
  runId: undefined,
  roundTripMs: undefined,
  clockOffsetMs: undefined,
};
const TWO = [
  "warning NODES_FEW [] There are 2 nodes, and none may fail",
  "info NODES_EVEN [] There are 2 nodes, which tolerate no more failures than 1 would",
];
const SAME = "are the same server, which has 2 votes";
const REPLICA = "no lock can be acquired there, and after a failover the latest locks are missing";
const CLUSTER =
  "keys of other shards are refused, and after a failover the latest locks are missing";
const NO_RELEASE = "locks cannot be extended or released there";
const ACTIVE = "writes from another server can overwrite locks";
const SEVERAL =
  "to more than one server: a lock that is set on one of them is not seen on the others";
const TOO_OLD =
  "fencing tokens, the restart guard and shared mode fail there, and waiting calls poll";
const RESTARTED = "warning RESTARTED [a] a started less than ttlMs (30000 ms) ago without " +
  "appendfsync always, and may have forgotten locks that are still held";
const NOT_PERSISTENT = "warning NOT_PERSISTENT [a] a has no append-only file: after a restart it " +
  "forgets locks that are still held";
const DRIFT = "the drift allowance is 302 ms";

/** The nodes, what differs on them, and what is to be found. */
const CASES: readonly (readonly [names: string, Changes, ...expected: string[]])[] = [
  ["abc", {}],
  ["abcde", {}],
  ["a", {}, "info NODES_FEW [] There is 1 node, and none may fail"],
  ["ab", {}, ...TWO],
  [
    "abcd",
    {},
    "info NODES_EVEN [] There are 4 nodes, which tolerate no more failures than 3 would",
  ],

  // Servers
  ["abc", each("runId", { a: "x", c: "x" }), `error SAME_SERVER [a,c] a and c ${SAME}`],
  [
    "abcde",
    each("runId", { a: "x", b: "y", c: "x", d: "y" }),
    `error SAME_SERVER [a,c] a and c ${SAME}`,
    `error SAME_SERVER [b,d] b and d ${SAME}`,
  ],
  ["abc", each("runId", { a: undefined, b: undefined, c: "" })],
  ["abc", each("role", { b: "replica" }), `error REPLICA [b] b is a replica: ${REPLICA}`],
  [
    "abc",
    each("role", { a: "replica", b: "replica", c: "replica" }),
    ...["a", "b", "c"].map((name) => `error REPLICA [${name}] ${name} is a replica: ${REPLICA}`),
  ],
  [
    "abc",
    each("role", { c: "active-replica" }),
    `error REPLICA [c] c is an active replica: ${ACTIVE}`,
  ],
  [
    "abc",
    each("role", { a: "active-replica", b: "replica", c: "active-replica" }),
    `error REPLICA [a] a is an active replica: ${ACTIVE}`,
    `error REPLICA [b] b is a replica: ${REPLICA}`,
    `error REPLICA [c] c is an active replica: ${ACTIVE}`,
  ],
  ["abc", each("otherRunIds", { b: ["x"], c: [] }), `error SEVERAL_SERVERS [b] b leads ${SEVERAL}`],
  [
    "abc",
    each("otherRunIds", { a: ["x", "y"], c: ["x"] }),
    `error SEVERAL_SERVERS [a] a leads ${SEVERAL}`,
    `error SEVERAL_SERVERS [c] c leads ${SEVERAL}`,
  ],
  ["abc", each("version", { a: "6.2.0", b: "8.1.8", c: "10.0.1" })],
  ["abc", each("version", { a: "unstable", b: "", c: undefined })],
  ["abc", each("version", { a: "255.255.255", b: "7", c: "df-v1.2" })],
  ["abc", each("version", { b: "5.0.0", c: "6.0.16" })],
  [
    "abcde",
    each("version", { a: "5.0.6", b: "4.0.14", c: "6.1.240", d: "3.2.6" }),
    `error VERSION_OLD [b] b is too old (version 4.0.14): ${TOO_OLD}`,
    `error VERSION_OLD [d] d is too old (version 3.2.6): ${TOO_OLD}`,
  ],
  [
    "abc",
    each("clustered", { a: true }),
    `error CLUSTER_NODE [a] a belongs to a cluster: ${CLUSTER}`,
  ],
  [
    "abc",
    { a: { maxmemoryPolicy: "allkeys-lru", maxmemoryBytes: 1_000_000 } },
    "error MAY_EVICT [a] a may delete locks when its memory is full (maxmemory-policy allkeys-lru)",
  ],
  [
    "abc",
    each("maxmemoryPolicy", { a: "volatile-ttl", b: "allkeys-lfu" }),
    "warning MAY_EVICT [a] a may delete locks as soon as maxmemory is set " +
    "(maxmemory-policy volatile-ttl)",
    "warning MAY_EVICT [b] b may delete locks as soon as maxmemory is set " +
    "(maxmemory-policy allkeys-lfu)",
  ],

  // Restarts; an uptime may be a second too long
  ["abc", { a: { uptimeMs: 29_000, aofEnabled: false } }, RESTARTED],
  ["abc", { a: { uptimeMs: 0, appendfsync: "everysec" } }, RESTARTED],
  ["abc", { a: { uptimeMs: 0, appendfsync: undefined } }, RESTARTED],
  ["abc", { a: { uptimeMs: 30_000, aofEnabled: false } }, RESTARTED],
  ["abc", { a: { uptimeMs: 31_000, appendfsync: "everysec" } }],
  ["abc", { a: { uptimeMs: 31_000, aofEnabled: false } }, NOT_PERSISTENT],
  ["abc", { a: { aofEnabled: undefined, appendfsync: undefined } }],
  ["abc", { a: { uptimeMs: 0 } }],
  ["abc", { a: { uptimeMs: undefined, aofEnabled: false } }, NOT_PERSISTENT],

  // Clocks
  ["abc", each("clockOffsetMs", { a: 302, c: -302 })],
  [
    "abc",
    each("clockOffsetMs", { a: 303.6 }),
    `warning NODE_CLOCK_APART [a] The clock of a is 304 ms ahead of that of c; ${DRIFT}`,
  ],
  [
    "abc",
    each("clockOffsetMs", { a: 5_000, c: -400 }),
    `warning NODE_CLOCK_APART [a] The clock of a is 5000 ms ahead of that of b; ${DRIFT}`,
    `warning NODE_CLOCK_APART [c] The clock of c is 400 ms behind that of b; ${DRIFT}`,
  ],
  ["abc", { a: { clockOffsetMs: 400, roundTripMs: 300 } }],
  [
    "ab",
    each("clockOffsetMs", { a: -900 }),
    `warning NODE_CLOCK_APART [a] The clock of a is 900 ms behind that of b; ${DRIFT}`,
    ...TWO,
  ],
  [
    "abc",
    each("clockOffsetMs", { a: 1_000, b: 1_001, c: 1_002 }),
    `warning CLIENT_CLOCK_APART [] The clock of this process is 1001 ms behind that of b; ${DRIFT}`,
  ],
  [
    "a",
    each("clockOffsetMs", { a: -1_000 }),
    `warning CLIENT_CLOCK_APART [] The clock of this process is 1000 ms ahead of that of a; ${DRIFT}`,
    "info NODES_FEW [] There is 1 node, and none may fail",
  ],
  ["abc", each("clockOffsetMs", { a: undefined, b: undefined, c: undefined })],

  // Answers
  ["abc", { b: DOWN }, "warning NODE_UNREACHABLE [b] b is unavailable: refused"],
  [
    "abc",
    { b: { ...DOWN, endsConnections: true } },
    "warning ENDS_CONNECTIONS [b] b answers the login, then ends the connection: refused",
  ],
  [
    "abc",
    { b: DOWN, c: DOWN },
    "error NO_QUORUM [b,c] No lock can be acquired: 1 of 3 nodes can grant one, 2 are needed",
    "warning NODE_UNREACHABLE [b] b is unavailable: refused",
    "warning NODE_UNREACHABLE [c] c is unavailable: refused",
  ],
  [
    "abc",
    { b: { roundTripMs: undefined, clockOffsetMs: undefined } },
    "info NOT_DIAGNOSED [b] b answers, but reports nothing about itself",
  ],
  [
    "abc",
    each("refused", {
      a: { EVALSHA: "NOPERM", GET: "in scripts", INFO: "NOPERM", CONFIG: "NOPERM" },
      b: { PUBLISH: "NOPERM", SUBSCRIBE: "NOPERM", TIME: "NOPERM" },
      c: { SET: "NOPERM", EVAL: "NOPERM", SCAN: "NOPERM" },
    }),
    `error RELEASE_REFUSED [a] a refuses EVALSHA, GET (NOPERM, in scripts): ${NO_RELEASE}`,
    "error ACQUIRE_REFUSED [c] c refuses SET (NOPERM): no lock can be acquired there",
    `error RELEASE_REFUSED [c] c refuses EVAL (NOPERM): ${NO_RELEASE}`,
    "warning NOTIFY_REFUSED [b] b refuses PUBLISH, SUBSCRIBE, TIME (NOPERM): waiting calls poll, and calls in shared mode may get no lock there",
    "info INFO_REFUSED [a] a refuses INFO (NOPERM): check() sees a part of its state only",
    "info INFO_REFUSED [b] b refuses TIME (NOPERM): check() sees a part of its state only",
    "info LIST_REFUSED [c] c refuses SCAN (NOPERM): list() does not see its keys",
  ],
  [
    "abc",
    each("refused", { a: { SET: "OOM", ZADD: "OOM" }, b: { SET: "MISCONF", DEL: "MISCONF" } }),
    "error NO_QUORUM [a,b] No lock can be acquired: 1 of 3 nodes can grant one, 2 are needed",
    "error ACQUIRE_REFUSED [a] a refuses SET (OOM): at most calls that wait get a lock there",
    "error ACQUIRE_REFUSED [b] b refuses SET (MISCONF): no lock can be acquired there",
  ],
  [
    "abc",
    { a: { role: "replica", refused: { SET: "READONLY" } } },
    `error REPLICA [a] a is a replica: ${REPLICA}`,
  ],
  [
    "abc",
    { a: { clustered: true, refused: { SET: "CLUSTERDOWN" } } },
    `error CLUSTER_NODE [a] a belongs to a cluster: ${CLUSTER}`,
  ],
];

for (const [names, changes, ...expected] of CASES) {
  Deno.test(`findingsOf() of ${names} with ${Deno.inspect(changes)} finds ${expected.length}`, () => {
    const findings = found(names, changes);
    const lines = findings.map(({ severity, code, nodes, message }) =>
      `${severity} ${code} [${nodes.join()}] ${message}`
    );
    assertEquals(lines, expected);
    for (const { message, advice } of findings) {
      assertEquals([/\.$/u.test(message), /[^.]$/u.test(advice)], [false, true]);
    }
  });
}

Deno.test("findingsOf() goes by the TTL and the drift factor of the call", () => {
  const nodes = nodesOf("abc", { a: { uptimeMs: 5_000, clockOffsetMs: 100, aofEnabled: false } });
  const codes = (ttlMs: number, driftFactor?: number) => {
    const settings = new LockOptions("check nodes", { ttlMs, driftFactor }).defaults;
    return findingsOf(nodes, 2, settings).map(({ code }) => code);
  };
  assertEquals(codes(60_000), ["RESTARTED"]);
  assertEquals(codes(4_000), ["NOT_PERSISTENT", "NODE_CLOCK_APART"]);
  assertEquals(codes(4_000, 0.1), ["NOT_PERSISTENT"]);
});

for (
  const [uptimeMs, markerAgeMs, left] of [
    [31_000, 30_000, undefined],
    [31_000, undefined, undefined],
    [undefined, undefined, undefined],
    [10_000, 86_400_000, "21 s"],
    [86_400_000, 4_000, "26 s"],
    [86_400_000, 0, "30 s from its first vote on"],
  ] as const
) {
  Deno.test(`findingsOf() of a node with the guard, up for ${uptimeMs} ms, with a marker of ${markerAgeMs} ms`, () => {
    const settings = new LockOptions("check nodes", { restartGuardMs: 30_000 }).defaults;
    const nodes = nodesOf("a", { a: { uptimeMs, markerAgeMs, aofEnabled: false } });
    const messages = findingsOf(nodes, 1, settings).map(({ message }) => message);
    const expected = left === undefined ? [] : [
      "No lock can be acquired: the node can grant none",
      "a was restarted or emptied, or is new to the restart guard: its votes do not count for " +
      left,
    ];
    assertEquals(messages, [...expected, "There is 1 node, and none may fail"]);
  });
}

Deno.test("findingsOf() goes by what the settings ask of the nodes", () => {
  const refused = { INCR: "NOPERM", INFO: "NOPERM" };
  const nodes = nodesOf("abc", { a: { aofEnabled: false }, b: { refused } });
  const codes = (options: RedlockOptions) => {
    const settings = new LockOptions("check nodes", options).defaults;
    return findingsOf(nodes, 2, settings).map(({ code }) => code);
  };
  assertEquals(codes({}), ["NOT_PERSISTENT", "INFO_REFUSED"]);
  assertEquals(codes({ restartGuardMs: 30_000 }), ["GUARD_REFUSED", "INFO_REFUSED"]);
  assertEquals(codes({ fencing: true }), ["FENCING_REFUSED", "NOT_PERSISTENT", "INFO_REFUSED"]);
});

for (
  const [reply, advice] of [
    ["OOM", "Raise maxmemory, or delete data"],
    ["MISCONF", "Make room on the server's disk"],
    ["ERR", "Use no Sentinel, and take rename-command out of the server's configuration"],
    ["NOPERM", "Allow what is refused; in an ACL: ~app:* +set"],
  ]
) {
  Deno.test(`findingsOf() advises what to do about SET that is refused with ${reply}`, () => {
    const settings = new LockOptions("check nodes", { keyPrefix: "app:" }).defaults;
    const nodes = nodesOf("abc", { a: { refused: { SET: reply } } });
    assertEquals(findingsOf(nodes, 2, settings)[0].advice, advice);
  });
}
