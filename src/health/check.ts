/**
 * The doctor: asks every node how it is set up.
 *
 * @module
 */
import { askNode } from "../quorum/ask_node.ts";
import { RedlockError } from "../errors.ts";
import { findingsOf } from "./findings.ts";
import type { HealthReport, NodeHealth } from "./report.ts";
import type { LockNode } from "../quorum/lock_node.ts";
import type { NodeDiagnosis } from "../quorum/node_diagnosis.ts";
import type { Settings } from "../options.ts";
import type { NodeSet } from "../quorum/round.ts";

/** The nodes of a client, and whether it was closed. */
type CheckedClient = NodeSet & { readonly closed: boolean };

/** What is asked for where a node can do no more than look at a key; nobody locks it. */
const KEY = "hasp:doctor";

/**
 * Asks every node, and derives what does not fit.
 *
 * @param client Who is asked.
 * @param settings What it is to fit.
 * @throws {RedlockError} If the client is closed, or is closed meanwhile.
 */
export async function check(client: CheckedClient, settings: Settings): Promise<HealthReport> {
  checkOpen(client);
  const nodes = await Promise.all(client.nodes.map((node) => ask(client, node, settings)));
  checkOpen(client);
  const { quorum } = client;
  const findings = findingsOf(nodes, quorum, settings);
  return { ok: findings.every(({ severity }) => severity !== "error"), quorum, nodes, findings };
}

function checkOpen({ closed }: CheckedClient): void {
  if (closed) throw new RedlockError("Cannot check nodes: the client is closed", { resources: [] });
}

/** Asks one node; never rejects. */
async function ask(
  { wheel }: NodeSet,
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
