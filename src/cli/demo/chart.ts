/**
 * What happened to workers and nodes, as rows of characters over one time axis.
 *
 * @module
 */
import { systemClock } from "../../time/clock.ts";
import type { Paint, Style } from "../terminal.ts";

/** Columns before the time axis. */
const LABEL_COLUMNS = 12;
/** Between two marks of the axis. */
const MARK_MS = 1_000;

/** What a row is at a time, by the character that is drawn while that lasts. */
export const IDLE = " ", WAITING = "·", COUNTING = "█", UP = "━", HUNG = "░", KILLED = "╳";

const STYLES: Readonly<Record<string, Style>> = {
  [WAITING]: "dim",
  [UP]: "green",
  [HUNG]: "yellow",
  [KILLED]: "red",
};

/** A record of one run, which begins when it is created. */
export class Chart {
  readonly #startMs = systemClock.monotonicMs();
  readonly #rows = new Map<string, { readonly atMs: number; readonly state: string }[]>();
  readonly #notes: string[] = [];

  /** How long it lasts by now, in milliseconds. */
  get lengthMs(): number {
    return systemClock.monotonicMs() - this.#startMs;
  }

  /** A row is in `state` from now on; a new one is drawn below the others. */
  change(row: string, state: string): void {
    const changes = this.#rows.get(row) ?? [];
    this.#rows.set(row, changes);
    changes.push({ atMs: this.lengthMs, state });
  }

  /** Has a line say that something happens now. */
  note(text: string): void {
    this.#notes.push(label(`${(this.lengthMs / 1_000).toFixed(2)} s`) + text);
  }

  /**
   * Draws it until now.
   *
   * @param columns How wide a line is at most.
   * @param widthMs What fills that.
   * @param colours The colours of rows.
   * @param paint Paints.
   */
  lines(
    columns: number,
    widthMs: number,
    colours: ReadonlyMap<string, Style>,
    paint: Paint,
  ): string[] {
    const msPerColumn = widthMs / (columns - LABEL_COLUMNS - 1);
    const count = Math.floor(Math.min(this.lengthMs, widthMs) / msPerColumn);
    const lines = [...this.#rows].map(([name, changes]) => {
      const cells = Array.from({ length: count }, (_, column) => {
        return changes.findLast(({ atMs }) => atMs <= (column + 0.5) * msPerColumn)?.state ?? IDLE;
      });
      const colour = colours.get(name);
      const painted = cells.join("").trimEnd()
        .replaceAll(/([^ ])\1*/gu, (run, state) => paint(STYLES[state] ?? colour, run));
      return (colour ? paint(colour, label(name)) : label(name)) + painted;
    });
    let axis = "";
    for (let markMs = 0; markMs < count * msPerColumn; markMs += MARK_MS) {
      axis = axis.padEnd(Math.round(markMs / msPerColumn)) + `╵${markMs / 1_000}`;
    }
    return [...lines, paint("dim", `${label("")}${axis} s`), ...this.#notes];
  }
}

/** The margin of a line, with a text in it. */
function label(text: string): string {
  return `  ${text}`.padEnd(LABEL_COLUMNS);
}
