/**
 * The terminal: colours where they are wanted, and a picture that is painted over itself.
 *
 * @module
 */

import { paintColours, type Style } from "../../src/cli/terminal.ts";

/** Columns that are used where the terminal is narrower, wider, or none. */
const COLUMNS_MIN = 80;
const COLUMNS_MAX = 120;
const COLUMNS_OF_FILE = 100;

const isTerminal = Deno.stdout.isTerminal();
const encoder = new TextEncoder();

/** `text` in a colour; as it is where `NO_COLOR` is set or nobody looks. */
export function paint(style: Style, text: string): string {
  return isTerminal && !Deno.noColor ? paintColours(style, text) : text;
}

/** How many columns a picture may take. */
export function columns(): number {
  if (!isTerminal) return COLUMNS_OF_FILE;
  return Math.min(Math.max(Deno.consoleSize().columns, COLUMNS_MIN), COLUMNS_MAX);
}

/** Prints pictures one over the other; where the output is no terminal, or too small a one, only the last. */
export class Canvas implements Disposable {
  #height = 0;

  /** Paints a picture in place of the one before. */
  paint(lines: readonly string[]): void {
    if (!fits(lines.length)) return;
    const text = lines.map((line) => `${line}\x1b[K\n`).join("");
    const above = this.#height > 0 ? `\x1b[${this.#height}A` : "\x1b[?25l";
    write(above + text + "\x1b[J");
    this.#height = lines.length;
  }

  /** Paints the last picture, which stays. */
  finish(lines: readonly string[]): void {
    if (this.#height > 0 && fits(lines.length)) this.paint(lines);
    else console.log(lines.join("\n"));
    this[Symbol.dispose]();
  }

  /** Gives the cursor back. */
  [Symbol.dispose](): void {
    if (this.#height > 0) write("\x1b[?25h");
    this.#height = 0;
  }
}

function fits(height: number): boolean {
  if (!isTerminal) return false;
  const size = Deno.consoleSize();
  return size.columns >= COLUMNS_MIN && size.rows > height;
}

function write(text: string): void {
  const bytes = encoder.encode(text);
  for (let offset = 0; offset < bytes.length;) {
    offset += Deno.stdout.writeSync(bytes.subarray(offset));
  }
}
