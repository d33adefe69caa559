/**
 * `hasp timeline`: draws who held what, who waited and what was lost, from events that were written
 * as lines of JSON.
 *
 * @module
 */
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import process from "node:process";
import { text } from "node:stream/consumers";
import { SUCCESS, UsageError } from "../exit_codes.ts";
import { masked, printError, printMasked } from "../terminal.ts";
import { counted, drawPicture } from "./drawing.ts";
import { RecordedEvents } from "./recorded_events.ts";

/** The options of `timeline`. */
export interface TimelineOptions {
  /** What stands above the picture. */
  readonly title?: string;
}

/** Stands for the standard input. */
const STDIN = "-";

/** Prints a page about the events in files, and returns the exit code. */
export async function timeline(
  files: readonly string[],
  { title = "Who held what when" }: TimelineOptions,
): Promise<number> {
  const events = new RecordedEvents();
  for (const file of files.length > 0 ? files : [STDIN]) {
    events.read(await readText(file), basename(file).replace(/\.\w+$/u, ""));
  }
  if (events.skipped > 0) {
    printError(`hasp: ${counted(events.skipped, "line")} without an event left out`);
  }
  if (events.count === 0) {
    throw new UsageError(`Cannot draw: no event in ${files.join(", ") || "the standard input"}`);
  }
  printMasked(drawPicture(events.picture(masked(title))).trimEnd());
  return SUCCESS;
}

async function readText(file: string): Promise<string> {
  if (file === STDIN) return await text(process.stdin);
  return await readFile(file, "utf8").catch((error) => {
    throw new UsageError(`Cannot read ${file}: ${error.message}`);
  });
}
