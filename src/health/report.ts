/**
 * What `check` finds, as plain data and as text.
 *
 * @module
 */
import type { NodeDiagnosis } from "../quorum/node_diagnosis.ts";

/**
 * How much a finding matters. `error`: locks cannot be had, or two may hold one. `warning`: they can, until
 * something else happens. `info`: good to know.
 */
export type Severity = "error" | "warning" | "info";

/** The stable codes of a {@linkcode Finding}. */
export type FindingCode =
  | "CLIENT_CLOCK_APART"
  | "CLUSTER_NODE"
  | "EVALSHA_REFUSED"
  | "INFO_REFUSED"
  | "MAY_EVICT"
  | "NODES_EVEN"
  | "NODES_FEW"
  | "NODE_CLOCKS_APART"
  | "NODE_UNREACHABLE"
  | "NOT_DIAGNOSED"
  | "NO_QUORUM"
  | "PUBLISH_REFUSED"
  | "REPLICA"
  | "RESTARTED"
  | "SAME_SERVER"
  | "SUBSCRIBE_REFUSED"
  | "TIME_REFUSED";

/** Something that does not fit. */
export interface Finding {
  /** A stable name for programs to compare. */
  readonly code: FindingCode;
  /** How much it matters. */
  readonly severity: Severity;
  /** The names of the nodes that it is about; none where it is about their number or about the client. */
  readonly nodes: readonly string[];
  /** What was found, on which nodes. */
  readonly message: string;
  /** What to do about it. */
  readonly advice: string;
}

/** How one node does. What is left out is not known. */
export interface NodeHealth extends Partial<NodeDiagnosis> {
  /** Its name: its address without credentials. */
  readonly name: string;
  /** Whether it answered. */
  readonly reachable: boolean;
  /** Why it did not. */
  readonly error?: string;
}

/** How the nodes do, and what does not fit: plain data, without credentials. */
export interface HealthReport {
  /** Whether no finding is an error. */
  readonly ok: boolean;
  /** How many nodes must agree. */
  readonly quorum: number;
  /** Every node, in the order in which they were listed. */
  readonly nodes: readonly NodeHealth[];
  /** What does not fit, the severest first. */
  readonly findings: readonly Finding[];
}

const HEADINGS = ["node", "answers in", "version", "role", "up for", "clock", "disk", "when full"];
const UNKNOWN = "?";
/** Units of time, the longest first: what is as long as two of one is told in it. */
const UNITS = [["d", 86_400_000], ["h", 3_600_000], ["min", 60_000], ["s", 1_000]] as const;

/**
 * Writes a report for people to read: a line for each node, then each finding with what to do about it.
 *
 * @example A report on the screen
 * ```ts
 * import { assert } from "@std/assert";
 * import { createRedlock, formatHealthReport } from "@hasp/redlock";
 * import { startNodes } from "@hasp/redlock/testing";
 *
 * await using nodes = await startNodes(2);
 * await using redlock = createRedlock(nodes.addresses);
 * const text = formatHealthReport(await redlock.check());
 * assert(text.includes("warning NODES_FEW: There are 2 nodes, and none may fail"));
 * ```
 *
 * @param report What `check` returned.
 * @returns Lines of text, without a line end behind the last.
 */
export function formatHealthReport(report: HealthReport): string {
  const { nodes, quorum, findings } = report;
  const answering = nodes.filter(({ reachable }) => reachable).length;
  const localQueues = [
    `${answering} of ${nodes.length} nodes answered, ${quorum} are a quorum`,
    "",
    ...table([HEADINGS, ...nodes.map(cellsOf)]),
    "",
  ];
  if (findings.length === 0) localQueues.push("nothing found amiss");
  for (const { severity, code, message, advice } of findings) {
    localQueues.push(`${severity} ${code}: ${message}`, `  ${advice}`);
  }
  return localQueues.join("\n");
}

function cellsOf(node: NodeHealth): string[] {
  if (!node.reachable) return [node.name, node.error ?? UNKNOWN];
  const { roundTripMs, version, role, uptimeMs, clockOffsetMs, maxmemoryPolicy } = node;
  return [
    node.name,
    roundTripMs === undefined ? UNKNOWN : `${roundTripMs.toFixed(1)} ms`,
    version ?? UNKNOWN,
    (node.clustered ? "cluster, " : "") + (role ?? UNKNOWN),
    uptimeMs === undefined ? UNKNOWN : duration(uptimeMs),
    clockOffsetMs === undefined ? UNKNOWN : clock(clockOffsetMs, roundTripMs ?? 0),
    disk(node),
    maxmemoryPolicy ?? UNKNOWN,
  ];
}

function disk({ aofEnabled, appendfsync = UNKNOWN }: NodeHealth): string {
  if (aofEnabled === undefined) return UNKNOWN;
  return aofEnabled ? appendfsync : "no log";
}

/** How far ahead it is, and how far that may be off. */
function clock(offsetMs: number, roundTripMs: number): string {
  const rounded = Math.round(offsetMs);
  return `${rounded > 0 ? "+" : ""}${rounded || 0} ± ${Math.ceil(roundTripMs / 2)} ms`;
}

function duration(ms: number): string {
  const [unit, unitMs] = UNITS.find(([, unitMs]) => ms >= 2 * unitMs) ?? UNITS.at(-1)!;
  return `${Math.floor(ms / unitMs)} ${unit}`;
}

/** Pads the cells of each column to one width; what stands alone at the end of its line has none. */
function table(rows: readonly (readonly string[])[]): string[] {
  const widths = HEADINGS.map((_, column) =>
    Math.max(...rows.filter((row) => column < row.length - 1).map((row) => row[column].length))
  );
  return rows.map((row) =>
    row.map((cell, column) => column < row.length - 1 ? cell.padEnd(widths[column]) : cell)
      .join("  ")
  );
}
