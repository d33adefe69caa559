/**
 * Tables of text.
 *
 * @module
 */
import columnsOf from "string-width";

/** Writes rows with all columns as wide as their longest cell; styles take no room. */
export function formatTable(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]?.map((_, column) =>
    Math.max(...rows.map((row) => columnsOf(row[column])))
  );
  return rows.map((row) =>
    row.map((cell, column) => cell + " ".repeat(widths[column] - columnsOf(cell)))
      .join("  ").trimEnd()
  );
}
