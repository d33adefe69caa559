/** The bench's end of a worker process, and how each runtime is started. */

import { fileURLToPath } from "node:url";
import { BENCH_PACKAGES } from "./contenders/packages.ts";
import type { Figures } from "./measures.ts";
import type { WorkerAnswer, WorkerRequest } from "./worker.ts";

/** A request that takes longer counts as one that never ends, and its process is killed. */
const ANSWER_WITHIN_MS = 60_000;

const WORKER = fileURLToPath(new URL("./worker.ts", import.meta.url));

/** The runtimes a worker may run in. */
export type Runtime = "bun" | "deno" | "node";

/** Command line that runs a module in a runtime. */
export function runtimeCommand(
  runtime: Runtime,
  path: string,
  args: readonly string[] = [],
  gc = false,
): Deno.Command {
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

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Where Node and Bun find what they import by name. */
const PACKAGES = `${ROOT}.cache/bench`;

/**
 * Installs the peers and their clients, at the versions that Deno takes, where Node and Bun find
 * them.
 */
export async function installPeers(): Promise<void> {
  const { imports } = JSON.parse(await Deno.readTextFile(`${ROOT}deno.json`)) as {
    imports: Record<string, string>;
  };
  await Deno.mkdir(PACKAGES, { recursive: true });
  await Deno.writeTextFile(`${PACKAGES}/package.json`, '{ "private": true, "type": "module" }\n');
  const shared = ["ioredis", "redis", "redis-semaphore", "redlock4", "redlock5"]
    .map((name) => [name, imports[name]]);
  const packages = [...shared, ...Object.entries(BENCH_PACKAGES)].map(([name, target]) =>
    `${name}@${target}`
  );
  const { success, stderr } = await new Deno.Command("npm", {
    args: ["install", "--silent", "--no-audit", "--no-fund", "--legacy-peer-deps", ...packages],
    cwd: PACKAGES,
  }).output();
  if (!success) throw new Error(`Cannot install peers: ${new TextDecoder().decode(stderr)}`);
  Deno.env.set("BENCH_PACKAGES", PACKAGES);
}

/** A worker that holds one contender. */
export class WorkerProcess implements AsyncDisposable {
  /** The contender's name. */
  readonly name: string;
  readonly #runtime: Runtime;
  #child: Deno.ChildProcess;
  #writer: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;
  #answers: ReadableStreamDefaultReader<string>;
  #unread = "";
  #ended = false;

  /** Starts the process; {@linkcode open} makes it ready. */
  constructor(name: string, runtime: Runtime) {
    this.name = name;
    this.#runtime = runtime;
    [this.#child, this.#writer, this.#answers] = this.#start();
  }

  /**
   * Makes the contender connect to the nodes, after closing what it had before; in a new process,
   * if it was killed.
   */
  async open(urls: string[]): Promise<void> {
    if (this.#ended) {
      await this[Symbol.asyncDispose]();
      this.#ended = false;
      this.#unread = "";
      [this.#child, this.#writer, this.#answers] = this.#start();
    }
    await this.#request({ do: "close" });
    await this.#request({ do: "open", contender: this.name, urls });
  }

  /**
   * Runs one of the worker's measures.
   *
   * @param withinMs How long it may take; then the process is killed.
   * @throws {Error} If the contender fails or hangs.
   */
  measure(measure: string, params: Figures, withinMs: number = ANSWER_WITHIN_MS): Promise<Figures> {
    return this.#request({ do: "measure", measure, params }, withinMs);
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

  #start() {
    const child = runtimeCommand(this.#runtime, WORKER, [], true).spawn();
    const answers = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
    return [child, child.stdin.getWriter(), answers] as const;
  }

  async #request(request: WorkerRequest, withinMs = ANSWER_WITHIN_MS): Promise<Figures> {
    try {
      await this.#writer.write(new TextEncoder().encode(JSON.stringify(request) + "\n"));
    } catch (cause) {
      this.#ended = true;
      throw new Error(`${this.name}: its process has ended`, { cause });
    }
    const answer = JSON.parse(await this.#line(withinMs)) as WorkerAnswer;
    if ("error" in answer) throw new Error(`${this.name}: ${answer.error}`);
    return answer.figures;
  }

  async #line(withinMs: number): Promise<string> {
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), withinMs);
    try {
      while (!this.#unread.includes("\n")) {
        const { value, done } = await this.#answers.read();
        if (done) {
          this.#ended = true;
          throw new Error(`${this.name}: no answer within ${withinMs / 1_000} s`);
        }
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
