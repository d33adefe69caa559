/**
 * Small helpers for child processes.
 *
 * @module
 */
import type { ChildProcess } from "node:child_process";
import type { Writable } from "node:stream";

/** The shell of the scripts that `run` starts. */
export const SHELL = "/bin/sh";

/** Resolves when a process has started, and rejects if it cannot be started. */
export function started(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });
}

/** A stream to a process that may end before it has read everything. */
export function inputOf(stream: Writable): Writable {
  stream.on("error", () => {});
  return stream;
}
