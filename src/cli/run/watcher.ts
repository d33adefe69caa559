/**
 * The process that kills a command if `hasp` cannot, because it is itself killed or stopped: a
 * small shell script, to which `hasp` writes for how long the command may run. The command starts
 * behind a gate, a shell that becomes the command once the watcher has answered, so it never runs
 * without its watcher.
 *
 * @module
 */
import { type ChildProcess, spawn } from "node:child_process";
import process from "node:process";
import type { Writable } from "node:stream";
import { createInterface } from "node:readline";
import { within } from "../../time/within.ts";
import { inputOf, sendSignal, SHELL, started } from "./processes.ts";
import { WATCHER } from "./shell_scripts.ts";

/**
 * The name of the process. It does not contain `hasp`, so that a signal to all processes with that
 * in their command line does not end `hasp` and its watcher together.
 */
const NAME = "command-watcher";

/**
 * How long the end of the shell is awaited, in milliseconds, because it may be stopped. It needs a
 * few.
 */
const END_WITHIN_MS = 5_000;

/** A shell that runs {@linkcode WATCHER}. */
export class Watcher {
  /**
   * Resolves when the shell has ended, to what it has printed about the end of the command, if it
   * has.
   */
  ended: Promise<string | undefined> = Promise.resolve(undefined);
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;
  readonly #input: Writable;
  readonly #lines: AsyncIterator<string>;

  /**
   * @param child The shell, which has started, and leads a process group.
   */
  constructor(child: ChildProcess) {
    this.#child = child;
    this.#closed = new Promise((resolve) => child.once("close", resolve));
    this.#input = inputOf(child.stdin!);
    this.#lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  }

  /**
   * Resolves when the shell has answered, to a file descriptor that the children of `hasp` do not
   * inherit.
   *
   * @param limitMs How long its answer is awaited, in milliseconds.
   * @throws {Error} If it ends, or does not answer.
   */
  async freeFd(limitMs: number): Promise<number> {
    return Number(await this.#nextLine(limitMs));
  }

  /**
   * Has it watch over a process. Resolves when the shell has answered that it does: that a line was
   * written does not show that it was read, and Bun keeps lines back for a moment.
   *
   * @param pid The id of the process.
   * @param leadsSession Whether the process leads a session of its own, all of which is to be
   * killed.
   * @param limitMs How long the process may run, and the answer is awaited, in milliseconds.
   * @throws {Error} If the shell ends, or does not answer.
   */
  async watch(pid: number, leadsSession: boolean, limitMs: number): Promise<void> {
    this.#input.write(`${pid}${leadsSession ? " session" : ""}\n${secondsLine(limitMs)}`);
    await this.#nextLine(limitMs);
    this.ended = this.#lines.next().then(({ value }) => value);
  }

  /**
   * Has it kill what it watches over after `limitMs` milliseconds, which replaces the time before.
   */
  killAfter(limitMs: number): void {
    this.#input.write(secondsLine(limitMs));
  }

  /**
   * Has it send a signal to the process groups of the session other than the one of the process
   * itself.
   */
  signalOthers(signal: NodeJS.Signals): void {
    this.#input.write(`${signal.replace("SIG", "")}\n`);
  }

  /**
   * Ends it.
   *
   * @param drainMs If not 0, it first waits until nothing is left of the session, or kills what is
   * left when its time is over, which is in so many milliseconds.
   * @returns What it has printed about the end of the command, if it has.
   */
  async close(drainMs = 0): Promise<string | undefined> {
    this.#input.end(drainMs > 0 ? "drain\n" : "end\n"); // Bun may keep a line back until then
    const end = await within(drainMs + END_WITHIN_MS, this.ended.then((word) => ({ word })));
    if (!end) await this.kill(); // it is stopped
    return end?.word;
  }

  /** Kills it, with all its parts. */
  async kill(): Promise<void> {
    sendSignal(-this.#child.pid!, "SIGKILL");
    await this.#closed;
  }

  async #nextLine(limitMs: number): Promise<string> {
    const next = await within(limitMs, this.#lines.next());
    if (next && !next.done) return next.value;
    const what = next ? "has ended" : "does not answer";
    throw new Error(`The process that watches over the command ${what}`);
  }
}

/**
 * Starts a watcher, which has nothing to watch yet.
 *
 * @throws {Error} If it cannot be started.
 */
export async function startWatcher(): Promise<Watcher> {
  const child = spawn(SHELL, ["-c", WATCHER, NAME], {
    cwd: "/",
    detached: true,
    env: { PATH: watcherPath() }, // no credentials
    stdio: ["pipe", "pipe", "ignore"],
  });
  await started(child); // else Node gives it no streams
  return new Watcher(child);
}

/**
 * Where the shell finds `sleep` and others, even if the command is given a `PATH` without them, or
 * none.
 */
function watcherPath(): string {
  return [process.env.PATH, "/usr/bin:/bin"].filter(Boolean).join(":");
}

function secondsLine(limitMs: number): string {
  return `${(Math.max(limitMs, 0) / 1_000).toFixed(3)}\n`;
}
