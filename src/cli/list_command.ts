/**
 * `hasp list`: lists the resources that are locked, and what is left of locks.
 *
 * @module
 */
import type { RedlockEvent } from "../../mod.ts";
import { list as listLocks, type ListedLock } from "../operate/mod.ts";
import { printable } from "../printable.ts";
import { SUCCESS } from "./exit_codes.ts";
import { answersOf, cellsOf, HEADINGS, toJson, UNKNOWN } from "./inspect_command.ts";
import { type NodeOptions, openClient } from "./node_options.ts";
import { type Cell, formatTable } from "./table.ts";
import { paintOutput, print, printError, printJson } from "./terminal.ts";

/** The options of `list`. */
export interface ListCommandOptions extends NodeOptions {
  /** Whether a program reads the output. */
  readonly json?: boolean;
}

/** How many rows have columns of one width: the first of them are printed before the last are known. */
const ROWS = 100;

/** Lists the resources that begin with a prefix, and returns the exit code. */
export async function list(prefix: string, options: ListCommandOptions): Promise<number> {
  await using redlock = await openClient(options, { onEvent });
  const paint = paintOutput();
  let rows: Cell[][] = [[...HEADINGS]];
  for await (const listed of listLocks(redlock, { prefix })) {
    if (options.json) {
      printJson(toJson({ resource: listed.resource, state: listed }));
    } else if (rows.push(rowOf(listed)) > ROWS) {
      formatTable(rows, paint).forEach(print);
      rows = [];
    }
  }
  if (!options.json) formatTable(rows, paint).forEach(print);
  return SUCCESS;
}

function onEvent(event: RedlockEvent): void {
  if (event.type !== "list-failed") return;
  const { node, error } = event;
  printError(`hasp: ${node} could not list its keys: ${printable(error.message)}`);
}

/** The row of a resource. */
export function rowOf(listed: ListedLock): Cell[] {
  const { resource, held, holder = UNKNOWN, foreign, votes } = listed;
  const cells: Cell[] = held
    ? cellsOf({ resource, state: { ...listed, held } }).slice(0, -1)
    : [printable(resource), STATES[`${held}`], holder, UNKNOWN, UNKNOWN];
  const wrong = foreign === undefined ? "" : `; its key ${printable(foreign)}`;
  return [...cells, answersOf(votes) + wrong];
}

/** What is shown of a resource that is not known to be held. */
const STATES = { false: ["residue", "magenta"], undefined: ["unknown", "red"] } as const;
