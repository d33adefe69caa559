/**
 * How the bench collects figures round by round, and prints them against the floor or another
 * contender.
 */

import type { Figures } from "./measures.ts";
import { median } from "./statistics.ts";

/** One column of a table. */
export interface Column {
  /** Name of the figure. */
  figure: string;
  /** Heading, with the unit. */
  title: string;
  /** Digits after the point. @default 0 */
  digits?: number;
  /** What ours has to reach, as printed. */
  goal?: string;
  /** Print the value alone, without the ratio to the base. @default false */
  absolute?: boolean;
}

/** Figures of several contenders, one set a round. */
export class Samples {
  readonly #base: string;
  readonly #rounds = new Map<string, Figures[]>();
  readonly #leftOut = new Set<string>();

  /** @param base The contender that others are compared with. */
  constructor(base = "floor") {
    this.#base = base;
  }

  /** Adds one round's figures of a contender. Rounds of different contenders pair up in order. */
  add(contender: string, figures: Figures): void {
    const rounds = this.#rounds.get(contender) ?? [];
    this.#rounds.set(contender, [...rounds, figures]);
  }

  /** Prints no figure of a contender, because it cannot do what is measured. */
  leaveOut(contender: string): void {
    this.#leftOut.add(contender);
    this.#rounds.set(contender, []);
  }

  /** Whether {@linkcode leaveOut} was called for a contender. */
  isLeftOut(contender: string): boolean {
    return this.#leftOut.has(contender);
  }

  /** Median over the rounds; NaN where nothing was measured. */
  median(contender: string, figure: string): number {
    const rounds = this.#rounds.get(contender) ?? [];
    return median(rounds.map((it) => it[figure]!));
  }

  /** Median over the rounds of this contender's figure divided by the base's of the same round. */
  ratio(contender: string, figure: string): number {
    const base = this.#rounds.get(this.#base) ?? [];
    const rounds = this.#rounds.get(contender) ?? [];
    return median(rounds.map((it, round) => it[figure]! / (base[round]?.[figure] ?? NaN)));
  }

  /** Prints one line a contender: the median, and in brackets the ratio to the base. */
  print(title: string, columns: readonly Column[]): void {
    const rows = [...this.#rounds.keys()].map((contender) => [
      contender,
      ...columns.map((column) => this.#cell(contender, column)),
    ]);
    const goals = columns.some(({ goal }) => goal !== undefined)
      ? [["goal of ours", ...columns.map(({ goal = "" }) => goal)]]
      : [];
    printTable(title, [["", ...columns.map((column) => column.title)], ...rows, ...goals]);
  }

  #cell(contender: string, { figure, digits = 0, absolute = false }: Column): string {
    const value = this.median(contender, figure);
    if (Number.isNaN(value)) return "–";
    const text = value.toFixed(digits).replace(/\B(?=(\d{3})+(?!\d))/g, digits === 0 ? " " : "");
    const ratio = this.ratio(contender, figure);
    return absolute || Number.isNaN(ratio) ? text : `${text} (${ratio.toFixed(2)})`;
  }
}

/** Prints rows under a title, the first row as heading, columns after the first aligned right. */
export function printTable(title: string, rows: readonly (readonly string[])[]): void {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? "").length))
  );
  console.log(`\n${title}`);
  for (const row of rows) {
    const cells = row.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)
    );
    console.log(`  ${cells.join("   ")}`);
  }
}
