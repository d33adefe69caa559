/**
 * Programs that the tests start: told by lines on their standard input, heard by lines on their
 * output, stopped by handle.
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findTools } from "../../scripts/package/tools.ts";
import { plainCommand } from "../support/plain_command.ts";

/** How long one line may take to come, in milliseconds. */
const LINE_WITHIN_MS = 60_000;

/** How long a program may take to end when it is asked to, in milliseconds. */
const STOP_WITHIN_MS = 5_000;

/** A program that runs. */
export interface Program extends AsyncDisposable {
  /** The next line of its output; rejects where it ends before. */
  nextLine(): Promise<string>;
  /** Writes a line to its input. */
  write(line: string): Promise<void>;
  /** Asks it to end, and kills it if it does not. */
  stop(): void;
  /** Waits until it ends. */
  end(): Promise<Deno.CommandStatus>;
}

/**
 * Starts a program, and reads its output or its errors; it is stopped at the end of the block if it
 * still runs.
 */
export function startProgram(
  command: string,
  args: readonly string[],
  options: { env?: Record<string, string>; heard?: "stdout" | "stderr" } = {},
): Program {
  const { env, heard = "stdout" } = options;
  const child = plainCommand(command, {
    args: [...args],
    env,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const errors = new Response(child[heard === "stdout" ? "stderr" : "stdout"]).text();
  const writer = child.stdin.getWriter();
  const lines = linesOf(child[heard]);
  let inputOpen = true;
  /** Asks it to end, and kills it where it does not. */
  const stop = () => {
    try {
      child.kill("SIGTERM");
    } catch {
      return; // it ended by itself
    }
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_WITHIN_MS);
    child.status.then(() => clearTimeout(timer));
  };
  const closeInput = async () => {
    if (!inputOpen) return;
    inputOpen = false;
    await writer.close().catch(() => {});
  };
  return {
    async nextLine() {
      const timer = setTimeout(stop, LINE_WITHIN_MS);
      const { value, done } = await lines.next();
      clearTimeout(timer);
      if (done) {
        const { code } = await child.status;
        throw new Error(`${command} ended with ${code}:\n${await errors}`);
      }
      return value;
    },
    stop,
    write: (line) => writer.write(new TextEncoder().encode(`${line}\n`)),
    async end() {
      await closeInput();
      const timer = setTimeout(stop, LINE_WITHIN_MS);
      for await (const _line of lines);
      const status = await child.status;
      clearTimeout(timer);
      return status;
    },
    async [Symbol.asyncDispose]() {
      await closeInput();
      stop();
      await lines.return(undefined);
      await Promise.all([child.status, errors]);
    },
  };
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, undefined> {
  let rest = "";
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    yield* lines;
  }
}

/** A request to a worker. */
export interface WorkerRequest {
  readonly path: string;
  readonly body?: string;
  /** How often it is sent at once. @default {1} */
  readonly times?: number;
}

/** What a worker answered. */
export interface WorkerResponse {
  readonly status: number;
  readonly body: string;
}

/** A worker in workerd. Made by {@linkcode startWorker}. */
export interface Worker extends AsyncDisposable {
  /** Sends a POST request, and resolves to every response. */
  send(request: WorkerRequest): Promise<WorkerResponse[]>;
  /** Ends it in its own way. */
  end(): Promise<Deno.CommandStatus>;
}

/**
 * Starts a bundled worker.
 *
 * @param node The executable of a Node that runs TypeScript.
 * @param script The bundle.
 * @param bindings What it finds in `env`.
 * @param authorityFile Whom the platform trusts beside its own authorities.
 * @param platform What else it has of the platform, as options of Miniflare.
 */
export async function startWorker(
  node: string,
  script: string,
  bindings: Record<string, unknown>,
  authorityFile: string,
  platform: object = {},
): Promise<Worker> {
  const host = fileURLToPath(new URL("./runners/worker_host.ts", import.meta.url));
  const miniflare = join(await findTools("workerd"), "miniflare/dist/src/index.js");
  const program = startProgram(node, [
    ...["--disable-warning=ExperimentalWarning", "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON"],
    ...[host, miniflare, script, JSON.stringify(bindings), JSON.stringify(platform)],
  ], { env: { NODE_EXTRA_CA_CERTS: authorityFile } });
  return {
    async send(request) {
      await program.write(JSON.stringify({ method: "POST", ...request }));
      return JSON.parse(await program.nextLine());
    },
    end: () => program.end(),
    [Symbol.asyncDispose]: () => program[Symbol.asyncDispose](),
  };
}
