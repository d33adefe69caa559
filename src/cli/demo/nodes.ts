/**
 * The nodes of `hasp demo`: processes of a Redis server if the machine has one, else servers in
 * memory.
 *
 * @module
 */
import { type ChildProcess, spawn } from "node:child_process";
import { tmpdir } from "node:os";
import process from "node:process";
import type { Readable } from "node:stream";
import { startNodes } from "../../testing/mod.ts";
import { systemRandom } from "../../time/random.ts";
import { sendSignal, within } from "../run/processes.ts";

/** Programs that are tried, in this order. */
const PROGRAMS = ["redis-server", "valkey-server"];
/** A server is ready when it logs this. */
const READY = "Ready to accept connections";
/**
 * Longest wait for it, in milliseconds: a server takes long on a busy machine, and one that cannot
 * start ends.
 */
const READY_MS_MAX = 30_000;
/** Ports are drawn from this range, which is below the local ends of outgoing connections. */
const PORT_MIN = 12_000, PORT_MAX = 32_000;

/** A node, and what goes wrong with it. */
export interface DemoNode {
  readonly address: string;
  /** Kills it. */
  crash(): Promise<void>;
  /** Stops it with its port open. */
  hang(): void;
  /** Ends {@linkcode hang}. */
  resume(): void;
}

/** All nodes. */
export interface DemoNodes extends AsyncDisposable {
  readonly nodes: readonly DemoNode[];
  /** What they are. */
  readonly description: string;
}

/** Starts nodes. */
export async function startDemoNodes(count: number): Promise<DemoNodes> {
  for (const program of process.platform === "win32" ? [] : PROGRAMS) { // without SIGSTOP there
    const servers = await startServers(program, count);
    if (servers) return servers;
  }
  const nodes = await startNodes(count);
  return {
    nodes,
    description: `${count} servers in memory, because no ${PROGRAMS[0]} runs here`,
    [Symbol.asyncDispose]: () => nodes.close(),
  };
}

/**
 * Starts processes of a server; returns `undefined` if that fails, as it does where the program is
 * missing.
 */
async function startServers(program: string, count: number): Promise<DemoNodes | undefined> {
  const nodes = Array.from({ length: count }, () => new ServerProcess(program));
  const kill = () => nodes.forEach((node) => node.kill());
  process.on("exit", kill); // if nobody reads the output any more, for example
  const stop = async () => {
    process.off("exit", kill);
    await Promise.all(nodes.map((node) => node.crash()));
  };
  const ready = await Promise.all(nodes.map((node) => within(READY_MS_MAX, node.ready)));
  if (!ready.every(Boolean)) return await stop().then(() => undefined);
  return { nodes, description: `${count} processes of ${program}`, [Symbol.asyncDispose]: stop };
}

class ServerProcess implements DemoNode {
  readonly address: string;
  /** Resolves to whether it has started. */
  readonly ready: Promise<boolean>;
  readonly #child: ChildProcess;
  readonly #ended: Promise<boolean>;

  constructor(program: string) {
    const port = PORT_MIN + Math.floor(systemRandom.fraction() * (PORT_MAX - PORT_MIN));
    this.address = `redis://127.0.0.1:${port}`;
    const settings = { port, bind: "127.0.0.1", save: "", dbfilename: `hasp-demo-${port}.rdb` };
    const child = spawn(
      program,
      Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]),
      { cwd: tmpdir(), stdio: ["ignore", "pipe", "ignore"] },
    );
    this.#child = child;
    this.#ended = new Promise((resolve) => {
      child.once("exit", () => resolve(false));
      child.once("error", () => resolve(false));
    });
    this.ready = Promise.race([logs(child.stdout, READY), this.#ended]);
  }

  async crash(): Promise<void> {
    this.kill();
    await this.#ended;
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  hang(): void {
    sendSignal(this.#child.pid!, "SIGSTOP");
  }

  resume(): void {
    sendSignal(this.#child.pid!, "SIGCONT");
  }
}

/**
 * Resolves when a stream contains a text. The stream is read on, because a full pipe would stop the
 * process.
 */
function logs(stream: Readable, text: string): Promise<boolean> {
  return new Promise((resolve) => {
    let log = "";
    stream.on("data", (chunk) => {
      log += chunk;
      if (log.includes(text)) resolve(true);
    });
  });
}
