/**
 * The process that kills a command if `hasp` cannot.
 *
 * @module
 */
import { spawn } from "node:child_process";
import process from "node:process";
import type { Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { inputOf, SHELL, started, written } from "./processes.ts";
import { WATCHER, WATCHER_END } from "./shell_scripts.ts";

/** By how much the watcher kills before the end of the validity, in milliseconds: it needs some to start its timer. */
const MARGIN_MS = 100;

/** A shell that runs {@linkcode WATCHER}. */
export class Watcher {
  readonly #input: Writable;
  /** All output of the shell, once it has ended: empty unless it killed the command. */
  readonly #output: Promise<string>;

  /**
   * @param input The input of the shell.
   * @param output All output of the shell.
   */
  constructor(input: Writable, output: Promise<string>) {
    this.#input = input;
    this.#output = output;
  }

  /**
   * Has it watch over a process, or over a process group if `target` is negative. Resolves when that outlives `hasp`.
   *
   * @param target The id of the process.
   * @param remainingMs How long the lock is valid at this moment, in milliseconds.
   */
  async watch(target: number, remainingMs: number): Promise<void> {
    await written(this.#input, `${target}\n${secondsLine(remainingMs)}`);
  }

  /** Has it kill the command when the lock, which is valid for `remainingMs` from now on, is over. */
  validFor(remainingMs: number): void {
    this.#input.write(secondsLine(remainingMs));
  }

  /** Ends it. Returns whether it has killed the command. */
  async close(): Promise<boolean> {
    this.#input.end(`${WATCHER_END}\n`);
    return await this.#output !== "";
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
  return new Watcher(inputOf(child.stdin!), text(child.stdout!));
}

function secondsLine(remainingMs: number): string {
  return `${(Math.max(remainingMs - MARGIN_MS, 0) / 1_000).toFixed(3)}\n`;
}
