/**
 * Helpers for findings: their order, and sentences about one node or several.
 *
 * @module
 */
import type { Finding, FindingCode, NodeHealth, Severity } from "./report.ts";

/** What the nodes reported. */
export type Nodes = readonly NodeHealth[];
/** The rest of a sentence that begins with the name of one node, or with the names of several. */
export type Predicate = readonly [one: string, several: string];

const SEVERITIES: readonly Severity[] = ["error", "warning", "info"];

/** Sorts findings by severity, the highest first, and otherwise leaves their order as it is. */
export function bySeverity(findings: readonly Finding[]): Finding[] {
  const rank = ({ severity }: Finding) => SEVERITIES.indexOf(severity);
  return [...findings].sort((a, b) => rank(a) - rank(b));
}

/** A finding about some nodes; no finding if there are no such nodes. */
export function about(
  code: FindingCode,
  severity: Severity,
  concerned: Nodes,
  [one, several]: Predicate,
  advice: string,
): Finding[] {
  if (concerned.length === 0) return [];
  const nodes = namesOf(concerned);
  const message = `${listed(nodes)} ${nodes.length === 1 ? one : several}`;
  return [{ code, severity, nodes, message, advice }];
}

/** A predicate that reads the same about one node and about several. */
export function both(predicate: string): Predicate {
  return [predicate, predicate];
}

/** The names of nodes. */
export function namesOf(nodes: Nodes): string[] {
  return nodes.map(({ name }) => name);
}

/** The distinct values of `values`, separated by commas. */
export function distinct(values: readonly (string | undefined)[]): string {
  return [...new Set(values)].join(", ");
}

/** `a`, `a and b`, `a, b and c`. */
function listed(names: readonly string[]): string {
  if (names.length === 1) return names[0];
  return `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
