/**
 * A command that must not outlive its lock: started, watched, signalled and ended.
 *
 * If there is a POSIX shell, the command leads a session of its own, so that signals reach what it
 * has started too, and a watcher kills that session if `hasp` is killed or stopped. On Windows, and
 * on systems without a shell, the command is started directly and nothing watches it.
 *
 * @module
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import process from "node:process";
import type { Writable } from "node:stream";
import type { Environment } from "../addresses.ts";
import { NOT_EXECUTABLE, NOT_FOUND } from "../exit_codes.ts";
import { inputOf, sendSignal, SHELL, started } from "./processes.ts";
import { gate } from "./shell_scripts.ts";
import { startWatcher, type Watcher } from "./watcher.ts";

/** How a command ended: its exit code, and the signal that killed it; one of them is `null`. */
export type Ending = readonly [code: number | null, signal: string | null];

/** What a command is started with. */
export interface StartOptions {
  /** The environment of the command. */
  readonly env: Environment;
  /**
   * Whether the command stays in the process group of `hasp`, as a program that uses the terminal
   * must.
   */
  readonly foreground: boolean;
  /** Returns for how long the command may run from this moment on, in milliseconds. */
  readonly limitMs: () => number;
  /** Called immediately before the command begins; throws if it must not. */
  readonly beforeBegin: () => void;
}

/**
 * A command that was started by {@linkcode startCommand}. {@linkcode close} it when it has ended.
 */
export class RunningCommand {
  /** Resolves when the command itself has ended. What it has started may still run. */
  readonly ended: Promise<Ending>;
  /** What kills it if `hasp` cannot, if there is something. */
  readonly watcher: Watcher | undefined;
  readonly #child: ChildProcess;
  readonly #target: number | undefined;
  #isClosed = false;

  /**
   * @param child The process of the command.
   * @param target What signals are sent to: the process, or the process group as a negative number;
   * `undefined` if the process could not be started.
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
    this.watcher = watcher;
  }

  /**
   * Sends a signal to the command and what it has started.
   *
   * @returns Whether that is allowed; it is not if the command runs as another user.
   */
  signal(name: NodeJS.Signals): boolean {
    if (this.#isClosed || this.#target === undefined) return true;
    this.watcher?.signalOthers(name);
    if (process.platform !== "win32") return sendSignal(this.#target, name);
    this.#child.kill(name);
    return true;
  }

  /**
   * Ends the watcher.
   *
   * @param drainMs If not 0, everything that the command has started is ended first: by the signals
   * that it has received, or by SIGKILL after this time, in milliseconds. If 0, what the command
   * has left behind goes on without the watcher.
   * @returns What the watcher has printed about the end of the command, if it has.
   */
  async close(drainMs: number): Promise<string | undefined> {
    const word = await this.watcher?.close(drainMs);
    if (drainMs > 0 && word === undefined) this.signal("SIGKILL"); // nothing else does
    this.#isClosed = true;
    return word;
  }
}

/**
 * Starts a command. Its input and output are those of `hasp`.
 *
 * @throws {Error} If no process can be started. A command that is missing or cannot be executed is
 * no error: it ends with the code that shells have for that.
 * @throws What `beforeBegin` throws.
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
  { env, foreground, limitMs, beforeBegin }: StartOptions,
): Promise<RunningCommand> {
  const watcher = await startWatcher();
  let child: ChildProcess | undefined;
  try {
    const freeFd = await watcher.freeFd(limitMs());
    child = spawn(SHELL, ["-c", gate(freeFd), "hasp", ...throughShell(command, env)], {
      detached: !foreground,
      env,
      // In Deno, the ignored ones are those of its parent.
      stdio: ["inherit", "inherit", "inherit", ...new Array(freeFd - 3).fill("ignore"), "pipe"],
    });
    const ended = endOf(child);
    await started(child);
    const gateInput = inputOf((child.stdio as readonly unknown[])[freeFd] as Writable);
    await watcher.watch(child.pid!, !foreground, limitMs());
    beforeBegin();
    gateInput.end("go\n");
    return new RunningCommand(child, foreground ? child.pid! : -child.pid!, ended, watcher);
  } catch (error) {
    if (child?.kill("SIGKILL")) await endOf(child); // the gate, because the command has not begun
    await watcher.kill();
    throw error;
  }
}

/** The names of variables that every shell passes on. */
const SHELL_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/u;

/**
 * Adds what passes on the variables that some shells drop, such as `my-var`: not for a command with
 * `=` in its name, which `env` takes for a variable.
 */
function throughShell(command: readonly string[], env: Environment): readonly string[] {
  const dropped = Object.entries(env).filter(([name]) => !SHELL_NAME.test(name));
  if (dropped.length === 0 || command[0].includes("=")) return command;
  return ["/usr/bin/env", "--", ...dropped.map((variable) => variable.join("=")), ...command];
}

async function startPlain(
  [name, ...args]: readonly string[],
  { env, foreground, beforeBegin }: StartOptions,
): Promise<RunningCommand> {
  const detached = !foreground && process.platform !== "win32";
  beforeBegin();
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
