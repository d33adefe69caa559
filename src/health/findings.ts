/**
 * Derives problems, and what to do about them, from what the nodes reported.
 *
 * @module
 */
import { clockFindings } from "./clock_findings.ts";
import { about, bySeverity, namesOf, type Nodes } from "./finding.ts";
import type { Finding } from "./report.ts";
import { serverFindings } from "./server_findings.ts";
import type { Settings } from "../options.ts";

/** Fewer nodes than these tolerate no failure. */
const NODES_FEW = 3;

/**
 * Derives the findings, those of the highest severity first.
 *
 * @param nodes What each node reported.
 * @param quorum How many nodes must agree.
 * @param settings The settings that the nodes must suit: TTL and drift factor.
 */
export function findingsOf(nodes: Nodes, quorum: number, settings: Settings): Finding[] {
  return bySeverity([
    ...ofAnswers(nodes, quorum),
    ...serverFindings(nodes, settings),
    ...clockFindings(nodes, settings),
    ...ofCount(nodes.length),
  ]);
}

function ofAnswers(nodes: Nodes, quorum: number): Finding[] {
  const silent = nodes.filter(({ reachable }) => !reachable);
  const mute = nodes.filter(({ reachable, roundTripMs }) => reachable && roundTripMs === undefined);
  const answering = nodes.length - silent.length;
  const errors = silent.map(({ name, error = "" }) => {
    return error.includes(name) ? error : `${name}: ${error}`; // connection errors contain the name
  }).join("; ");
  const noQuorum: Finding = {
    code: "NO_QUORUM",
    severity: "error",
    nodes: namesOf(silent),
    message: `No lock can be acquired: ${answering} of ${nodes.length} nodes answered, ${quorum} ` +
      "are needed",
    advice: "Bring the unavailable nodes back",
  };
  const unreachable: Finding = {
    code: "NODE_UNREACHABLE",
    severity: "warning",
    nodes: namesOf(silent),
    message: `${silent.length} of ${nodes.length} nodes are unavailable: ${errors}`,
    advice: "Check that the server runs, and that address, network, TLS and login are right",
  };
  return [
    ...(answering < quorum ? [noQuorum] : []),
    ...(silent.length > 0 ? [unreachable] : []),
    ...about(
      "NOT_DIAGNOSED",
      "info",
      mute,
      ["answers, but reports nothing about itself", "answer, but report nothing about themselves"],
      "Implement diagnose() of LockNode",
    ),
  ];
}

function ofCount(count: number): Finding[] {
  const nodes = count === 1 ? "is 1 node" : `are ${count} nodes`;
  const few: Finding = {
    code: "NODES_FEW",
    severity: "warning",
    nodes: [],
    message: `There ${nodes}, and none may fail`,
    advice: "Use three or five nodes; one is enough if you can do without locks while it is down",
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
