/** The runtimes, and how the suite is run in each. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findRuntime } from "../../scripts/find_runtimes.ts";
import { bundle } from "../../scripts/package/bundle.ts";
import type { Consumer } from "../../scripts/package/consumer.ts";
import { denoPath, nodePath, type ToolSet } from "../../scripts/package/tools.ts";
import { plainCommand } from "../support/plain_command.ts";
import type { Context, Feature, Outcome } from "./context.ts";
import { startWorker } from "./processes.ts";
import type { World } from "./world.ts";

/** How long one runtime may take for the whole suite, in milliseconds. */
const SUITE_WITHIN_MS = 300_000;

/** How long a process may take to end once the last case is over, in milliseconds. */
const END_WITHIN_MS = 10_000;

const RUNNERS = fileURLToPath(new URL("./runners", import.meta.url));

/** A runtime that is there. */
export interface Runtime {
  readonly name: string;
  /** What it lacks, and why; those cases expect a clear error. */
  readonly lacks: Readonly<Partial<Record<Feature, string>>>;
  /** Runs the whole suite. */
  run(context: Context): Promise<Outcome[]>;
}

/** A runtime that may not be there. */
export interface Candidate {
  readonly name: string;
  /** @throws {Error} If there is none and none could be fetched. */
  find(consumer: Consumer, world: World): Promise<Runtime>;
}

/** All runtimes that the library supports. */
export const CANDIDATES: readonly Candidate[] = [
  { name: "Deno", find: () => findDeno("Deno") },
  { name: "Deno 2.5", find: async () => findDeno("Deno 2.5", await denoPath("deno25")) },
  { name: "Deno npm", find: (consumer) => findDenoNpm("Deno npm", consumer) },
  {
    name: "Deno 2.5 npm",
    find: async (consumer) => findDenoNpm("Deno 2.5 npm", consumer, await denoPath("deno25")),
  },
  { name: "Node 20", find: (consumer) => findNode("Node 20", "node20", consumer) },
  { name: "Node 22", find: (consumer) => findNode("Node 22", "node22", consumer) },
  { name: "Node 24", find: (consumer) => findNode("Node 24", "node24", consumer) },
  { name: "Node 26", find: (consumer) => findNode("Node 26", "node26", consumer) },
  { name: "Bun", find: findBun },
  { name: "workerd", find: findWorkerd },
];

/** How a program is run in Deno, with the network as its only permission. */
const DENO_ARGS = ["run", "--no-prompt", "--no-check", "--allow-net=127.0.0.1,localhost"];

/** Deno, on the source. */
function findDeno(name: string, path = Deno.execPath()): Promise<Runtime> {
  return Promise.resolve(denoRuntime(name, path, [...DENO_ARGS, join(RUNNERS, "deno.ts")]));
}

/** Deno, on the npm package in `node_modules`. */
async function findDenoNpm(
  name: string,
  consumer: Consumer,
  path = Deno.execPath(),
): Promise<Runtime> {
  const args = [...DENO_ARGS, await bundleRunner(consumer)];
  return denoRuntime(name, path, args);
}

function denoRuntime(name: string, path: string, args: string[]): Runtime {
  return {
    name,
    lacks: {
      "unix sockets": "in Deno they need leave to read and write files",
      ...(path === Deno.execPath()
        ? {}
        : { "an end of stuck writes": "in Deno 2.5 they outlive the stream's end" }),
    },
    run: (context) => runProcess(path, args, context),
  };
}

async function findNode(name: string, set: ToolSet, consumer: Consumer): Promise<Runtime> {
  const [path, script] = [await nodePath(set), await bundleRunner(consumer)];
  return { name, lacks: {}, run: (context) => runProcess(path, [script], context) };
}

async function findBun(consumer: Consumer): Promise<Runtime> {
  const [path, script] = [await findRuntime("bun"), await bundleRunner(consumer)];
  return { name: "Bun", lacks: {}, run: (context) => runProcess(path, [script], context) };
}

async function findWorkerd(consumer: Consumer, { authorityFile }: World): Promise<Runtime> {
  const script = await bundleWorker(consumer, join(RUNNERS, "worker.ts"));
  const node = await nodePath("node22");
  return {
    name: "workerd",
    lacks: {
      "unix sockets": "workers have none",
      authorities: "workers trust the platform's, which was told of ours",
    },
    async run(context) {
      await using worker = await startWorker(node, script, {}, authorityFile);
      const [response] = await worker.send({ path: "/", body: JSON.stringify(context) });
      if (response!.status !== 200) throw new Error(response!.body);
      const startMs = performance.now();
      const { code } = await worker.end();
      const end = endOutcome(performance.now() - startMs);
      return [...outcomesIn(response!.body), code === 0 ? end : { ...end, error: `code ${code}` }];
    },
  };
}

/**
 * Bundles the runner of Node, Bun and npm packages in Deno beside the installed package, which it
 * imports by its name.
 */
async function bundleRunner(consumer: Consumer): Promise<string> {
  const script = join(consumer.folder, `runner-${crypto.randomUUID()}.js`);
  await bundle(join(RUNNERS, "node.ts"), script, { platform: "node" });
  return script;
}

/** Bundles a worker with the package in it. */
export async function bundleWorker(consumer: Consumer, entry: string): Promise<string> {
  const script = join(consumer.folder, `worker-${crypto.randomUUID()}.js`);
  const packages = join(consumer.folder, "node_modules");
  await bundle(entry, script, { platform: "workers", packages });
  return script;
}

/** Runs the suite as a process that must end by itself. */
async function runProcess(command: string, args: string[], context: Context): Promise<Outcome[]> {
  const child = plainCommand(command, {
    args: [...args, JSON.stringify(context)],
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    signal: AbortSignal.timeout(SUITE_WITHIN_MS),
  }).spawn();
  const errors = new Response(child.stderr).text();
  let output = "";
  let lastMs = performance.now();
  const decoder = new TextDecoder();
  for await (const chunk of child.stdout) {
    output += decoder.decode(chunk, { stream: true });
    lastMs = performance.now();
  }
  const { code, signal } = await child.status;
  const endedMs = performance.now() - lastMs;
  const outcomes = outcomesIn(output);
  const said = await errors;
  if (code === 0 && signal === null) return [...outcomes, endOutcome(endedMs)];
  return [...outcomes, { ...endOutcome(endedMs), error: `ended with ${signal ?? code}:\n${said}` }];
}

function outcomesIn(output: string): Outcome[] {
  return output.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
}

function endOutcome(tookMs: number): Outcome {
  const name = "the process ends by itself, although a client is left open";
  if (tookMs <= END_WITHIN_MS) return { name, tookMs };
  return { name, tookMs, error: `it took ${Math.round(tookMs)} ms to end` };
}
