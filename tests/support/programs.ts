/**
 * Programs of `tests/programs` as processes of their own, in the runtimes that the library
 * supports.
 */

import { deadline } from "@std/async/deadline";
import { fileURLToPath } from "node:url";
import { findRuntime, type Runtime } from "../../scripts/find_runtimes.ts";
import { plainCommand } from "./plain_command.ts";

/** How long a program may take to end, in milliseconds; most take a second. */
const END_WITHIN_MS = 60_000;

/** How a program ended and what it wrote. */
export interface ProgramResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** One runtime, or why there is none. */
export interface FoundRuntime {
  readonly name: Runtime;
  /** The executable; undefined where there is none. */
  readonly path?: string;
  /** Why there is none. */
  readonly missing?: string;
}

/**
 * Finds all runtimes. For a missing one there is the reason, which is also printed on the standard
 * error.
 */
export function findRuntimes(): Promise<FoundRuntime[]> {
  return Promise.all((["deno", "node", "bun"] as const).map(async (name) => {
    try {
      return { name, path: await findRuntime(name) };
    } catch (error) {
      const missing = (error as Error).message;
      console.error(`Skipping tests: ${missing}`);
      return { name, missing };
    }
  }));
}

/** What one runtime needs on its command line; Deno gets the network and nothing else. */
const FLAGS: Record<Runtime, readonly string[]> = {
  deno: ["run", "--no-prompt", "--no-config", "--no-check", "--allow-net=127.0.0.1"],
  node: ["--disable-warning=ExperimentalWarning", "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON"],
  bun: ["run"],
};

/** Options of {@linkcode startProgram}. */
export interface ProgramOptions {
  /** Where it runs. @default {this Deno} */
  runtime?: FoundRuntime;
  /** Further arguments of the runtime, before the program. */
  flags?: readonly string[];
}

/** Starts a program of `tests/programs`; it is killed at the end of the block if it still runs. */
export function startProgram(
  name: string,
  args: readonly string[],
  options: ProgramOptions = {},
): Program {
  const { runtime = { name: "deno", path: Deno.execPath() }, flags = [] } = options;
  const file = fileURLToPath(new URL(`../programs/${name}`, import.meta.url));
  const child = plainCommand(runtime.path!, {
    args: [...FLAGS[runtime.name], ...flags, file, ...args],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  return new Program(name, child);
}

/** A running program. Made by {@linkcode startProgram}. */
export class Program implements AsyncDisposable {
  readonly #name: string;
  readonly #child: Deno.ChildProcess;
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;
  readonly #ended: Promise<void>;
  #stdout = "";
  #stderr = "";
  #isOver = false;
  #output = Promise.withResolvers<void>();

  /** Tests call {@linkcode startProgram} instead. */
  constructor(name: string, child: Deno.ChildProcess) {
    this.#name = name;
    this.#child = child;
    this.#stdin = child.stdin.getWriter();
    this.#ended = Promise.all([
      this.#collect(child.stdout, (text) => this.#stdout += text),
      this.#collect(child.stderr, (text) => this.#stderr += text),
      child.status,
    ]).then(() => {
      this.#isOver = true;
      this.#output.resolve();
    });
  }

  /** Whether the process has ended. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Process id. */
  get pid(): number {
    return this.#child.pid;
  }

  /**
   * Resolves to the first whole line that is, or matches, `line`. @throws {Error} If the program
   * ends before.
   */
  async line(line: string | RegExp): Promise<string> {
    const fits = (it: string) => typeof line === "string" ? it === line : line.test(it);
    for (let start = 0;;) {
      for (let end; (end = this.#stdout.indexOf("\n", start)) >= 0; start = end + 1) {
        const found = this.#stdout.slice(start, end);
        if (fits(found)) return found;
      }
      if (this.#isOver) throw new Error(`${this.#name} ended without "${line}": ${this.#said()}`);
      await this.#output.promise;
    }
  }

  /** Writes one line to the program's standard input. */
  async write(line: string): Promise<void> {
    try {
      await this.#stdin.write(new TextEncoder().encode(`${line}\n`));
    } catch (cause) {
      throw new Error(`${this.#name} takes no "${line}": ${this.#said()}`, { cause });
    }
  }

  /** Ends the program's standard input. */
  async closeInput(): Promise<void> {
    await this.#stdin.close();
  }

  /** Sends a signal to the process. */
  signal(signal: Deno.Signal): void {
    this.#child.kill(signal);
  }

  /**
   * Resolves once the process has ended. @throws {Error} If it does not within `limitMs`: it is
   * killed.
   */
  async end(limitMs = END_WITHIN_MS): Promise<ProgramResult> {
    await deadline(this.#ended, limitMs).catch(() => {
      this.#kill();
      throw new Error(`${this.#name} ran for longer than ${limitMs} ms: ${this.#said()}`);
    });
    const { code } = await this.#child.status;
    return { code, stdout: this.#stdout, stderr: this.#stderr };
  }

  /** Kills the process if it still runs. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#kill();
    await this.#ended;
    await this.#stdin.abort().catch(() => {});
  }

  #kill(): void {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // It has ended. What it has started may still hold its output.
    }
  }

  #said(): string {
    return JSON.stringify({ stdout: this.#stdout, stderr: this.#stderr });
  }

  async #collect(
    stream: ReadableStream<BufferSource>,
    take: (text: string) => void,
  ): Promise<void> {
    for await (const text of stream.pipeThrough(new TextDecoderStream())) {
      take(text);
      this.#output.resolve();
      this.#output = Promise.withResolvers();
    }
  }
}
