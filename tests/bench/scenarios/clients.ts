/**
 * This library on the clients of others, beside its own client.
 *
 * @module
 */

import { startBridge } from "../../support/upstash_bridge.ts";
import { CLIENTS } from "../contenders/contender.ts";
import { Samples } from "../table.ts";
import { installRecipes, type Runtime, WorkerProcess } from "../worker_process.ts";
import { type Bench, inRounds } from "./scenario.ts";

/** Locks in flight at which throughput is measured. */
const IN_FLIGHT = 100;

/**
 * Measures latency, CPU time and throughput of each recipe against our own client in the same
 * runtime.
 */
export async function clients(bench: Bench): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const bridges = bench.servers.urls.map((url) => {
    const bridge = stack.use(startBridge(url));
    return [url, [bridge.url, bridge.token]];
  });
  Deno.env.set("BENCH_BRIDGES", JSON.stringify(Object.fromEntries(bridges)));
  await installRecipes(CLIENTS.filter((name) => name !== "upstash"));
  await measured(bench, bench.runtime, CLIENTS.filter((name) => name !== "bun_redis"));
  await measured(bench, "bun", ["bun_redis"]).catch(({ message }) => {
    console.error(`Left out: ${message}`); // there may be no Bun
  });
}

async function measured(
  bench: Bench,
  runtime: Runtime,
  names: readonly string[],
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const { durationMs } = bench;
  const measure = async (worker: WorkerProcess) => {
    const { p50Us, cpuUs } = await worker.measure("sequential", { durationMs });
    const many = await worker.measure("concurrent", { durationMs, inFlight: IN_FLIGHT });
    return { p50Us: p50Us!, cpuUs: cpuUs!, rate: many.pairsPerS!, manyCpuUs: many.cpuUs! };
  };
  const workers = ["ours", ...names].map((name) => stack.use(new WorkerProcess(name, runtime)));
  for (const worker of workers) {
    await worker.open(bench.servers.urls);
    await measure(worker); // lets its code be compiled
  }
  const samples = new Samples("ours");
  await inRounds({ ...bench, workers }, samples, "clients", measure);
  samples.print(`On other clients, in ${runtime} (ratio to our own client)`, [
    { figure: "p50Us", title: "one at a time, p50 µs" },
    { figure: "cpuUs", title: "client CPU µs" },
    { figure: "rate", title: `pairs/s, ${IN_FLIGHT} in flight` },
    { figure: "manyCpuUs", title: "client CPU µs", digits: 1 },
  ]);
}
