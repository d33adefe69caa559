/**
 * Small helpers for child processes.
 *
 * @module
 */
import type { ChildProcess } from "node:child_process";
import process from "node:process";
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

/**
 * Sends a signal to a process, or to a process group if `target` is negative. Returns whether that
 * is allowed.
 */
export function sendSignal(target: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(target, signal);
    return true;
  } catch (error) {
    // else there is no such process any more
    return (error as NodeJS.ErrnoException).code !== "EPERM";
  }
}
