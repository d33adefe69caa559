/**
 * `hasp run`: runs a command while a lock is held.
 *
 * @module
 */
import process from "node:process";
import { type Lock, LockHeldError, type Redlock, type Vote } from "../../../mod.ts";
import { lockName } from "../../messages.ts";
import { forceRelease } from "../../operate/mod.ts";
import { systemClock } from "../../time/clock.ts";
import { exitCodeOf, LOCK_LOST, SUCCESS } from "../exit_codes.ts";
import { holderText } from "../inspect_command.ts";
import { type NodeOptions, openClient, processName } from "../node_options.ts";
import { LockGuard } from "./lock_guard.ts";
import { type Ending, type RunningCommand, startCommand } from "./running_command.ts";
import { OVER } from "./shell_scripts.ts";
import { logEvent, type LogOptions, logProblem, watchAttempts } from "./run_log.ts";
import { Interrupted, signalExitCode, Signals } from "./signals.ts";

/**
 * A command is killed before the end of the validity by this share of the TTL, and at least this
 * many milliseconds.
 */
const MARGIN_DIVISOR = 20;
const MARGIN_MS_MIN = 100;

/** The options of `run`. */
export interface RunOptions extends NodeOptions, LogOptions {
  /** What is locked, all or none. */
  readonly resource: readonly string[];
  /** Whether any one of the resources is locked, and not all. */
  readonly any?: boolean;
  /** Whether others in shared mode may run beside it. */
  readonly shared?: boolean;
  /** The TTL, in milliseconds. */
  readonly ttl: number;
  /** Longest wait for the lock, in milliseconds. */
  readonly wait: number;
  /** Whether a lock that somebody else holds is a failure. */
  readonly onHeld: "fail" | "skip";
  /** The exit code of that failure. */
  readonly heldExitCode: number;
  /** Time between SIGTERM and SIGKILL, in milliseconds. */
  readonly grace: number;
  /** How long the resource stays locked at least, in milliseconds. */
  readonly atLeast: number;
  /** Whether the command gets a fencing token. */
  readonly fencing: boolean;
  /** Whether the command stays in the process group of `hasp`. */
  readonly foreground?: boolean;
  /** Who holds the lock, for others to see. */
  readonly label?: string;
  /** How long a node that may have lost its data does not count, in milliseconds. */
  readonly restartGuard?: number;
}

/** The extensions of the lock, and its loss. */
interface Extensions {
  /** What each calls; it is set when the command runs. */
  onExtended?: () => void;
  /** The votes of the last one, if that has failed. */
  failedVotes?: readonly Vote[];
  /** Why the lock was lost, if it was: its release may have found that first. */
  lostBecause?: Error;
}

/** Runs a command while a lock is held, and returns the exit code of `hasp`. */
export async function run(command: readonly string[], given: RunOptions): Promise<number> {
  // So that the resource stays locked for long enough if this process is killed, too.
  const options = { ...given, ttl: Math.max(given.ttl, given.atLeast) };
  const signals = new Signals();
  const extensions: Extensions = {};
  try {
    const report = (message: string) => logProblem(options, new Error(message));
    const onAttempt = watchAttempts(() => client.nodeCount, report);
    await using client = await openClient(options, {
      ttlMs: options.ttl,
      waitMs: options.wait,
      fencing: options.fencing && !options.shared,
      any: options.any,
      mode: options.shared ? "shared" : "exclusive",
      autoExtend: true,
      atLeastMs: options.atLeast,
      restartGuardMs: options.restartGuard,
      label: options.label ?? processName(),
      onEvent: (event) => {
        if (event.type === "extended") {
          extensions.failedVotes = undefined;
          extensions.onExtended?.();
        }
        if (event.type === "extend-failed") extensions.failedVotes = event.votes;
        if (event.type === "lost") extensions.lostBecause = event.cause;
        logEvent(options, event);
        onAttempt(event);
      },
    });
    const lock = await acquire(client.redlock, options, signals.waiting);
    return lock
      ? await runLocked(command, lock, options, signals, extensions, client.redlock)
      : SUCCESS;
  } catch (error) {
    if (error instanceof Interrupted) return error.exitCode;
    logProblem(options, error);
    return error instanceof LockHeldError ? options.heldExitCode : exitCodeOf(error);
  } finally {
    signals.stop();
  }
}

/**
 * Acquires the lock; `undefined` if somebody else holds it and that is to be skipped. A denial does
 * not show that, because some nodes may deny while others fail. So a quorum is asked who holds the
 * resources. A key with other data is held by nobody: the command would be skipped each time.
 *
 * @throws {LockHeldError} If nobody holds it by a quorum, if somebody does and that is a failure,
 * or if a key in the way has other data.
 * @throws The reason of `signal`, if it aborts.
 */
