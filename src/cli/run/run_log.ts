/**
 * What `run` says about itself on the standard error: errors, and with `--verbose` or `--json`
 * everything that happens.
 *
 * @module
 */
import { appendFileSync } from "node:fs";
import type { EventListener, RedlockEvent, Vote } from "../../../mod.ts";
import { reasonOf, voteCount } from "../../messages.ts";
import { printable } from "../../printable.ts";
import { systemClock } from "../../time/clock.ts";
import { quorumSize } from "../../vote.ts";
import { formatDuration } from "../duration.ts";
import { errorLine } from "../exit_codes.ts";
import { answersOf, plainVotes, shownName } from "../inspect_command.ts";
import { processName } from "../node_options.ts";
import { jsonLine, masked, printError, printErrorMasked } from "../terminal.ts";

/** How long too few nodes answer before `run` says so, in milliseconds. */
const UNANSWERED_MS = 60_000;

/** The options about it. */
export interface LogOptions {
  /** Whether everything that happens is said. */
  readonly verbose?: boolean;
  /** Whether that is said in lines of JSON. */
  readonly json?: boolean;
  /** A file to which it is appended in lines of JSON. */
  readonly events?: string;
  /** Who holds the lock, for others to see. */
  readonly label?: string;
}

/** What happens to a command, beside the events of its lock. */
export type RunEvent =
  | RedlockEvent
  | { readonly type: "skipped"; readonly resources: readonly string[]; readonly holder?: string }
  | { readonly type: "ended"; readonly code: number; readonly elapsedMs: number };

/** Says what has happened, if that is to be said. */
export function logEvent(options: LogOptions, event: RunEvent): void {
  const { verbose, json, events } = options;
  if (events) recordEvent(events, options, event);
  if (json) printError(jsonLine({ timeMs: systemClock.wallMs(), ...plainEvent(event) }));
  else if (verbose) printErrorMasked(eventText(event));
}

/** Appends an event to a file, as one write, because several processes may do so. */
function recordEvent(file: string, options: LogOptions, event: RunEvent): void {
  const process = options.label || processName(); // it may have none
  const line = jsonLine({ timeMs: systemClock.wallMs(), process, ...plainEvent(event) });
  try {
    appendFileSync(file, `${line}\n`);
  } catch (error) {
    if (unwritable.has(file)) return;
    unwritable.add(file);
    logProblem(options, new Error(`Cannot write ${file}: ${(error as Error).message}`));
  }
}

/** The files that cannot be written, which was said. */
const unwritable = new Set<string>();

/** Says what went wrong. */
export function logProblem({ json }: LogOptions, problem: unknown): void {
  const text = errorLine(problem);
  const line = { timeMs: systemClock.wallMs(), type: "problem", text };
  printError(json ? jsonLine(line) : `hasp: ${text}`);
}

/**
 * A listener that says why the lock is still awaited when too few nodes have answered for a minute.
 * It says so again only if enough have answered meanwhile.
 *
 * @param nodeCount Returns how many nodes there are.
 * @param report Called with the message.
 */
export function watchAttempts(
  nodeCount: () => number,
  report: (message: string) => void,
): EventListener {
  let sinceMs: number | undefined;
  return (event) => {
    if (event.type !== "attempt") return;
    const { votes } = event;
    const count = nodeCount();
    // A node may be missing that answers well: an attempt ends once it is decided.
    const failed = votes.filter(({ outcome }) => outcome !== "granted" && outcome !== "denied");
    if (count - failed.length >= quorumSize(count)) {
      sinceMs = undefined;
      return;
    }
    const nowMs = systemClock.monotonicMs();
    sinceMs ??= nowMs;
    if (nowMs - sinceMs < UNANSWERED_MS) return;
    sinceMs = Infinity; // said
    const why = voteCount(votes, count) + reasonOf(votes);
    report(`Still waiting, because too few nodes have answered for a minute: ${why}`);
  };
}

/** An event as plain data: errors are messages, and what is endless is `null`. */
export function plainEvent(event: RunEvent): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(event).map(([name, value]) => {
      if (name === "votes") return [name, plainVotes(value as readonly Vote[])];
      if (value instanceof Error) return [name, printable(value.message)];
      return [name, value === Infinity ? null : value];
    }),
  );
}

/**
 * An event as a line: `hasp: acquired "backup": holder 7c1f09be, 3 granted, attempts 1, elapsed 3
 * ms, remaining 29.7 s`.
 */
export function eventText({ type, ...fields }: RunEvent): string {
  const { resources = [], ...others } = fields as { resources?: readonly string[] };
  const parts = Object.entries(others).filter(([, value]) => value !== undefined)
    .map(([name, value]: [string, unknown]) => {
      if (name === "votes") return answersOf(value as readonly Vote[]);
      if (value instanceof Error) return printable(value.message);
      if (name.endsWith("Ms")) return `${name.slice(0, -2)} ${formatDuration(value as number)}`;
      return `${name} ${
        typeof value === "boolean" ? (value ? "yes" : "no") : printable(`${value}`)
      }`;
    }).filter((text) => text !== ""); // a call that was aborted early has no votes
  const names = resources.map((resource) => ` ${shownName(JSON.stringify(resource))}`).join(",");
  return `hasp: ${type}${names}${parts.length > 0 ? `: ${masked(parts.join(", "))}` : ""}`;
}
