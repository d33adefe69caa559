/**
 * What the command line prints, and in which colours.
 *
 * @module
 */
import process from "node:process";

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

/** Paints for the standard output: not if that is no terminal, or `NO_COLOR` is set. */
export function paintOutput(): Paint {
  const wanted = process.stdout.isTTY && !process.env.NO_COLOR && process.env.TERM !== "dumb";
  return wanted ? paintColours : paintNothing;
}

/** Prints a line on the standard output. */
export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Prints a line on the standard error. */
export function printError(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** Prints a value as JSON on the standard output. */
export function printJson(value: unknown): void {
  print(JSON.stringify(value, undefined, 2));
}
