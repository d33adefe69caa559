/**
 * `check()`: asks every node how it is set up.
 *
 * @module
 */
import { askNode } from "../quorum/ask_node.ts";
import { closedError } from "../messages.ts";
import { findingsOf } from "./findings.ts";
import type { HealthReport, NodeHealth } from "./report.ts";
import type { NodeSet, QuorumNode } from "../quorum/quorum_node.ts";
import type { NodeDiagnosis } from "../quorum/node_diagnosis.ts";
import type { RedlockOptions, Settings } from "../options.ts";
import { printable } from "../printable.ts";
import { operated } from "../redis_node/operated_node.ts";
import { insideOf, type Redlock } from "../redlock.ts";

/**
 * What the resource of a check begins with; random digits follow, so that no client locks it. A
 * name that a lock could have: a right for names that begin with `hasp:` would not do for locks.
 */
const CHECKED = "check:";

/** What is asked of a node. */
type AskedNode = Pick<QuorumNode, "name" | "readyAtMs" | "inspect" | "diagnose">;

/** The types of the fields of a report. */
const TYPES: Readonly<Record<keyof NodeDiagnosis, "boolean" | "number" | "object" | "string">> = {
  roundTripMs: "number",
  clockOffsetMs: "number",
  serverName: "string",
  version: "string",
  role: "string",
  runId: "string",
  otherRunIds: "object",
  uptimeMs: "number",
  markerAgeMs: "number",
  clustered: "boolean",
  aofEnabled: "boolean",
  appendfsync: "string",
  maxmemoryBytes: "number",
  maxmemoryPolicy: "string",
  refused: "object",
};

/**
 * Checks how every node is configured and whether locks work there, and reports problems: a server
 * that is listed twice, a replica, a full memory, a missing right, an eviction policy that may
 * delete locks, clocks that differ, and more. Changes nothing: it tries commands on keys that are
 * missing, and reads the marker of the restart guard. A node that does not answer is a finding, not
 * an error; each node has `nodeTimeoutMs` to answer, counted from when its first connection is
 * ready.
 *
 * A report without findings is no proof: for example, two servers on one disk look independent.
 *
 * @param redlock The client whose nodes are checked.
 * @param options Options that replace the client's own for this call; only `ttlMs`, `driftFactor`,
 * `nodeTimeoutMs`, `keyPrefix`, `fencing` and `restartGuardMs` have an effect.
 * @returns What each node reports about itself, and the findings, each with advice.
 * @throws {RedlockError} If the client is closed (`CLOSED`).
 * @throws {TypeError} If `redlock` is no client, or an option is unknown or of the wrong type.
 * @throws {RangeError} If an option is out of range.
 */
export async function check(redlock: Redlock, options?: RedlockOptions): Promise<HealthReport> {
  const client = insideOf(redlock, "check nodes");
  const settings = client.options.resolve("check nodes", options);
  return await checkNodes(client, client.nodes.map(operated), settings);
}

/**
 * Asks every node, and derives the findings.
 *
 * @param client The client.
 * @param nodes Its nodes, as operators ask them.
 * @param settings The settings that the nodes must suit: TTL, node timeout, drift factor and key
 * prefix.
 * @throws {RedlockError} If the client is closed, or is closed while the nodes are asked.
 */
export async function checkNodes(
  client: NodeSet,
  nodes: readonly AskedNode[],
  settings: Settings,
): Promise<HealthReport> {
  const reports = await Promise.all(nodes.map((node) => ask(client, node, settings)));
  if (client.closed) throw closedError("check nodes", []);
  const { quorum } = client;
  const findings = findingsOf(reports, quorum, settings);
  const ok = findings.every(({ severity }) => severity !== "error");
  return { ok, quorum, nodes: reports, findings };
}

/** Asks one node; never rejects. */
async function ask(
  nodeSet: NodeSet,
  node: AskedNode,
  { nodeTimeoutMs, keyPrefix }: Settings,
): Promise<NodeHealth> {
  const key = keyPrefix + CHECKED + nodeSet.wheel.random.value();
  const question = async (): Promise<NodeDiagnosis | undefined> => {
    if (node.diagnose) return diagnosisOf(await node.diagnose(nodeTimeoutMs, key));
    await node.inspect(key);
    return undefined;
  };
  const { outcome, value, error } = await askNode(nodeSet, node, question, nodeTimeoutMs);
  const { name } = node;
  if (outcome === "answered") return { name, reachable: true, ...value };
  const { endedEarly } = (error ?? {}) as { endedEarly?: unknown };
  return {
    name,
    reachable: false,
    error: printable(error?.message ?? `no answer within ${nodeTimeoutMs} ms`),
    ...(endedEarly ? { endsConnections: true } : {}),
  };
}

/**
 * The fields of a report that are of their types, with every text printable, so that the findings
 * made of it are printable too. Others are left out: the node may be anybody's.
 */
function diagnosisOf(report: NodeDiagnosis): NodeDiagnosis {
  if (typeof report !== "object" || report === null) {
    throw new TypeError("its diagnose() gave no report");
  }
  const fields = Object.entries(TYPES).flatMap(([name, type]) => {
    const value: unknown = report[name as keyof NodeDiagnosis];
    if (typeof value !== type || value === null) return [];
    return [[name, type === "object" ? printableWords(value as object) : printableWord(value)]];
  });
  return Object.fromEntries(fields);
}

function printableWords(words: object): object {
  if (Array.isArray(words)) return words.map(printableWord);
  return Object.fromEntries(
    Object.entries(words).map(([name, word]) => [name, printableWord(word)]),
  );
}

function printableWord(word: unknown): unknown {
  if (typeof word === "object") throw new TypeError("its report is nested too deep");
  return typeof word === "string" ? printable(word) : word;
}
