/**
 * The exit codes of the command line, one for each kind of result.
 *
 * The codes of `run` itself are out of the way of most commands' own: 120 to 122 are rarely used,
 * 125 to 127 mean what they mean in a shell and in `env`, `nohup` and `timeout`.
 *
 * @module
 */
import { LockHeldError, LockLostError, QuorumError } from "../../mod.ts";
import { printable } from "../printable.ts";

/** Everything went well; `run` then returns the code of its command. */
export const SUCCESS = 0;
/** `check` has found a problem that is severe enough for its `--fail-on`. */
export const PROBLEM_FOUND = 1;
/** Somebody else holds the lock. */
export const LOCK_HELD = 120;
/** Too few nodes answered. */
export const NO_QUORUM = 121;
/** The lock was lost while the command ran. */
export const LOCK_LOST = 122;
/** The command line or the configuration is wrong, or something unexpected happened. */
export const USAGE = 125;
/** The command was found, but cannot be executed. */
export const NOT_EXECUTABLE = 126;
/** The command was not found. */
export const NOT_FOUND = 127;
/** Added to the number of the signal that ended the command, or the waiting for the lock. */
export const SIGNAL_BASE = 128;

/**
 * Longest message that is printed, in UTF-16 code units; it may contain the errors of all nodes.
 */
const MESSAGE_LENGTH_MAX = 8_000;

/** Thrown if the command line, or a file or variable that it refers to, is wrong. */
export class UsageError extends Error {
  /** The name of the class. */
  override readonly name = "UsageError";
}

/** The exit code for an error. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof LockHeldError) return LOCK_HELD;
  if (error instanceof QuorumError) return NO_QUORUM;
  if (error instanceof LockLostError) return LOCK_LOST;
  return USAGE;
}

/** What is printed about an error behind `hasp: `: one line, safe for a terminal. */
export function errorLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return printable(text, [], MESSAGE_LENGTH_MAX);
}
