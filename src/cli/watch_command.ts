/**
 * `hasp watch`: shows who holds resources, since when, and how many wait, until a signal ends it.
 *
 * @module
 */
import { type EventListener, RedlockError } from "../../mod.ts";
import { list, type ListedLock } from "../operate/mod.ts";
import { printable } from "../printable.ts";
import { systemClock } from "../time/clock.ts";
import { pause } from "../time/pause.ts";
import { TimerWheel } from "../time/timer_wheel.ts";
import { errorLine } from "./exit_codes.ts";
import {
  formatInspected,
  holderText,
  inspectAll,
  type Inspected,
  shownName,
  toJson,
  warnOfPattern,
} from "./inspect_command.ts";
import { reportFailed } from "./list_command.ts";
import { type NodeOptions, openClient, type OpenedClient } from "./node_options.ts";
import { Interrupted, Signals } from "./run/signals.ts";
import {
  canRedraw,
  masked,
  openScreen,
  paintOutput,
  printJson,
  printMasked,
  TIME_FORMAT,
} from "./terminal.ts";

/** The options of `watch`. */
export interface WatchOptions extends NodeOptions {
  /** Time between two looks, in milliseconds. */
  readonly interval: number;
  /** Whether a program reads the output. */
  readonly json?: boolean;
}

/** What stands for all resources. */
const ALL = "*";

/** Says what has changed from one look to the next. */
export class Changes {
  /** What was said about each key, and its resource. */
  #said: Map<string, readonly [text: string, inspected: Inspected]> = new Map();

  /**
   * Takes in what a look has shown. A resource that it does not show is free, unless the list has
   * failed: then nothing is known.
   *
   * @param inspected The state of each resource.
   * @returns What has changed, each with a line of text; not if only a time to live has, or the
   * error of nodes that still fail.
   */
  update(inspected: readonly Inspected[]): (readonly [text: string, inspected: Inspected])[] {
    const before = this.#said;
    const isUnknown = inspected.some((it) => it.resource === ALL && it.state instanceof Error);
    this.#said = new Map([
      ...isUnknown ? before : [],
      ...inspected.map((it) => [it.key, [`${shownName(it.key)}  ${stateText(it)}`, it]] as const),
    ]);
    const changed = [...this.#said].filter(([key, [text, { state }]]) => {
      const [textBefore, then] = before.get(key) ?? [];
      return textBefore !== text && !(state instanceof Error && then?.state instanceof Error);
    }).map(([, said]) => said);
    const gone = [...before].filter(([key]) => !this.#said.has(key)).map(([, [, it]]) =>
      unlisted(it)
    );
    return [...gone, ...changed];
  }
}

/**
 * What is said of a resource that is in a list no longer: it is free. After a list that failed:
 * that what is locked is known again.
 */
function unlisted({ key, resource, state }: Inspected): readonly [string, Inspected] {
  const [text, held] = state instanceof Error ? ["known again", undefined] : ["free", false];
  const free = { held, mode: undefined, holders: [], remainingMs: 0, waiters: undefined };
  const now = { ...free, resource, foreign: undefined, votes: state.votes.slice(0, 0) };
  return [`${shownName(key)}  ${text}`, { key, resource, state: now as ListedLock }];
}

function stateText({ state }: Inspected): string {
  if (state instanceof RedlockError) return `unknown: ${masked(printable(state.message))}`;
  const { held, waiters, foreign, holders } = state;
  if (held === undefined) return "unknown: too few nodes answered";
  if (foreign !== undefined) return `held: this key ${printable(foreign)}`;
  if (held) {
    return `held by ${holderText(state)}${waiters === undefined ? "" : `, ${waiters} waiting`}`;
  }
  return holders.length > 0 ? `residue of ${holderText(state)}` : "free";
}

/**
 * Inspects resources, or all that are locked, those that are held for the longest time first.
 */
async function inspectNow(
  { redlock, keyPrefix }: OpenedClient,
  resources: readonly string[],
  signal: AbortSignal,
): Promise<Inspected[]> {
  if (resources.length > 0) return await inspectAll(redlock, keyPrefix, resources);
  const found: Inspected[] = [];
  try {
    for await (const state of list(redlock, { signal })) {
      found.push({ resource: state.resource, key: keyPrefix + state.resource, state });
    }
  } catch (error) {
    if (!(error instanceof RedlockError)) throw error;
    return [{ resource: ALL, key: keyPrefix + ALL, state: error }];
  }
  return found.sort((a, b) => sinceMs(a) - sinceMs(b) || (a.key < b.key ? -1 : 1));
}

function sinceMs({ state }: Inspected): number {
  const [first] = state instanceof RedlockError ? [] : state.holders;
  return first?.acquiredAt?.getTime() ?? 0;
}

/** Reports each node whose keys are missing in a list, once. */
function oncePerNode(): EventListener {
  const reported = new Set<string>();
  return (event) => {
    if (event.type !== "list-failed" || reported.has(event.node)) return;
    reported.add(event.node);
    reportFailed(event);
  };
}

/**
 * Shows resources until a signal arrives, in place on a terminal, else as a line for each change.
 */
export async function watch(resources: readonly string[], options: WatchOptions): Promise<number> {
  resources.forEach(warnOfPattern);
  const signals = new Signals();
  const wheel = new TimerWheel();
  try {
    await using client = await openClient(options, { onEvent: oncePerNode() });
    const draw = canRedraw() && !options.json ? await openScreen() : undefined;
    const paint = paintOutput();
    const changes = new Changes();
    while (true) {
      signals.waiting.throwIfAborted();
      const inspected = await inspectNow(client, resources, signals.waiting);
      const timeMs = systemClock.wallMs();
      const changed = changes.update(inspected);
      if (draw) {
        const errors = inspected.map(({ state }) => state).filter((it) => it instanceof Error);
        const lines = errors.map((error) => masked(`hasp: ${errorLine(error)}`));
        draw([...formatInspected(inspected, paint), ...lines]);
      } else {
        for (const [text, change] of changed) {
          if (options.json) printJson({ timeMs, ...toJson(change) });
          else printMasked(`${TIME_FORMAT.format(timeMs)}  ${text}`);
        }
      }
      await pause(wheel, options.interval, signals.waiting);
    }
  } catch (error) {
    if (error instanceof Interrupted) return error.exitCode;
    throw error;
  } finally {
    signals.stop();
  }
}
