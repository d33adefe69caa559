/**
 * `hasp inspect`: shows whether resources are held, by whom, since when, and how many wait.
 *
 * @module
 */
import { type Holder, type Inspection, type Redlock, RedlockError, type Vote } from "../../mod.ts";
import type { ListedLock } from "../operate/mod.ts";
import { printable } from "../printable.ts";
import { quorumSize } from "../vote.ts";
import { formatDuration } from "./duration.ts";
import { errorLine, exitCodeOf, SUCCESS } from "./exit_codes.ts";
import { type NodeOptions, openClient } from "./node_options.ts";
import { formatTable } from "./table.ts";
import {
  maskedName,
  type Paint,
  paintOutput,
  printError,
  printJson,
  printMasked,
  type Style,
  TIME_FORMAT,
} from "./terminal.ts";

/** The options of `inspect`. */
export interface InspectOptions extends NodeOptions {
  /** Whether a program reads the output. */
  readonly json?: boolean;
}

/** What is known about one resource: its state, or why that is unknown. */
export interface Inspected {
  /** The resource. */
  readonly resource: string;
  /** Its key on the nodes. */
  readonly key: string;
  /** Its state, or the error of the nodes. */
  readonly state: Inspection | ListedLock | RedlockError;
}

/** Shows the state of resources, and returns the exit code. */
export async function inspect(
  resources: readonly string[],
  options: InspectOptions,
): Promise<number> {
  resources.forEach(warnOfPattern);
  await using client = await openClient(options);
  const inspected = await inspectAll(client.redlock, client.keyPrefix, resources);
  const errors = inspected.map(({ state }) => state).filter((it) => it instanceof RedlockError);
  if (options.json) {
    printJson(inspected.map(toJson), 2);
  } else {
    for (const line of formatInspected(inspected, paintOutput())) printMasked(line);
    for (const error of errors) printError(`hasp: ${errorLine(error)}`);
  }
  return errors.length > 0 ? exitCodeOf(errors[0]) : SUCCESS;
}

/** Says that a name is no pattern, if it looks like one. */
export function warnOfPattern(name: string): void {
  const [, prefix] = /^(.*?)\*$/u.exec(name) ?? [];
  if (prefix === undefined) return;
  const start = printable(prefix);
  const instead = start
    ? `'hasp list ${start}' lists what begins with ${start}`
    : "'hasp list' lists all";
  printError(`hasp: ${printable(name)} is taken as a name, and not as a pattern: ${instead}`);
}

/** Asks for the state of several resources at the same time. */
export function inspectAll(
  redlock: Redlock,
  keyPrefix: string,
  resources: readonly string[],
): Promise<Inspected[]> {
  return Promise.all(resources.map(async (resource) => {
    const key = keyPrefix + resource;
    try {
      return { resource, key, state: await redlock.inspect(resource) };
    } catch (error) {
      if (error instanceof RedlockError) return { resource, key, state: error };
      throw error;
    }
  }));
}

/**
 * Plain data for `--json`. What is not known is `null`, and so is the time to live of a key that
 * has none.
 */
export function toJson({ resource, key, state }: Inspected): Record<string, unknown> {
  const [known, error]: [Partial<ListedLock>, unknown] = state instanceof RedlockError
    ? [{}, { code: state.code, message: printable(state.message) }]
    : [state, null];
  const { held, mode, holders = [], remainingMs = Infinity, waiters, foreign } = known;
  return {
    resource,
    key,
    held: held ?? null,
    mode: mode ?? null,
    holders: holders.map(plainHolder),
    remainingMs: remainingMs === Infinity ? null : remainingMs,
    waiters: waiters ?? null,
    foreign: foreign ?? null,
    error,
    votes: plainVotes(state.votes),
  };
}

