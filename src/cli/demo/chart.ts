/**
 * A timeline as rows of characters over one time axis.
 *
 * @module
 */
import type { Paint, Style } from "../terminal.ts";
import type { State, Timeline } from "./timeline.ts";

/** Columns before the time axis. */
const LABEL_COLUMNS = 12;
/** Between two marks of the axis. */
const MARK_MS = 1_000;

/** How wide a millisecond is. */
export interface Scale {
  readonly columns: number;
  readonly msPerColumn: number;
}

/** A scale on which `lengthMs` fill the width that is there. */
export function scaleFor(lengthMs: number, width: number): Scale {
  const columns = width - LABEL_COLUMNS - 1;
  return { columns, msPerColumn: lengthMs / columns };
}

/**
 * The row of a worker: a block where it was inside, dots where it waited. A column has two halves,
 * so that short stays show.
 */
export function workerRow(
  timeline: Timeline,
  name: string,
  colour: Style,
  { columns, msPerColumn }: Scale,
  paint: Paint,
): string {
  let cells = "";
  for (let column = 0; column < columns; column++) {
    const fromMs = column * msPerColumn;
    if (fromMs > timeline.lengthMs) break;
    const left = timeline.stateAt(name, fromMs + msPerColumn / 4);
    const right = timeline.stateAt(name, fromMs + msPerColumn * 3 / 4);
    cells += workerCell(left, right);
  }
  const painted = cells.trimEnd().replace(/[█▌▐]+/g, (run) => paint(colour, run))
    .replace(/·+/g, (run) => paint("dim", run));
  return label(paint(colour, name), name.length) + painted;
}

function workerCell(left: State, right: State): string {
  if (left === "inside") return right === "inside" ? "█" : "▌";
  if (right === "inside") return "▐";
  return left === "waiting" || right === "waiting" ? "·" : " ";
}

/** How a node's state looks, and the word that is in it if there is room. */
const NODE_LOOKS: Partial<Record<State, { cell: string; colour: Style; word?: string }>> = {
  up: { cell: "━", colour: "green" },
  killed: { cell: " ", colour: "red", word: "╳ killed" },
  hung: { cell: "░", colour: "yellow", word: "░ hung " },
};

/** The row of a node: a line while it answers, and why it does not otherwise. */
export function nodeRow(
  timeline: Timeline,
  name: string,
  { columns, msPerColumn }: Scale,
  paint: Paint,
): string {
  let cells = "";
  for (let column = 0; column < columns;) {
    const stateAt = (index: number) => timeline.stateAt(name, (index + 0.5) * msPerColumn);
    const shown = (index: number) => index < columns && index * msPerColumn <= timeline.lengthMs;
    if (!shown(column)) break;
    const state = stateAt(column);
    let end = column + 1;
    while (shown(end) && stateAt(end) === state) end++;
    cells += stretch(state, end - column, paint);
    column = end;
  }
  return label(name, name.length) + cells.trimEnd();
}

function stretch(state: State, length: number, paint: Paint): string {
  const look = NODE_LOOKS[state];
  if (!look) return " ".repeat(length);
  const word = look.word && look.word.length <= length ? look.word : "";
  return paint(look.colour, word + look.cell.repeat(length - word.length));
}

/** The time axis, with a mark each second. */
export function axisRow({ columns, msPerColumn }: Scale, lengthMs: number, paint: Paint): string {
  let text = "";
  for (let markMs = 0; markMs <= lengthMs; markMs += MARK_MS) {
    const column = Math.round(markMs / msPerColumn);
    const mark = `╵${markMs / 1_000}${markMs === 0 ? " s" : ""}`;
    if (column + mark.length > columns) break;
    text = text.padEnd(column) + mark;
  }
  return paint("dim", label("", 0) + text);
}

/** The margin of a row: `text`, which takes `length` columns. */
export function label(text: string, length: number): string {
  return `  ${text}${" ".repeat(LABEL_COLUMNS - 2 - length)}`;
}
