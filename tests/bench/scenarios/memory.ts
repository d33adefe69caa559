/** Heap kept for each held lock, and what a process grows by. */

import { Samples } from "../table.ts";
import { type Bench, inRounds } from "./scenario.ts";

/** Locks held at once, per round. */
const HELD_LOCKS = 5_000;

/** Pairs that the process's growth is measured over, and how many of them are in flight. */
const GROWTH_PAIRS = 100_000;
const GROWTH_IN_FLIGHT = 20;

/**
 * Measures the heap that a held lock keeps; the floor keeps the name of the resource alone; and how
 * a process grows.
 */
export async function memory(bench: Bench): Promise<void> {
  const samples = new Samples();
  await inRounds(bench, samples, "memory", async (worker, round) => {
    const figures = await worker.measure("memory", { count: HELD_LOCKS, round });
    for (const server of bench.servers) await server.command("FLUSHALL");
    await worker.open(bench.servers.urls);
    const growth = await worker.measure("growth", {
      count: GROWTH_PAIRS,
      inFlight: GROWTH_IN_FLIGHT,
    });
    return { ...figures, ...growth };
  });
  samples.print(`Heap kept per held lock, ${HELD_LOCKS} of them`, [
    { figure: "bytes", title: "bytes", absolute: true, goal: "≤ 800" },
  ]);
  samples.print(`Growth of the process over ${GROWTH_PAIRS} pairs, ${GROWTH_IN_FLIGHT} in flight`, [
    { figure: "grownMb", title: "MB", digits: 1, absolute: true },
  ]);
}
