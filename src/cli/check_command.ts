/**
 * `hasp check`: checks the nodes, and reports what is wrong with them.
 *
 * @module
 */
import { formatHealthReport } from "../../mod.ts";
import { PROBLEM_FOUND, SUCCESS } from "./exit_codes.ts";
import { type NodeOptions, openClient } from "./node_options.ts";
import { type Paint, paintOutput, print, printJson, type Style } from "./terminal.ts";

/** The options of `check`. */
export interface CheckOptions extends NodeOptions {
  /** Whether a program reads the output. */
  readonly json?: boolean;
  /** The TTL of the locks that the nodes are for, in milliseconds. */
  readonly ttl: number;
}

/** Checks the nodes, and returns the exit code. */
export async function check(options: CheckOptions): Promise<number> {
  await using redlock = await openClient(options);
  const report = await redlock.check({ ttlMs: options.ttl });
  if (options.json) printJson(report);
  else for (const line of colourReport(formatHealthReport(report), paintOutput())) print(line);
  return report.ok ? SUCCESS : PROBLEM_FOUND;
}

/** How the lines of a report look, by how they begin: a report has no other lines that begin so. */
const LINES: readonly (readonly [beginning: RegExp, style: Style])[] = [
  [/^\d+ of \d+ nodes answered/u, "bold"],
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
