/**
 * What `check()` returns, as plain data and as text.
 *
 * @module
 */
import type { NodeDiagnosis } from "../quorum/node_diagnosis.ts";
import { are, ofNodes } from "../messages.ts";
import { printable } from "../printable.ts";
import { check, type Rule } from "../validate.ts";

/**
 * How much a finding matters. `error`: locks cannot be acquired, or two clients may hold one lock.
 * `warning`: locks work, but one more event can break them, or waiting is slower. `info`: good to
 * know.
 */
export type Severity = "error" | "warning" | "info";

/** The stable codes of a {@linkcode Finding}, one for each kind of problem. */
export type FindingCode =
  | "ACQUIRE_REFUSED"
  | "CLIENT_CLOCK_APART"
  | "CLUSTER_NODE"
  | "ENDS_CONNECTIONS"
  | "FENCING_REFUSED"
  | "GUARD_REFUSED"
  | "INFO_REFUSED"
  | "LIST_REFUSED"
  | "MAY_EVICT"
  | "NODES_EVEN"
  | "NODES_FEW"
  | "NODE_CLOCK_APART"
  | "NODE_UNREACHABLE"
  | "NOTIFY_REFUSED"
  | "NOT_DIAGNOSED"
  | "NOT_PERSISTENT"
  | "NO_QUORUM"
  | "QUARANTINED"
  | "RELEASE_REFUSED"
  | "REPLICA"
  | "RESTARTED"
  | "SAME_SERVER"
  | "SEVERAL_SERVERS"
  | "VERSION_OLD";

/** One problem that `check()` found. */
export interface Finding {
  /** A stable identifier of the kind of problem. */
  readonly code: FindingCode;
  /** How serious the problem is. */
  readonly severity: Severity;
  /**
   * The names of the nodes concerned; empty if the finding is about their number or about this
   * process.
   */
  readonly nodes: readonly string[];
  /** What was found, and on which nodes: one line. */
  readonly message: string;
  /** What to do about it: one line. */
  readonly advice: string;
}

/**
 * The state of one node. A field is missing if it is not known. Every text that comes from the
 * server is one line without control characters, and is cut off after 512 characters.
 */
export interface NodeHealth extends Partial<NodeDiagnosis> {
  /** The node's name: its address without credentials. */
  readonly name: string;
  /** Whether the node answered in time. */
  readonly reachable: boolean;
  /** Why the node did not answer; missing if it did. */
  readonly error?: string;
  /** Whether it accepted the login and ended the connection soon after; missing if not. */
  readonly endsConnections?: true;
}

/** The state of all nodes, and the problems found: plain data, without credentials. */
export interface HealthReport {
  /** Whether no finding is an `error`. */
  readonly ok: boolean;
  /** How many nodes make a quorum. */
  readonly quorum: number;
  /** Every node, in the order in which the nodes were listed. */
  readonly nodes: readonly NodeHealth[];
  /** The problems found, those of the highest severity first. */
  readonly findings: readonly Finding[];
}

const HEADINGS = ["node", "round trip", "version", "role", "up for", "clock", "AOF", "when full"];
const UNKNOWN = "?";
const REPORT: Rule = {
  text: "must be what check() resolves to",
  holds: (report?: Partial<HealthReport>) => Array.isArray(report?.findings),
  isForm: true,
};
/** Longest line of a finding, in UTF-16 code units: it may contain errors of all nodes. */
const MESSAGE_LENGTH_MAX = 8_000;
/**
 * Units of time, the largest first: a duration is written in the first unit of which it has at
 * least two.
 */
const UNITS = [["d", 86_400_000], ["h", 3_600_000], ["min", 60_000], ["s", 1_000]] as const;

/**
 * Formats a report for people: a table with a line for each node, then each finding with what to do
 * about it. Texts of servers cannot forge lines or terminal escapes, wherever the report comes
 * from.
 *
 * @example Print a report
 * ```ts
 * import { assert } from "@std/assert";
 * import { createRedlock } from "@hasp/redlock";
 * import { check, formatHealthReport } from "@hasp/redlock/operate";
 * import { startNodes } from "@hasp/redlock/testing";
 *
 * await using nodes = await startNodes(2);
 * await using redlock = createRedlock(nodes.addresses);
 * const text = formatHealthReport(await check(redlock));
 * assert(text.includes("warning NODES_FEW: There are 2 nodes, and none may fail"));
 * ```
 *
 * @param report The result of `check()`.
 * @returns Lines of text, without a line break at the end.
 * @throws {TypeError} If `report` is something else, such as a promise of one.
 */
export function formatHealthReport(report: HealthReport): string {
  check("format report", "report", report, REPORT);
  const { nodes, quorum, findings } = report;
  const answering = nodes.filter(({ reachable }) => reachable).length;
  const lines = [
    `${ofNodes(answering, nodes.length)} answered, ${are(quorum)} a quorum`,
    "",
    ...table([HEADINGS, ...nodes.map((node) => cellsOf(node).map((cell) => printable(cell)))]),
    "",
  ];
  if (findings.length === 0) lines.push("no problems found");
  for (const { severity, code, message, advice } of findings) {
    lines.push(
      printable(`${severity} ${code}: ${message}`, [], MESSAGE_LENGTH_MAX),
      `  ${printable(advice)}`,
    );
  }
  return lines.join("\n");
}

function cellsOf(node: NodeHealth): string[] {
  const { name } = node;
  if (!node.reachable) return [name, "unavailable"]; // a finding says why
  const { roundTripMs, version = UNKNOWN, serverName, uptimeMs, clockOffsetMs } = node;
  return [
    name,
    roundTripMs === undefined ? UNKNOWN : `${roundTripMs.toFixed(1)} ms`,
    serverName === undefined ? version : `${serverName} ${version}`,
    (node.clustered ? "cluster, " : "") + (node.role ?? UNKNOWN),
    uptimeMs === undefined ? UNKNOWN : duration(uptimeMs),
    clockOffsetMs === undefined ? UNKNOWN : clock(clockOffsetMs, roundTripMs ?? 0),
    aof(node),
    node.maxmemoryPolicy ?? UNKNOWN,
  ];
}

/** When the append-only file is flushed, if there is one. */
function aof({ aofEnabled, appendfsync = UNKNOWN }: NodeHealth): string {
  if (aofEnabled === undefined) return UNKNOWN;
  return aofEnabled ? appendfsync : "off";
}

/** The offset of a clock, and its uncertainty. */
function clock(offsetMs: number, roundTripMs: number): string {
  const rounded = Math.round(offsetMs);
  return `${rounded > 0 ? "+" : ""}${rounded} ± ${Math.ceil(roundTripMs / 2)} ms`;
}

function duration(ms: number): string {
  const [unit, unitMs] = UNITS.find(([, unitMs]) => ms >= 2 * unitMs) ?? UNITS.at(-1)!;
  return `${Math.floor(ms / unitMs)} ${unit}`;
}

/**
 * Pads the cells of each column to the width of those that are not the last of their row.
 */
function table(rows: readonly (readonly string[])[]): string[] {
  const widths = HEADINGS.map((_, column) =>
    Math.max(...rows.filter((row) => column < row.length - 1).map((row) => row[column].length))
  );
  return rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column])).join("  "));
}
