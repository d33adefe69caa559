/**
 * One of five nodes stopped (its sockets open) or dead (its port closed): latency against healthy,
 * in the same round.
 */

import type { Figures } from "../measures.ts";
import { Samples } from "../table.ts";
import type { WorkerProcess } from "../worker_process.ts";
import { type Bench, inRounds } from "./scenario.ts";

/** Pairs that are not measured after a change, so that each contender has noticed it. */
const UNMEASURED_PAIRS = 20;

/** A contender that takes longer for them hangs when a node does, as some do for good. */
const UNMEASURED_WITHIN_MS = 10_000;

/** Measures p50 with the last node stopped, and with the last node killed. */
export async function faults(bench: Bench): Promise<void> {
  const samples = new Samples();
  await inRounds(bench, samples, "faults", async (worker) => {
    try {
      return await once(bench, worker);
    } finally {
      // Whatever was reached, the next contender finds five healthy nodes, and this one fresh
      // connections.
      await bench.servers.at(-1)!.restart();
      await worker.open(bench.servers.urls);
    }
  });
  samples.print("One of five nodes down: p50, and as a ratio to the same contender's healthy p50", [
    { figure: "healthyUs", title: "healthy µs", absolute: true },
    { figure: "stoppedUs", title: "stopped µs", absolute: true },
    { figure: "stopped", title: "stopped", digits: 2, absolute: true, goal: "≤ 1.1" },
    { figure: "deadUs", title: "dead µs", absolute: true },
    { figure: "dead", title: "dead", digits: 2, absolute: true, goal: "≤ 1.1" },
  ]);
}

async function once(bench: Bench, worker: WorkerProcess): Promise<Figures> {
  const node = bench.servers.at(-1)!;
  const p50Us = async () => {
    await worker.measure("pairs", { count: UNMEASURED_PAIRS }, UNMEASURED_WITHIN_MS);
    return (await worker.measure("sequential", { durationMs: bench.durationMs })).p50Us!;
  };
  const healthyUs = await p50Us();
  await node.pause();
  const stoppedUs = await p50Us();
  await node.kill();
  const deadUs = await p50Us();
  return { healthyUs, stoppedUs, stopped: stoppedUs / healthyUs, deadUs, dead: deadUs / healthyUs };
}
