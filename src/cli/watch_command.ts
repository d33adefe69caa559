/**
 * `hasp watch`: shows who holds resources, since when, and how many wait, until a signal ends it.
 *
 * @module
 */
import { type Inspection, RedlockError } from "../../mod.ts";
import { printable } from "../printable.ts";
import { systemClock } from "../time/clock.ts";
import { pause } from "../time/pause.ts";
import { TimerWheel } from "../time/timer_wheel.ts";
import { formatDuration } from "./duration.ts";
import { cellsOf, HEADINGS, holderText, inspectAll, toJson, UNKNOWN } from "./inspect_command.ts";
import { type NodeOptions, openClient } from "./node_options.ts";
import { type Interrupted, Signals } from "./run/signals.ts";
import { type Cell, formatTable } from "./table.ts";
import { canDraw, openScreen, paintOutput, print, printJson } from "./terminal.ts";

/** The options of `watch`. */
export interface WatchOptions extends NodeOptions {
  /** Time between two looks, in milliseconds. */
  readonly interval: number;
  /** Whether a program reads the output. */
  readonly json?: boolean;
}

type State = Inspection | RedlockError;

/** The machine's own time, as `2026-02-03 04:05:06`. */
const TIME_FORMAT = new Intl.DateTimeFormat("sv", { dateStyle: "short", timeStyle: "medium" });
/** The headings of the columns. */
export const WATCH_HEADINGS: readonly string[] = HEADINGS.toSpliced(3, 0, "held for");

/** What is known about one resource from looking at it again and again. */
export class WatchedResource {
  readonly #resource: string;
  #state: State | undefined = undefined;
  #said = "";
  /** Who holds it, or did when it was last known; `undefined` if nobody does. */
  #holder: string | undefined = undefined;
  #sinceMs = 0;
  #sawStart = false;

  /** @param resource The resource. */
  constructor(resource: string) {
    this.#resource = resource;
  }

  /**
   * Takes in what a look has shown.
   *
   * @param state The state of the resource.
   * @param nowMs When that was, by a monotonic clock, in milliseconds.
   * @returns A line about what has changed; `undefined` if only the time to live has.
   */
  look(state: State, nowMs: number): string | undefined {
    if (!(state instanceof RedlockError)) {
      const holder = state.held ? state.holder ?? (state.sharers ? "shared" : UNKNOWN) : undefined;
      if (holder !== this.#holder) {
        this.#holder = holder;
        this.#sinceMs = nowMs;
        this.#sawStart = this.#state !== undefined && !(this.#state instanceof RedlockError);
      }
    }
    this.#state = state;
    const text = describe(state);
    if (text === this.#said) return undefined;
    this.#said = text;
    return `${printable(this.#resource)}  ${text}`;
  }

  /** The row of the table at a time, by the clock of {@linkcode look}, after the first look. */
  row(nowMs: number): Cell[] {
    const state = this.#state!;
    const cells = cellsOf({ resource: this.#resource, state });
    if (state instanceof RedlockError) return cells.toSpliced(3, 0, UNKNOWN);
    if (this.#holder === undefined) return cells.toSpliced(3, 0, "–");
    const heldFor = formatDuration(nowMs - this.#sinceMs);
    return cells.toSpliced(3, 0, this.#sawStart ? heldFor : `> ${heldFor}`);
  }
}

function describe(state: State): string {
  if (state instanceof RedlockError) return "unknown: too few nodes answered";
  const { held, waiters, foreign } = state;
  if (!held) return "free";
  if (foreign !== undefined) return `held: its key ${printable(foreign)}`;
  return `held by ${holderText(state)}${waiters === undefined ? "" : `, ${waiters} waiting`}`;
}

/** Shows resources until a signal arrives, in place on a terminal, else as a line for each change. */
export async function watch(resources: readonly string[], options: WatchOptions): Promise<number> {
  const signals = new Signals();
  const wheel = new TimerWheel();
  try {
    await using redlock = await openClient(options);
    const watched = resources.map((resource) => new WatchedResource(resource));
    const draw = canDraw() && !options.json ? await openScreen() : undefined;
    const paint = paintOutput();
    while (!signals.waiting.aborted) {
      const inspected = await inspectAll(redlock, resources);
      const nowMs = systemClock.monotonicMs();
      const wallMs = systemClock.wallMs();
      watched.forEach((it, index) => {
        const change = it.look(inspected[index].state, nowMs);
        if (change === undefined || draw) return;
        if (!options.json) return print(`${TIME_FORMAT.format(wallMs)}  ${change}`);
        printJson({ timeMs: wallMs, ...toJson(inspected[index]) });
      });
      draw?.(formatTable([WATCH_HEADINGS, ...watched.map((it) => it.row(nowMs))], paint));
      await pause(wheel, options.interval, signals.waiting);
    }
    return (signals.waiting.reason as Interrupted).exitCode;
  } finally {
    signals.stop();
  }
}
