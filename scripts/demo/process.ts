/**
 * A Deno process of the demo's own: told what to do on its input, telling on its output, both in lines.
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import { TextLineStream } from "./lines.ts";

const encoder = new TextEncoder();

/** A module of this folder that runs in a process of its own. It ends when its input does, or by force. */
export class DemoProcess implements AsyncDisposable {
  /** What it prints, line by line. */
  readonly lines: ReadableStream<string>;
  readonly #child: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;

  /**
   * Starts it.
   *
   * @param module The module's file name.
   * @param args Its arguments.
   */
  constructor(module: string, args: readonly string[]) {
    const path = fileURLToPath(new URL(module, import.meta.url));
    this.#child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", "--quiet", path, ...args],
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    this.#input = this.#child.stdin.getWriter();
    this.lines = this.#child.stdout
      .pipeThrough(new TextDecoderStream())
      .pipeThrough(new TextLineStream());
  }

  /** The process's id. */
  get pid(): number {
    return this.#child.pid;
  }

  /** Writes one line to its input. */
  async tell(line: string): Promise<void> {
    await this.#input.write(encoder.encode(`${line}\n`));
  }

  /** Sends it a signal; one that has ended already is left alone. */
  signal(signal: Deno.Signal): void {
    try {
      this.#child.kill(signal);
    } catch {
      // It ended by itself.
    }
  }

  /** Kills it, and waits until it is gone. Idempotent. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.signal("SIGKILL");
    await this.#child.status;
    await this.#input.abort().catch(() => {});
    if (!this.lines.locked) await this.lines.cancel();
  }
}
