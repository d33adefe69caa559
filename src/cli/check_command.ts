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
  else print(colourReport(formatHealthReport(report), paintOutput()));
  const [worst] = report.findings;
  const isFailure = worst && SEVERITIES.indexOf(worst.severity) <= SEVERITIES.indexOf(failOn);
  return isFailure ? PROBLEM_FOUND : SUCCESS;
}

/** How the lines of a report begin that have a colour there: no other line begins so. */
const BEGINNINGS =
  /^(?:\d+ of \d+ nodes? answered|node {2,}.*|no problems found|(?:error|warning|info) [A-Z_]+:)/gmu;
/** The colours, by the first word; that of a number is missing. */
const STYLES: Readonly<Record<string, Style>> = {
  node: "dim",
  no: "green",
  error: "red",
  warning: "yellow",
  info: "blue",
};

/** A report for people, with the beginnings of its lines in colour. */
export function colourReport(report: string, paint: Paint): string {
  return report.replaceAll(
    BEGINNINGS,
    (text) => paint(STYLES[text.split(" ", 1)[0]] ?? "bold", text),
  );
}
