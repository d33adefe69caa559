/**
 * `hasp check`: checks the nodes, and reports what is wrong with them.
 *
 * @module
 */
import { check as checkNodes, formatHealthReport, type Severity } from "../operate/mod.ts";
import { PROBLEM_FOUND, SUCCESS } from "./exit_codes.ts";
import { type NodeOptions, openClient } from "./node_options.ts";
import { type Paint, paintOutput, print, printJson, type Style } from "./terminal.ts";

/** The options of `check`. */
export interface CheckOptions extends NodeOptions {
  /** Whether a program reads the output. */
  readonly json?: boolean;
  /** The TTL of the locks that the nodes are for, in milliseconds. */
  readonly ttl: number;
  /** Whether the locks have fencing tokens. */
  readonly fencing: boolean;
  /** How long a restarted node does not count, in milliseconds. */
  readonly restartGuard?: number;
  /** The least severity of a finding that is a failure. */
  readonly failOn: Severity;
}

/** The most severe first, as the findings of a report. */
const SEVERITIES: readonly Severity[] = ["error", "warning", "info"];

/** Checks the nodes, and returns the exit code. */
export async function check(options: CheckOptions): Promise<number> {
  await using client = await openClient(options);
  const { ttl: ttlMs, fencing, restartGuard: restartGuardMs, failOn } = options;
  const report = await checkNodes(client.redlock, { ttlMs, fencing, restartGuardMs });
  if (options.json) printJson(report, 2);
  else for (const line of colourReport(formatHealthReport(report), paintOutput())) print(line);
  const [worst] = report.findings;
  const isFailure = worst && SEVERITIES.indexOf(worst.severity) <= SEVERITIES.indexOf(failOn);
  return isFailure ? PROBLEM_FOUND : SUCCESS;
}

/** How the lines of a report look, by how they begin: a report has no other lines that begin so. */
const LINES: readonly (readonly [beginning: RegExp, style: Style])[] = [
  [/^\d+ of \d+ nodes? answered/u, "bold"],
  [/^node {2,}.*/u, "dim"],
  [/^no problems found/u, "green"],
  [/^error [A-Z_]+:/u, "red"],
  [/^warning [A-Z_]+:/u, "yellow"],
  [/^info [A-Z_]+:/u, "blue"],
];

/** The lines of a report for people, with their beginnings in colour. */
export function colourReport(report: string, paint: Paint): string[] {
  return report.split("\n").map((line) => {
    const [beginning, style] = LINES.find(([beginning]) => beginning.test(line)) ?? [];
    return beginning ? line.replace(beginning, (text) => paint(style!, text)) : line;
  });
}
