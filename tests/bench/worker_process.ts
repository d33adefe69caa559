/**
 * The bench's end of a worker process, and how each runtime is started.
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import type { Figures } from "./measures.ts";
import type { WorkerAnswer, WorkerRequest } from "./worker.ts";

/** A request that takes longer counts as one that never ends: some peers hang for good when a node does. */
const ANSWER_WITHIN_MS = 60_000;

/** The runtimes a worker may run in. */
export type Runtime = "bun" | "deno" | "node";

/** Command line that runs a module of this folder, named from here, in a runtime. */
export function runtimeCommand(
  runtime: Runtime,
  module: string,
  args: readonly string[] = [],
  gc = false,
): Deno.Command {
  const path = fileURLToPath(new URL(module, import.meta.url));
  const flags: Record<Runtime, string[]> = {
    bun: ["run"],
    deno: ["run", "-A", "--no-check", ...(gc ? ["--v8-flags=--expose-gc"] : [])],
    node: ["--disable-warning=ExperimentalWarning", ...(gc ? ["--expose-gc"] : [])],
  };
  const executable = Deno.env.get(`BENCH_${runtime.toUpperCase()}`) ??
    (runtime === "deno" ? Deno.execPath() : runtime);
  return new Deno.Command(executable, {
    args: [...flags[runtime], path, ...args],
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  });
}

/** Installs the peers, at the versions of `deno.json`, where Node and Bun find them. */
export async function installPeers(): Promise<void> {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const { imports } = JSON.parse(await Deno.readTextFile(`${root}/deno.json`)) as {
    imports: Record<string, string>;
  };
  const folder = `${root}/.cache/bench`;
  await Deno.mkdir(folder, { recursive: true });
  await Deno.writeTextFile(`${folder}/package.json`, '{ "private": true }\n');
  const packages = ["ioredis", "redlock4", "redlock5"].map((name) => `${name}@${imports[name]}`);
  const { success, stderr } = await new Deno.Command("npm", {
    args: ["install", "--silent", "--no-audit", "--no-fund", ...packages],
    cwd: folder,
  }).output();
  if (!success) throw new Error(`Cannot install peers: ${new TextDecoder().decode(stderr)}`);
  Deno.env.set("BENCH_PACKAGES", folder);
}

/** A running worker that holds one contender. */
export class WorkerProcess implements AsyncDisposable {
  /** The contender's name. */
  readonly name: string;
  readonly #child: Deno.ChildProcess;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;
  readonly #answers: ReadableStreamDefaultReader<string>;
  #unread = "";

  /** Starts the process; {@linkcode open} makes it ready. */
  constructor(name: string, runtime: Runtime) {
    this.name = name;
    this.#child = runtimeCommand(runtime, "./worker.ts", [], true).spawn();
    this.#writer = this.#child.stdin.getWriter();
    this.#answers = this.#child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  }

  /** Makes the contender connect to the nodes, after closing whatever it had before. */
  async open(urls: string[]): Promise<void> {
    await this.#request({ do: "close" });
    await this.#request({ do: "open", contender: this.name, urls });
  }

  /** Runs one of the worker's measures. @throws {Error} If the contender fails or hangs. */
  measure(measure: string, params: Figures): Promise<Figures> {
    return this.#request({ do: "measure", measure, params });
  }

  /** Ends the process. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // It ended by itself; its status is there to be read all the same.
    }
    await this.#child.status;
    await this.#writer.abort().catch(() => {});
    await this.#answers.cancel().catch(() => {});
  }

  async #request(request: WorkerRequest): Promise<Figures> {
    try {
      await this.#writer.write(new TextEncoder().encode(JSON.stringify(request) + "\n"));
    } catch (cause) {
      throw new Error(`${this.name}: its process has ended`, { cause });
    }
    const answer = JSON.parse(await this.#line()) as WorkerAnswer;
    if ("error" in answer) throw new Error(`${this.name}: ${answer.error}`);
    return answer.figures;
  }

  async #line(): Promise<string> {
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), ANSWER_WITHIN_MS);
    try {
      while (!this.#unread.includes("\n")) {
        const { value, done } = await this.#answers.read();
        if (done) throw new Error(`${this.name}: ended without an answer`);
        this.#unread += value;
      }
    } finally {
      clearTimeout(timer);
    }
    const end = this.#unread.indexOf("\n");
    const line = this.#unread.slice(0, end);
    this.#unread = this.#unread.slice(end + 1);
    return line;
  }
}
