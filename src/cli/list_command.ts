/**
 * `hasp list`: lists the resources that are locked, and what is left of locks.
 *
 * @module
 */
import type { RedlockEvent } from "../../mod.ts";
import { list as listLocks } from "../operate/mod.ts";
import { printable } from "../printable.ts";
import { SUCCESS } from "./exit_codes.ts";
import {
  foreignKeys,
  headings,
  type Inspected,
  rowsOf,
  toJson,
  warnOfPattern,
} from "./inspect_command.ts";
import { type NodeOptions, openClient } from "./node_options.ts";
import { formatTable } from "./table.ts";
import { paintOutput, printError, printJson, printMasked } from "./terminal.ts";

/** The options of `list`. */
export interface ListCommandOptions extends NodeOptions {
  /** Whether a program reads the output. */
  readonly json?: boolean;
}

/**
 * How many rows have columns of one width: the first of them are printed before the last are known.
 */
const ROWS = 100;

/** Lists the resources that begin with a prefix, and returns the exit code. */
export async function list(prefix: string, options: ListCommandOptions): Promise<number> {
  warnOfPattern(prefix);
  await using client = await openClient(options, { onEvent: reportFailed });
  const paint = paintOutput();
  const foreign: string[] = [];
  let rows = [headings(paint)];
  for await (const listed of listLocks(client.redlock, { prefix })) {
    const { resource } = listed;
    const inspected: Inspected = { resource, key: client.keyPrefix + resource, state: listed };
    if (options.json) {
      printJson(toJson(inspected));
      continue;
    }
    foreign.push(...foreignKeys(inspected));
    if (rows.push(...rowsOf(inspected, paint)) > ROWS) {
      formatTable(rows).forEach(printMasked);
      rows = [];
    }
  }
  if (!options.json) [...formatTable(rows), ...foreign].forEach(printMasked);
  return SUCCESS;
}

/** Reports a node whose keys are missing in a list. */
export function reportFailed(event: RedlockEvent): void {
  if (event.type !== "list-failed") return;
  const { node, error } = event;
  printError(`hasp: ${node} could not list its keys: ${printable(error.message)}`);
}