/** A holder as plain data: what is not known is `null`. */
function plainHolder({ holder, label, acquiredAt }: Holder): Record<string, unknown> {
  return { holder, label: label ?? null, acquiredAt: acquiredAt?.toISOString() ?? null };
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
export function headings(paint: Paint): string[] {
  return ["key", "state", "holder", "since", "expires in", "waiting", "nodes"]
    .map((text) => paint("dim", text));
}

/** What stands for a number or a name that is not known, and for one that there is not. */
const UNKNOWN = "?", NOTHING = "–";
/** How many holders of one resource have a row each. */
const HOLDERS_SHOWN_MAX = 8;

/**
 * A table with the rows of each resource, and below it what is wrong with keys that no lock library
 * has set.
 */
export function formatInspected(inspected: readonly Inspected[], paint: Paint): string[] {
  return [
    ...formatTable([headings(paint), ...inspected.flatMap((it) => rowsOf(it, paint))]),
    ...inspected.flatMap(foreignKeys),
  ];
}

/** The name of a resource or of its key, as people see it. */
export function shownName(name: string): string {
  return printable(maskedName(name));
}

/** What is wrong with a key that no lock library has set, as a line. */
export function foreignKeys({ key, state }: Inspected): string[] {
  if (state instanceof RedlockError || state.foreign === undefined) return [];
  return [`${shownName(key)}: this key ${printable(state.foreign)}`];
}

/** The rows of a resource: one for each holder, and one for all that are more than a few. */
export function rowsOf({ key, state }: Inspected, paint: Paint): string[][] {
  const name = shownName(key);
  const nodes = answersOf(state.votes);
  const [word, style] = stateWord(state);
  const cell = paint(style, word);
  if (state instanceof RedlockError) return [[name, cell, ...Array(4).fill(UNKNOWN), nodes]];
  if (word === "free") return [[name, cell, ...Array(4).fill(NOTHING), nodes]];
  const { held, remainingMs, waiters = UNKNOWN, holders } = state;
  const life = held ? formatDuration(remainingMs) : UNKNOWN;
  const [first = [UNKNOWN, UNKNOWN], ...others] = holders.slice(0, HOLDERS_SHOWN_MAX)
    .map(holderCells);
  const more = holders.length - HOLDERS_SHOWN_MAX;
  if (more > 0) others.push([`and ${more} more`, ""]);
  return [
    [name, cell, ...first, life, `${waiters}`, nodes],
    ...others.map((cells) => ["", "", ...cells, "", "", ""]),
  ];
}

/**
 * Whether a resource is held; a key on fewer than a quorum of the nodes is residue, unless other
 * nodes are silent. A key on a quorum may block a resource that nobody holds.
 */
function stateWord(state: Inspected["state"]): [word: string, style: Style] {
  if (state instanceof RedlockError || state.held === undefined) return ["unknown", "red"];
  const { held, holders, foreign, votes } = state;
  if (held) return ["held", "yellow"];
  if (holders.length > 0) return ["residue", "magenta"];
  if (foreign === undefined) return ["free", "green"];
  const count = votes.filter(({ outcome }) => outcome === "held").length;
  return count < quorumSize(votes.length) ? ["residue", "magenta"] : ["blocked", "red"];
}

function holderCells(holder: Holder): [name: string, since: string] {
  const { acquiredAt } = holder;
  return [holderName(holder), acquiredAt ? TIME_FORMAT.format(acquiredAt) : UNKNOWN];
}

/** A holder as `7c1f09be web-3:1234`, or without a label. */
function holderName({ holder, label }: Holder): string {
  return label === undefined ? holder : `${holder} ${label}`;
}

/** Who holds a resource, as `7c1f09be web-3:1234`, and how many others do in shared mode. */
export function holderText({ holders: [first, ...others] }: Pick<Inspection, "holders">): string {
  if (!first) return UNKNOWN;
  return holderName(first) + (others.length > 0 ? ` and ${others.length} more` : "");
}

/** How many nodes gave which answer: `4 held, 1 timed-out`. */
export function answersOf(votes: readonly Vote[]): string {
  const counts = new Map<string, number>();
  for (const { outcome } of votes) counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  return [...counts].map(([outcome, count]) => `${count} ${outcome}`).join(", ");
}
