/**
 * Tables of text.
 *
 * @module
 */
import columnsOf from "string-width";
import type { Paint, Style } from "./terminal.ts";

/** One cell: a text, or a text in a style. */
export type Cell = string | readonly [text: string, style: Style];

/** Writes rows with all columns as wide as their longest cell. The first row is the heading. */
export function formatTable(rows: readonly (readonly Cell[])[], paint: Paint): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, columnsOf(cellText(cell)));
    });
  }
  return rows.map((row, index) => {
    const cells = row.map((cell, column) => {
      const text = cellText(cell);
      const gap = column === row.length - 1 ? "" : " ".repeat(widths[column] - columnsOf(text));
      return (typeof cell === "string" ? text : paint(cell[1], text)) + gap;
    });
    const line = cells.join("  ");
    return index === 0 ? paint("dim", line) : line;
  });
}

function cellText(cell: Cell): string {
  return typeof cell === "string" ? cell : cell[0];
}
