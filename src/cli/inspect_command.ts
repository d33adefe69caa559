/**
 * `hasp inspect`: shows whether resources are held, for how long, and how many wait.
 *
 * @module
 */
import { type Inspection, type Redlock, RedlockError, type Vote } from "../../mod.ts";
import type { ListedLock } from "../operate/mod.ts";
import { printable } from "../printable.ts";
import { formatDuration } from "./duration.ts";
import { exitCodeOf, messageOf, SUCCESS } from "./exit_codes.ts";
import { type NodeOptions, openClient } from "./node_options.ts";
import { type Cell, formatTable } from "./table.ts";
import { type Paint, paintOutput, print, printError, printJson } from "./terminal.ts";

/** The options of `inspect`. */
export interface InspectOptions extends NodeOptions {
  /** Whether a program reads the output. */
  readonly json?: boolean;
}

/** What is known about one resource: its state, or why that is unknown. */
export interface Inspected {
  /** The resource. */
  readonly resource: string;
  /** Its state, or the error of the nodes. */
  readonly state: Inspection | RedlockError;
}

/** Shows the state of resources, and returns the exit code. */
export async function inspect(
  resources: readonly string[],
  options: InspectOptions,
): Promise<number> {
  await using redlock = await openClient(options);
  const inspected = await inspectAll(redlock, resources);
  const errors = inspected.map(({ state }) => state).filter((it) => it instanceof RedlockError);
  if (options.json) {
    printJson(inspected.map(toJson), 2);
  } else {
    for (const line of formatInspected(inspected, paintOutput())) print(line);
    for (const error of errors) printError(messageOf(error));
  }
  return errors.length > 0 ? exitCodeOf(errors[0]) : SUCCESS;
}

/** Asks for the state of several resources at the same time. */
export function inspectAll(
  redlock: Redlock,
  resources: readonly string[],
): Promise<Inspected[]> {
  return Promise.all(resources.map(async (resource) => {
    try {
      return { resource, state: await redlock.inspect(resource) };
    } catch (error) {
      if (error instanceof RedlockError) return { resource, state: error };
      throw error;
    }
  }));
}

/** Plain data for `--json`. What is not known is `null`, and so is the time to live of a key that has none. */
export function toJson(
  { resource, state }: { resource: string; state: Inspection | ListedLock | RedlockError },
): Record<string, unknown> {
  const error = state instanceof RedlockError
    ? { code: state.code, message: printable(state.message) }
    : null;
  const { held = null, remainingMs = null, holder = null, sharers = null } = state as Partial<
    Inspection
  >;
  const { waiters = null, foreign = null, votes } = state as Partial<Inspection> & {
    votes: readonly Vote[];
  };
  return {
    resource,
    held,
    remainingMs: remainingMs === Infinity ? null : remainingMs,
    holder,
    sharers,
    waiters,
    foreign,
    error,
    votes: plainVotes(votes),
  };
}

/** Votes as plain data. */
export function plainVotes(votes: readonly Vote[]): Record<string, unknown>[] {
  return votes.map(({ node, outcome, elapsedMs, error }) => ({
    node,
    outcome,
    elapsedMs,
    ...error && { error: printable(error.message) },
  }));
}

/** The headings of the columns. */
export const HEADINGS: readonly string[] = [
  ...["resource", "state", "holder", "expires in", "waiting", "nodes"],
];
/** What stands for a number or a name that is not known. */
export const UNKNOWN = "?";

/** A table with a row for each resource, and below it what is wrong with keys that no lock library has set. */
export function formatInspected(inspected: readonly Inspected[], paint: Paint): string[] {
  const foreign = inspected.flatMap(({ resource, state }) => {
    if (state instanceof RedlockError || state.foreign === undefined) return [];
    return `${printable(resource)}: its key ${printable(state.foreign)}`;
  });
  return [...formatTable([HEADINGS, ...inspected.map(cellsOf)], paint), ...foreign];
}

/** The row of a resource. */
export function cellsOf({ resource, state }: Inspected): Cell[] {
  const name = printable(resource);
  const nodes = answersOf(state.votes);
  if (state instanceof RedlockError) {
    return [name, ["unknown", "red"], UNKNOWN, UNKNOWN, UNKNOWN, nodes];
  }
  const { held, remainingMs, waiters = UNKNOWN } = state;
  if (!held) return [name, ["free", "green"], "–", "–", "–", nodes];
  const life = formatDuration(remainingMs);
  return [name, ["held", "yellow"], holderText(state), life, `${waiters}`, nodes];
}

/** Who holds a resource: `7c1f09be web-3:1234`, or `3 in shared mode`. */
export function holderText({ holder = UNKNOWN, sharers }: Inspection): string {
  return sharers === undefined ? holder : `${sharers} in shared mode`;
}

/** How many nodes gave which answer: `4 held, 1 timed-out`. */
export function answersOf(votes: readonly Vote[]): string {
  const counts = new Map<string, number>();
  for (const { outcome } of votes) counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  return [...counts].map(([outcome, count]) => `${count} ${outcome}`).join(", ");
}
