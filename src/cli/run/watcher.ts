/**
 * The process that kills a command if `hasp` cannot.
 *
 * @module
 */
import { spawn } from "node:child_process";
import process from "node:process";
import type { Writable } from "node:stream";
import { createInterface } from "node:readline";
import { inputOf, SHELL, started } from "./processes.ts";
import { WATCHER, WATCHER_END } from "./shell_scripts.ts";

/** By how much the watcher kills before the end of the validity, in milliseconds: it needs some to start its timer. */
const MARGIN_MS = 100;

/** A shell that runs {@linkcode WATCHER}. */
export class Watcher {
  readonly #input: Writable;
  /** The lines that the shell prints: one when it is ready, and another if it has killed the command. */
  readonly #lines: AsyncIterator<string>;

  /**
   * @param input The input of the shell.
   * @param lines The lines that it prints.
   */
  constructor(input: Writable, lines: AsyncIterator<string>) {
    this.#input = input;
    this.#lines = lines;
  }

  /**
   * Has it watch over a process, or over a process group if `target` is negative. Resolves when the shell has answered
   * that it does: that a line was written does not show that it was read, and Bun keeps lines back for a moment.
   *
   * @param target The id of the process.
   * @param remainingMs How long the lock is valid at this moment, in milliseconds.
   * @throws {Error} If the shell ends instead.
   */
  async watch(target: number, remainingMs: number): Promise<void> {
    this.#input.write(`${target}\n${secondsLine(remainingMs)}`);
    const { done } = await this.#lines.next();
    if (done) throw new Error("The process that watches over the command has ended");
  }

  /** Has it kill the command when the lock, which is valid for `remainingMs` from now on, is over. */
  validFor(remainingMs: number): void {
    this.#input.write(secondsLine(remainingMs));
  }

  /** Ends it. Returns whether it has killed the command. */
  async close(): Promise<boolean> {
    this.#input.end(`${WATCHER_END}\n`);
    const { done } = await this.#lines.next();
    return !done;
  }
}

/** Starts a watcher, which has nothing to watch yet. */
export async function startWatcher(): Promise<Watcher> {
  const child = spawn(SHELL, ["-c", WATCHER, "hasp-watcher"], {
    cwd: "/",
    detached: true,
    env: { PATH: process.env.PATH }, // no credentials
    stdio: ["pipe", "pipe", "ignore"],
  });
  await started(child);
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  return new Watcher(inputOf(child.stdin!), lines);
}

function secondsLine(remainingMs: number): string {
  return `${(Math.max(remainingMs - MARGIN_MS, 0) / 1_000).toFixed(3)}\n`;
}
