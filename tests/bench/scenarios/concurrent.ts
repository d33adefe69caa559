/** Many locks at a time, each on a resource of its own. */

import type { Figures } from "../measures.ts";
import { serverUsage, usageSince } from "../server_usage.ts";
import { Samples } from "../table.ts";
import type { WorkerProcess } from "../worker_process.ts";
import { type Bench, inRounds } from "./scenario.ts";

/** Locks in flight that the tables have, and the pairs per second that are to be reached. */
const GOALS = new Map([[10, "≥ 0.8"], [100, "≥ 0.9"], [1_000, "≥ 1"]]);
const IN_FLIGHT = [...GOALS.keys()];
/** Locks in flight at which the time of single commands is printed. */
const TYPICAL = 100;

/**
 * Measures pairs per second with some number of them in flight, and what they cost clients and
 * servers.
 */
export async function concurrent(bench: Bench): Promise<void> {
  const samples = new Samples();
  await inRounds(bench, samples, "concurrent", async (worker) => {
    const figures: Figures = {};
    for (const inFlight of IN_FLIGHT) Object.assign(figures, await once(bench, worker, inFlight));
    return figures;
  });
  const columns = (figure: string, digits: number, goal?: (inFlight: number) => string) =>
    IN_FLIGHT.map((inFlight) => ({
      figure: `${figure}${inFlight}`,
      title: `${inFlight} in flight`,
      digits,
      goal: goal?.(inFlight),
    }));
  samples.print(
    "Pairs per second, distinct resources (ratio to the floor)",
    columns("rate", 0, (inFlight) => GOALS.get(inFlight)!),
  );
  const typical = (goal: string) => (inFlight: number) => inFlight === TYPICAL ? goal : "";
  samples.print("Client CPU per pair, µs", columns("cpuUs", 1, typical("≤ 2.2")));
  samples.print("Server CPU per pair, all five together, µs", [
    ...columns("serverCpuUs", 1, typical("≤ 0.8")),
    { figure: `setUs${TYPICAL}`, title: "µs a SET", digits: 2 },
    { figure: `evalshaUs${TYPICAL}`, title: "µs an EVALSHA", digits: 2 },
  ]);
}

/**
 * The figures with so many locks in flight, which their names end with; with the faster of a
 * contender's settings.
 */
async function once(bench: Bench, worker: WorkerProcess, inFlight: number): Promise<Figures> {
  const first = await measured(bench, worker, { inFlight, pipelined: 0 });
  const other = first.hasChoice && inFlight > 1
    ? await measured(bench, worker, { inFlight, pipelined: 1 })
    : first;
  const figures = other.rate! > first.rate! ? other : first;
  return Object.fromEntries(
    Object.entries(figures).map(([name, value]) => [`${name}${inFlight}`, value]),
  );
}

async function measured(bench: Bench, worker: WorkerProcess, params: Figures): Promise<Figures> {
  const before = await serverUsage(bench.servers);
  const { pairs, pairsPerS, cpuUs, hasChoice } = await worker.measure("concurrent", {
    ...params,
    durationMs: bench.durationMs,
  });
  const after = await serverUsage(bench.servers);
  const usage = usageSince(before, after, pairs!);
  return { rate: pairsPerS!, cpuUs: cpuUs!, hasChoice: hasChoice!, ...usage };
}