export async function acquire(
  redlock: Redlock,
  options: RunOptions,
  signal: AbortSignal,
): Promise<Lock | undefined> {
  const { resource, onHeld, any } = options;
  try {
    return await redlock.acquire(resource, { signal });
  } catch (error) {
    if (!(error instanceof LockHeldError) || onHeld !== "skip") throw error;
    const found = await Promise.all(resource.map((name) => redlock.inspect(name)));
    signal.throwIfAborted();
    const holders = found.filter(({ held }) => held);
    if (any ? holders.length < found.length : holders.length === 0) throw error;
    const index = found.findIndex(({ foreign }) => foreign);
    if (index >= 0 && (!any || found.every(({ foreign }) => foreign))) {
      const { foreign, votes } = found[index];
      const message = `Cannot acquire ${lockName([resource[index]])}: its key ${foreign}`;
      throw new LockHeldError(message, { resources: resource, votes });
    }
    const holder = holderText(holders[0]);
    logEvent(options, { type: "skipped", resources: resource, holder });
    return undefined;
  }
}

/**
 * By how much a command is killed before the end of its lock's validity, in milliseconds: on a busy
 * machine, a process needs some to start its timer, and more to be killed.
 */
export function marginMs(ttlMs: number): number {
  return Math.max(MARGIN_MS_MIN, ttlMs / MARGIN_DIVISOR);
}

/**
 * Runs a command under a lock, and releases that.
 *
 * @returns The exit code of `hasp`.
 * @throws If the command has not begun: why, which is the lock's own error if it was lost.
 */
export async function runLocked(
  command: readonly string[],
  lock: Lock,
  options: RunOptions,
  signals: Signals,
  extensions: Extensions,
  redlock: Redlock,
): Promise<number> {
  const { foreground = false, grace, ttl } = options;
  const startMs = systemClock.monotonicMs();
  const report = (message: string) => logProblem(options, new Error(message));
  const limitMs = () => lock.remainingMs() - marginMs(ttl);
  const beforeBegin = () => {
    signals.waiting.throwIfAborted();
    lock.signal.throwIfAborted();
  };
  let running: RunningCommand;
  try {
    const env = environmentOf(lock);
    running = await startCommand(command, { env, foreground, limitMs, beforeBegin });
  } catch (error) {
    // closing the client would report it as lost, and so would a release of keys that are gone
    await lock.release().catch(() => {});
    // That has kept the keys for --at-least, though nothing has run.
    const deletes = options.atLeast > 0 ? lock.resources : [];
    const { holder } = lock;
    await Promise.allSettled(deletes.map((name) => forceRelease(redlock, name, { holder })));
    throw lock.signal.aborted ? lock.signal.reason : startError(error, lock);
  }
  const failedVotes = () => extensions.failedVotes ?? [];
  const guard = new LockGuard(lock, running, { graceMs: grace, limitMs, failedVotes, report });
  extensions.onExtended = () => guard.extended();
  signals.passTo((signal) => {
    if (!pass(signal, running, foreground)) {
      report(`Cannot pass ${signal} on, because the command runs as another user`);
    }
  });
  const ending = await running.ended;
  const heldToItsEnd = lock.held;
  guard.stop();
  const word = await running.close(guard.isEnding ? Math.max(guard.leftMs, 1) : 0);
  const code = exitCodeOfEnding(ending);
  logEvent(options, { type: "ended", code, elapsedMs: systemClock.monotonicMs() - startMs });
  const wasHeld = heldToItsEnd && (!lock.held || await release(lock, report));
  if (guard.isEnding) return LOCK_LOST;
  // If the watcher's time was over while hasp was stopped, and it did not kill the command, this
  // had ended in time.
  if (word === OVER ? ending[1] !== "SIGKILL" : wasHeld) return code;
  const why = extensions.lostBecause ? `: ${extensions.lostBecause.message}` : "";
  report(
    word === OVER
      ? "The command was killed, because hasp did not run in time to extend the lock"
      : `The lock was lost before the command ended, which it did with the code ${code}${why}`,
  );
  return LOCK_LOST;
}

/** Says what is too long if the system cannot start a command for that reason. */
function startError(error: unknown, { resources }: Lock): unknown {
  if ((error as NodeJS.ErrnoException).code !== "E2BIG") return error;
  const bytes = new TextEncoder().encode(resources.join("\n")).length;
  return new Error(
    `The command and its variables are too long for the system (E2BIG): HASP_RESOURCE has ${bytes} ` +
      "bytes, and Linux allows 131057",
  );
}

/** Releases the lock. Returns whether it was held until then, as far as that is known. */
async function release(lock: Lock, report: (message: string) => void): Promise<boolean> {
  try {
    return await lock.release();
  } catch (error) {
    report(`${(error as Error).message}; the lock expires with its TTL`);
    return true;
  }
}

/**
 * A terminal sends these to all processes of its foreground, so passing them on would double them.
 */
const TERMINAL_SIGNALS: readonly NodeJS.Signals[] = ["SIGINT", "SIGQUIT"];

/** Passes a signal on. Returns whether that is allowed. */
function pass(signal: NodeJS.Signals, running: RunningCommand, foreground: boolean): boolean {
  return foreground && TERMINAL_SIGNALS.includes(signal) || running.signal(signal);
}

/** The environment of the command. A token of an outer `hasp run` is not its own. */
function environmentOf({ resources, fencingToken }: Lock): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { ...process.env, HASP_RESOURCE: resources.join("\n") };
  delete env.HASP_FENCING_TOKEN;
  return fencingToken === undefined ? env : { ...env, HASP_FENCING_TOKEN: String(fencingToken) };
}

function exitCodeOfEnding([code, signal]: Ending): number {
  return signal === null ? code ?? 0 : signalExitCode(signal);
}
