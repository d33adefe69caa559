/**
 * The bench: this library side by side with the floor and with its peers, on five local servers.
 *
 * Every contender has a process of its own, the servers are outside, and contenders take turns
 * round by round, so that noise is shared; tables show medians over the rounds, and in brackets the
 * median of the ratios to the floor of the same round. Trust the ratios, not the absolute figures.
 */

import { parseArgs } from "node:util";
import { startServers } from "../support/servers.ts";
import { contenders } from "./contenders/contender.ts";
import { concurrent } from "./scenarios/concurrent.ts";
import { fencing } from "./scenarios/fencing.ts";
import { faults } from "./scenarios/faults.ts";
import { memory } from "./scenarios/memory.ts";
import { scale } from "./scenarios/scale.ts";
import type { Bench, Scenario } from "./scenarios/scenario.ts";
import { sequential } from "./scenarios/sequential.ts";
import { start } from "./scenarios/start.ts";
import { waiting } from "./scenarios/waiting.ts";
import { installPeers, type Runtime, WorkerProcess } from "./worker_process.ts";

const SCENARIOS: Record<string, Scenario> = {
  sequential,
  concurrent,
  faults,
  memory,
  start,
  waiting,
  fencing,
  scale,
};

const HELP = `Usage: deno task bench [options]

  --only LIST      scenarios, comma-separated; default all: ${Object.keys(SCENARIOS).join(", ")}
  --peers LIST     measured beside the floor and ours; default ours-waiting,redlock5, "" for none, all, or of
                   ${peerNames().join(", ")}
  --rounds N       rounds, of which the median is printed; default 5
  --duration MS    length of one measurement; default 500
  --quick          one short round of everything, to see that it runs
  --runtime NAME   deno, node or bun for the contenders; default deno
  --help

BENCH_DENO, BENCH_NODE and BENCH_BUN name other executables of the runtimes.`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      only: { type: "string", default: Object.keys(SCENARIOS).join(",") },
      peers: { type: "string", default: "ours-waiting,redlock5" },
      rounds: { type: "string" },
      duration: { type: "string" },
      quick: { type: "boolean", default: false },
      runtime: { type: "string", default: "deno" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return console.log(HELP);
  const scenarios = known("scenario", values.only, SCENARIOS);
  const peers = values.peers === "all" ? peerNames() : list(values.peers);
  known("contender", peers.join(","), contenders);
  const names = ["floor", "ours", ...peers];
  const runtime = known("runtime", values.runtime, { bun: "bun", deno: "deno", node: "node" })[0];

  const installs = peers.some((name) => name !== "ours-waiting");
  if (runtime !== "deno" && installs) await installPeers();
  await using servers = await startServers(5);
  await using stack = new AsyncDisposableStack();
  const bench: Bench = {
    servers,
    workers: [],
    runtime: runtime as Runtime,
    rounds: count("rounds", values.rounds ?? (values.quick ? "1" : "5")),
    durationMs: count("duration", values.duration ?? (values.quick ? "150" : "500")),
  };
  for (const name of names) {
    const worker = stack.use(new WorkerProcess(name, bench.runtime));
    if (await opened(worker, bench)) bench.workers.push(worker);
  }
  for (const scenario of scenarios) await scenario(bench);
}

/**
 * Connects a contender and lets its code be compiled; one that fails is left out, and said to be.
 */
async function opened(worker: WorkerProcess, { servers, durationMs }: Bench): Promise<boolean> {
  try {
    await worker.open(servers.urls);
    await worker.measure("sequential", { durationMs });
    await worker.measure("concurrent", { durationMs, inFlight: 100 });
    return true;
  } catch (error) {
    console.error(`Left out: ${error instanceof Error ? error.message : error}`);
    return false;
  }
}

/** Every contender but the floor and ours. */
function peerNames(): string[] {
  return Object.keys(contenders).filter((name) => name !== "floor" && name !== "ours");
}

function list(text: string): string[] {
  return text.split(",").map((name) => name.trim()).filter((name) => name !== "");
}

function known<T>(what: string, text: string, values: Record<string, T>): T[] {
  return list(text).map((name) => {
    const value = values[name];
    if (value !== undefined) return value;
    throw new RangeError(
      `Unknown ${what} "${name}", known are: ${Object.keys(values).join(", ")}`,
    );
  });
}

function count(option: string, text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new RangeError(`--${option} must be a positive integer: current value is "${text}"`);
}

if (import.meta.main) await main();
