import { appendFileSync } from "node:fs";
import process from "node:process";
import type { RedlockEvent } from "@hasp/redlock";

const textOf = (_name: string, value: unknown) => value instanceof Error ? value.message : value;

/** Pass it as `onEvent`. */
export function record(event: RedlockEvent): void {
  const line = { timeMs: Date.now(), process: `web-3:${process.pid}`, ...event };
  appendFileSync("events.jsonl", JSON.stringify(line, textOf) + "\n");
}
