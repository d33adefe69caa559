/**
 * The doctor: asks every node how it is set up.
 *
 * @module
 */
import { askNode } from "../quorum/ask_node.ts";
import { RedlockError } from "../errors.ts";
import { findingsOf } from "./findings.ts";
import type { HealthReport, NodeHealth } from "./report.ts";
import type { LockNode, NodeDiagnosis } from "../quorum/lock_node.ts";
import type { Settings } from "../options.ts";
import type { Electorate } from "../quorum/round.ts";

/** What is asked for where a node can do no more than look at a key; nobody locks it. */
const KEY = "hasp:doctor";

/**
 * Asks every node, and derives what does not fit.
 *
 * @param electorate Who is asked.
 * @param settings What it is to fit.
 * @throws {RedlockError} If the client is closed, or is closed meanwhile.
 */
export async function check(electorate: Electorate, settings: Settings): Promise<HealthReport> {
  checkOpen(electorate);
  const nodes = await Promise.all(electorate.nodes.map((node) => ask(electorate, node, settings)));
  checkOpen(electorate);
  const { quorum } = electorate;
  const findings = findingsOf(nodes, quorum, settings);
  return { ok: findings.every(({ severity }) => severity !== "error"), quorum, nodes, findings };
}

function checkOpen({ closed }: Electorate): void {
  if (closed) throw new RedlockError("Cannot check nodes: the client is closed", { resources: [] });
}

/** Asks one node; never rejects. */
async function ask(
  { wheel }: Electorate,
  node: LockNode,
  { nodeTimeoutMs, keyPrefix }: Settings,
): Promise<NodeHealth> {
  const question = async (): Promise<NodeDiagnosis | undefined> => {
    if (node.diagnose) return await node.diagnose(nodeTimeoutMs);
    await node.inspect(keyPrefix + KEY);
    return undefined;
  };
  const { outcome, value, error } = await askNode(wheel, node, question, nodeTimeoutMs);
  const { name } = node;
  if (outcome === "answered") return { name, reachable: true, ...value };
  return {
    name,
    reachable: false,
    error: error?.message ?? `no answer within ${nodeTimeoutMs} ms`,
  };
}
