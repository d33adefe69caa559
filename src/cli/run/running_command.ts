/**
 * A command that must not outlive its lock: started, watched, signalled and ended.
 *
 * If there is a POSIX shell, the command is a process group of its own, so that signals reach what it has started too,
 * and a watcher kills that group if `hasp` is killed or stopped. On Windows, and on systems without a shell, the command
 * is started directly and nothing watches it.
 *
 * @module
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import process from "node:process";
import type { Writable } from "node:stream";
import type { Environment } from "../addresses.ts";
import { NOT_EXECUTABLE, NOT_FOUND } from "../exit_codes.ts";
import { inputOf, SHELL, started } from "./processes.ts";
import { GATE } from "./shell_scripts.ts";
import { startWatcher, type Watcher } from "./watcher.ts";

/** How a command ended: its exit code, and the signal that killed it; one of them is `null`. */
export type Ending = readonly [code: number | null, signal: string | null];

/** What a command is started with. */
export interface StartOptions {
  /** The environment of the command. */
  readonly env: Environment;
  /** Whether the command stays in the process group of `hasp`, as a program that uses the terminal must. */
  readonly foreground: boolean;
  /** How long the lock is valid at this moment, in milliseconds. */
  readonly remainingMs: number;
}

/** A command that was started by {@linkcode startCommand}. {@linkcode close} it when it has ended. */
export class RunningCommand {
  /** Resolves when the command itself has ended. What it has started may still run. */
  readonly ended: Promise<Ending>;
  readonly #child: ChildProcess;
  readonly #target: number | undefined;
  readonly #watcher: Watcher | undefined;
  #isClosed = false;

  /**
   * @param child The process of the command.
   * @param target What signals are sent to: the process, or the process group as a negative number; `undefined` if the
   *   process could not be started.
   * @param ended Resolves when the process has ended.
   * @param watcher What kills it if `hasp` cannot, if there is something.
   */
  constructor(
    child: ChildProcess,
    target: number | undefined,
    ended: Promise<Ending>,
    watcher?: Watcher,
  ) {
    this.#child = child;
    this.#target = target;
    this.ended = ended;
    this.#watcher = watcher;
  }

  /** Has the watcher kill the command when the lock, which is valid for `remainingMs` from now on, is over. */
  validFor(remainingMs: number): void {
    this.#watcher?.validFor(remainingMs);
  }

  /** Sends a signal to the command and what it has started. */
  signal(name: NodeJS.Signals): void {
    this.#send(name);
  }

  /** Whether the command, or something that it has started, still runs. On Windows only the command is looked at. */
  get isRunning(): boolean {
    return this.#send(0);
  }

  /**
   * Ends the watcher. Processes that the command has left behind go on without it.
   *
   * @returns Whether the watcher has killed the command.
   */
  async close(): Promise<boolean> {
    this.#isClosed = true;
    return await this.#watcher?.close() ?? false;
  }

  /** Sends a signal; 0 sends none. Returns whether there was a process to send it to. */
  #send(signal: NodeJS.Signals | 0): boolean {
    if (this.#isClosed || this.#target === undefined) return false;
    try {
      if (process.platform === "win32") return this.#child.kill(signal);
      return process.kill(this.#target, signal);
    } catch {
      return false; // there is no such process any more
    }
  }
}

/**
 * Starts a command. Its input and output are those of `hasp`.
 *
 * @throws {Error} If no process can be started. A command that is missing or cannot be executed is no error: it ends with
 *   the code that shells have for that.
 */
export async function startCommand(
  command: readonly string[],
  options: StartOptions,
): Promise<RunningCommand> {
  const hasShell = process.platform !== "win32" && existsSync(SHELL);
  return await (hasShell ? startWatched : startPlain)(command, options);
}

async function startWatched(
  command: readonly string[],
  { env, foreground, remainingMs }: StartOptions,
): Promise<RunningCommand> {
  const watcher = await startWatcher();
  let child: ChildProcess | undefined;
  try {
    child = spawn(SHELL, ["-c", GATE, "hasp", ...command], {
      detached: !foreground,
      env,
      stdio: ["inherit", "inherit", "inherit", "pipe"],
    });
    const ended = endOf(child);
    await started(child);
    const gate = inputOf(child.stdio[3] as Writable);
    const target = foreground ? child.pid! : -child.pid!;
    await watcher.watch(target, remainingMs);
    gate.end("go\n");
    return new RunningCommand(child, target, ended, watcher);
  } catch (error) {
    child?.kill("SIGKILL"); // the gate, because the command has not begun
    await watcher.close();
    throw error;
  }
}

async function startPlain(
  [name, ...args]: readonly string[],
  { env, foreground }: StartOptions,
): Promise<RunningCommand> {
  const detached = !foreground && process.platform !== "win32";
  const child = spawn(name, args, { detached, env, stdio: "inherit" });
  const ended = endOf(child);
  const code = await started(child).then(() => undefined, codeOfStart);
  if (code !== undefined) return notStarted(child, code);
  return new RunningCommand(child, detached ? -child.pid! : child.pid!, ended);
}

/** A command that could not be started, and has ended with a code. */
export function notStarted(child: ChildProcess, code: number): RunningCommand {
  return new RunningCommand(child, undefined, Promise.resolve([code, null]));
}

/** The code that a shell ends with if it cannot start a command. */
function codeOfStart(error: NodeJS.ErrnoException): number {
  if (error.code === "ENOENT") return NOT_FOUND;
  if (error.code === "EACCES") return NOT_EXECUTABLE;
  throw error;
}

function endOf(child: ChildProcess): Promise<Ending> {
  return new Promise((resolve) => child.once("exit", (code, signal) => resolve([code, signal])));
}
