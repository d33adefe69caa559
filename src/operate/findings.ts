/**
 * Derives problems, and what to do about them, from what the nodes reported.
 *
 * @module
 */
import { are, ofNodes } from "../messages.ts";
import { clockFindings } from "./clock_findings.ts";
import { nodeFindings, quarantineMs } from "./node_findings.ts";
import type { Finding, NodeHealth, Severity } from "./report.ts";
import type { Settings } from "../options.ts";

/** Fewer nodes than these tolerate no failure. */
const NODES_FEW = 3;
const SEVERITIES: readonly Severity[] = ["error", "warning", "info"];

/**
 * Derives the findings, those of the highest severity first.
 *
 * @param nodes What each node reported.
 * @param quorum How many nodes must agree.
 * @param settings The settings that the nodes must suit.
 */
export function findingsOf(
  nodes: readonly NodeHealth[],
  quorum: number,
  settings: Settings,
): Finding[] {
  const findings = [
    ...quorumFindings(nodes, quorum, settings),
    ...nodes.flatMap((node) => nodeFindings(node, settings)),
    ...sameServerFindings(nodes),
    ...clockFindings(nodes, settings),
    ...countFindings(nodes.length),
  ];
  const rank = ({ severity }: Finding) => SEVERITIES.indexOf(severity);
  return findings.sort((a, b) => rank(a) - rank(b));
}

function quorumFindings(
  nodes: readonly NodeHealth[],
  quorum: number,
  settings: Settings,
): Finding[] {
  const refusing = nodes.filter((node) => {
    return !node.reachable || node.refused?.SET || quarantineMs(node, settings) > 0;
  });
  const granting = nodes.length - refusing.length;
  if (granting >= quorum) return [];
  const why = nodes.length === 1
    ? "the node can grant none"
    : `${ofNodes(granting, nodes.length)} can grant one, ${are(quorum)} needed`;
  return [{
    code: "NO_QUORUM",
    severity: "error",
    nodes: refusing.map(({ name }) => name),
    message: `No lock can be acquired: ${why}`,
    advice: "Bring back nodes that are down, and mend what makes nodes refuse locks",
  }];
}

function sameServerFindings(nodes: readonly NodeHealth[]): Finding[] {
  const runs = new Map<string, string[]>();
  for (const { runId, name } of nodes) {
    if (runId) runs.set(runId, [...runs.get(runId) ?? [], name]);
  }
  return [...runs.values()].filter(({ length }) => length > 1).map((names) => ({
    code: "SAME_SERVER",
    severity: "error",
    nodes: names,
    message: `${names.join(" and ")} are the same server, which has ${names.length} votes`,
    advice: "List each server once, and run one server for each vote",
  }));
}

function countFindings(count: number): Finding[] {
  const one = count === 1; // a choice that most make, and not a mistake
  const nodes = one ? "is 1 node" : `are ${count} nodes`;
  const few: Finding = {
    code: "NODES_FEW",
    severity: one ? "info" : "warning",
    nodes: [],
    message: `There ${nodes}, and none may fail`,
    advice: `${one ? "If you need locks while it is down, use" : "Use"} three or five nodes`,
  };
  const even: Finding = {
    code: "NODES_EVEN",
    severity: "info",
    nodes: [],
    message: `There ${nodes}, which tolerate no more failures than ${count - 1} would`,
    advice: "Add a node or remove one",
  };
  return [...(count < NODES_FEW ? [few] : []), ...(count % 2 === 0 ? [even] : [])];
}
