/**
 * How the bench collects figures round by round, and prints them against the floor.
 *
 * @module
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
  /** Print the value alone, without the ratio to the floor. @default false */
  absolute?: boolean;
}

/** Figures of several contenders, one set a round. */
export class Samples {
  readonly #rounds = new Map<string, Figures[]>();

  /** Adds one round's figures of a contender. Rounds of different contenders pair up in order. */
  add(waiter: string, figures: Figures): void {
    const rounds = this.#rounds.get(waiter) ?? [];
    this.#rounds.set(waiter, [...rounds, figures]);
  }

  /** Median over the rounds; NaN where nothing was measured. */
  median(waiter: string, figure: string): number {
    const rounds = this.#rounds.get(waiter) ?? [];
    return median(rounds.map((it) => it[figure]!));
  }

  /** Median over the rounds of this contender's figure divided by the floor's of the same round. */
  ratio(waiter: string, figure: string): number {
    const floor = this.#rounds.get("floor") ?? [];
    const rounds = this.#rounds.get(waiter) ?? [];
    return median(rounds.map((it, round) => it[figure]! / (floor[round]?.[figure] ?? NaN)));
  }

  /** Prints one line a contender: the median, and in brackets the ratio to the floor. */
  print(title: string, columns: readonly Column[]): void {
    const rows = [...this.#rounds.keys()].map((waiter) => [
      waiter,
      ...columns.map((column) => this.#cell(waiter, column)),
    ]);
    const goals = columns.some(({ goal }) => goal !== undefined)
      ? [["goal of ours", ...columns.map(({ goal = "" }) => goal)]]
      : [];
    printTable(title, [["", ...columns.map((column) => column.title)], ...rows, ...goals]);
  }

  #cell(waiter: string, { figure, digits = 0, absolute = false }: Column): string {
    const value = this.median(waiter, figure);
    if (Number.isNaN(value)) return "–";
    const text = value.toFixed(digits).replace(/\B(?=(\d{3})+(?!\d))/g, digits === 0 ? " " : "");
    const ratio = this.ratio(waiter, figure);
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
