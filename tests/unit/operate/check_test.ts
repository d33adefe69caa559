import { assertEquals, assertFalse, assertInstanceOf, assertMatch } from "@std/assert";
import { checkNodes } from "../../../src/operate/check.ts";
import { RedlockError } from "../../../src/errors.ts";
import type { HealthReport } from "../../../src/operate/report.ts";
import type { NodeDiagnosis } from "../../../src/quorum/node_diagnosis.ts";
import { LockOptions, type RedlockOptions } from "../../../src/options.ts";
import { ClientState } from "../../../src/lock/client_state.ts";
import { Cluster } from "../../support/cluster.ts";

const DIAGNOSIS: NodeDiagnosis = { roundTripMs: 1, clockOffsetMs: 0, role: "master" };
const OPTIONS = { nodeTimeoutMs: 100 };

type Diagnose = (timeoutMs: number) => Promise<NodeDiagnosis>;

const answer: Diagnose = () => Promise.resolve(DIAGNOSIS);
const nested = () => Promise.resolve({ ...DIAGNOSIS, refused: { SET: {} } } as never);
const hang: Diagnose = () => new Promise(() => {});

/** Nodes with these ways to be diagnosed; `undefined` cannot be diagnosed. */
function clusterOf(...diagnoses: (Diagnose | undefined)[]): Cluster {
  const cluster = new Cluster(diagnoses.length, { ttlMs: undefined });
  diagnoses.forEach((diagnose, index) => Object.assign(cluster.nodes[index], { diagnose }));
  return cluster;
}

/** Checks the nodes without the client that they belong to. */
function checkAll(cluster: Cluster, options: RedlockOptions = OPTIONS): Promise<HealthReport> {
  const { nodes, wheel } = cluster;
  const client = new ClientState(wheel, nodes, new LockOptions("check nodes", options));
  return cluster.settle(checkNodes(client, nodes, client.options.defaults));
}

function codes({ findings }: HealthReport): string[] {
  return findings.map(({ code }) => code);
}

for (
  const [what, diagnose, error] of [
    ["rejects", () => Promise.reject(new Error("refused")), "refused"],
    ["rejects with what is no error", () => Promise.reject("oh no"), "oh no"],
    ["throws", () => {
      throw new Error("thrown");
    }, "thrown"],
    ["gives no report", () => Promise.resolve(undefined!), "its diagnose() gave no report"],
    ["gives null", () => Promise.resolve(null!), "its diagnose() gave no report"],
    ["gives a report in a report", nested, "its report is nested too deep"],
    ["hangs", hang, "no answer within 100 ms"],
  ] as const
) {
  Deno.test(`check() finds a node that ${what}`, async () => {
    const cluster = clusterOf(answer, diagnose, answer);
    const report = await checkAll(cluster);
    assertEquals(report.nodes[1], { name: "node1", reachable: false, error });
    assertEquals([codes(report), report.ok], [["NODE_UNREACHABLE"], true]);
    assertEquals(cluster.timers, [0, 0]);
  });
}

Deno.test("check() finds a node whose server accepts the login and ends the connection", async () => {
  const ends = () => Promise.reject(Object.assign(new Error("lost"), { endedEarly: 1 }));
  const report = await checkAll(clusterOf(answer, ends, answer));
  assertEquals(report.nodes[1], {
    name: "node1",
    reachable: false,
    error: "lost",
    endsConnections: true,
  });
  assertEquals([codes(report), report.ok], [["ENDS_CONNECTIONS"], true]);
});

Deno.test("check() is over after one nodeTimeoutMs where every node hangs", async () => {
  const cluster = clusterOf(hang, hang, hang);
  const startMs = cluster.nowMs;
  const report = await checkAll(cluster);
  assertEquals(cluster.nowMs - startMs, 100);
  const down = Array(3).fill("NODE_UNREACHABLE");
  assertEquals([codes(report), report.ok], [["NO_QUORUM", ...down], false]);
});

Deno.test("check() only looks at a key of a node that cannot be diagnosed", async () => {
  const cluster = clusterOf(undefined, undefined, undefined);
  cluster.set("fail", 1);
  const report = await checkAll(cluster, { ...OPTIONS, keyPrefix: "app:" });
  assertEquals(report.nodes, [
    { name: "node0", reachable: true },
    { name: "node1", reachable: false, error: "node1 is down" },
    { name: "node2", reachable: true },
  ]);
  assertEquals(codes(report), ["NODE_UNREACHABLE", "NOT_DIAGNOSED", "NOT_DIAGNOSED"]);
  for (const { calls } of cluster.nodes) {
    assertEquals(calls.map(({ operation }) => operation), ["inspect"]);
    assertMatch(calls[0].keys[0], /^app:check:[0-9a-f]{40}$/u);
  }
});

Deno.test("check() makes texts of nodes one line, without control characters, of bounded length", async () => {
  const forged = "7.0\n\nerror SAME_SERVER: all is lost\u001b[2J";
  const diagnosis = {
    ...DIAGNOSIS,
    version: forged,
    maxmemoryPolicy: forged,
    runId: "x".repeat(1_000),
    otherRunIds: [forged],
    refused: { INFO: forged },
  };
  const cluster = clusterOf(
    () => Promise.resolve(diagnosis),
    () => Promise.reject(new Error(forged)),
    () => Promise.reject(new Error("long ".repeat(1_000))),
  );
  const report = await checkAll(cluster);
  const line = "7.0\\u{a}\\u{a}error SAME_SERVER: all is lost\\u{1b}[2J";
  const [forgedNode, failed, long] = report.nodes;
  assertEquals(forgedNode, {
    name: "node0",
    reachable: true,
    ...diagnosis,
    version: line,
    maxmemoryPolicy: line,
    runId: `${"x".repeat(512)}…`,
    otherRunIds: [line],
    refused: { INFO: line },
  });
  assertEquals(failed.error, line);
  assertEquals(long.error!.length, 513);
  for (const { message, advice } of report.findings) {
    assertFalse(/\p{Cc}/u.test(message + advice), message);
  }
});

Deno.test("check() returns plain data, without what is of a wrong type", async () => {
  const wrong = () => Promise.resolve({ ...DIAGNOSIS, uptimeMs: "1", refused: null } as never);
  const cluster = clusterOf(answer, hang, undefined, wrong);
  const report = await checkAll(cluster);
  assertEquals(report.nodes[3], { name: "node3", reachable: true, ...DIAGNOSIS });
  assertEquals(JSON.parse(JSON.stringify(report)), report);
});

Deno.test("check() rejects where the client is closed meanwhile", async () => {
  const cluster = clusterOf(answer, hang, hang);
  const options = new LockOptions("check nodes", OPTIONS);
  const client = new ClientState(cluster.wheel, cluster.nodes, options);
  const rejected = cluster.rejection(checkNodes(client, cluster.nodes, options.defaults));
  client.closed = true;
  cluster.wheel.announceClose();
  const error = await rejected;
  assertInstanceOf(error, RedlockError);
  assertEquals(error.message, "Cannot check nodes: the lock client is closed");
  assertEquals(cluster.timers, [0, 0]);
});
