/**
 * What the command line prints, and in which colours: the only module of it that writes to a
 * stream.
 *
 * Credentials of addresses are masked here, wherever they come from. An address that stands in the
 * place of an option, a file or a duration may be in any message. The name of a resource is masked
 * only if it looks like the address of a node: otherwise, two resources might look the same.
 *
 * @module
 */
import process from "node:process";
import columnsOf from "string-width";

/** SGR codes of what is painted. */
const STYLES = {
  bold: "1",
  dim: "2",
  red: "31",
  green: "32",
  yellow: "33",
  blue: "34",
  magenta: "35",
  cyan: "36",
} as const;

/** A colour or another style by its name. */
export type Style = keyof typeof STYLES;

/** Puts a text into a style, or leaves it as it is. */
export type Paint = (style: Style, text: string) => string;

/** Puts a text into a style. */
export const paintColours: Paint = (style, text) =>
  text === "" ? "" : `\x1b[${STYLES[style]}m${text}\x1b[0m`;

/** Leaves a text as it is. */
export const paintNothing: Paint = (_, text) => text;

/** The machine's own time, as `2026-02-03 04:05:06`. */
export const TIME_FORMAT: Intl.DateTimeFormat = new Intl.DateTimeFormat("sv", {
  dateStyle: "short",
  timeStyle: "medium",
});

/** Whether the standard output is a terminal that understands escape sequences. */
function canDraw(): boolean {
  return process.stdout.isTTY && process.env.TERM !== "dumb";
}

/** Paints for the standard output: not if that cannot show colours, or `NO_COLOR` is set. */
export function paintOutput(): Paint {
  return canDraw() && !process.env.NO_COLOR ? paintColours : paintNothing;
}

/**
 * From `://` to the last `@` of a word, or of several words if a quotation mark follows: a password
 * may have spaces. Not the form of an address in the help.
 */
const CREDENTIALS = /:\/\/(?!\[user\[:password\]@\]host)(?:[^'\n]*@(?=[^'@\n]*')|\S*@)/gu;

/** Replaces the user and the password of every address in a text. */
export function masked(text: string): string {
  return text.replaceAll(CREDENTIALS, "://***@");
}

/** The beginning of a node's address. */
const NODE_ADDRESS = /(?:redis|valkey)s?:\/\//iu;

/** The name of a resource, which is masked only if a node's address stands in its place. */
export function maskedName(name: string): string {
  return NODE_ADDRESS.test(name) ? masked(name) : name;
}

/** Writes text on the standard output. */
export function writeOut(text: string): void {
  process.stdout.write(masked(text));
}

/** Writes text on the standard error. */
export function writeError(text: string): void {
  process.stderr.write(masked(text));
}

/** Prints a line on the standard output. */
export function print(line: string): void {
  writeOut(`${line}\n`);
}

/** Prints a line on the standard error. */
export function printError(line: string): void {
  writeError(`${line}\n`);
}

/** Prints text that is masked already on the standard output. */
export function printMasked(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Prints a line that is masked already on the standard error. */
export function printErrorMasked(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** Prints a value as JSON on the standard output: on one line, unless `indent` is given. */
export function printJson(value: unknown, indent?: number): void {
  process.stdout.write(`${jsonLine(value, indent)}\n`);
}

/** The fields that name resources. */
const NAMES: readonly string[] = ["resource", "resources", "key"];

/**
 * A value as JSON with each text in it masked, or each name of a resource as one: masked as a
 * whole, it might be no JSON any more.
 */
export function jsonLine(value: unknown, indent?: number): string {
  const lists = new Set<unknown>();
  const mask = function (this: unknown, name: string, part: unknown) {
    if (typeof part === "string") {
      return NAMES.includes(name) || lists.has(this) ? maskedName(part) : masked(part);
    }
    if (NAMES.includes(name)) lists.add(part);
    return part;
  };
  return JSON.stringify(value, mask, indent);
}

/** Whether lines can be drawn in the place of others: on a terminal that says how large it is. */
export function canRedraw(): boolean {
  return canDraw() && process.stdout.rows > 0 && process.stdout.columns > 0;
}

/**
 * Returns a function that draws lines, which are masked already, on the terminal in the place of
 * those before. The cursor stays visible, so nothing has to be put right if the process is killed.
 */
export async function openScreen(): Promise<(lines: readonly string[]) => void> {
  // it reads the environment when it is loaded
  const { createLogUpdate } = await import("log-update");
  const draw = createLogUpdate(process.stdout, { showCursor: true });
  return (lines) => {
    const { rows, columns } = process.stdout;
    draw(fittingLines(lines, rows, columns).join("\n"));
  };
}

/** As many of the lines as fit on a terminal, and a line about the rest if there is any. */
export function fittingLines(lines: readonly string[], rows: number, columns: number): string[] {
  const heightOf = (line: string) => {
    const width = columnsOf(line);
    if (width <= columns) return 1;
    // A wide character that does not fit leaves the last column of a row free.
    return Math.ceil(width / (/[^\0-\x7f]/u.test(line) ? columns - 1 : columns));
  };
  const fitting = (height: number) => {
    const end = lines.findIndex((line) => (height -= heightOf(line)) < 0);
    return end === -1 ? lines.length : end;
  };
  const height = rows - 1; // the cursor stands below the last line
  if (fitting(height) === lines.length) return [...lines];
  const shown = fitting(height - 1);
  return [...lines.slice(0, shown), `… ${lines.length - shown} more: the terminal is too small`];
}
