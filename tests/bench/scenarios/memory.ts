/**
 * Heap kept for each held lock.
 *
 * @module
 */

import { Samples } from "../table.ts";
import { type Bench, inRounds } from "./scenario.ts";

/** Locks held at once, per round. */
const HELD_LOCKS = 5_000;

/** Measures the heap that a held lock keeps; the floor keeps the name of the resource alone. */
export async function memory(bench: Bench): Promise<void> {
  const samples = new Samples();
  await inRounds(bench, samples, "memory", async (worker, round) => {
    const figures = await worker.measure("memory", { count: HELD_LOCKS, round });
    for (const server of bench.servers) await server.command("FLUSHALL");
    await worker.open(bench.servers.urls);
    return figures;
  });
  samples.print(`Heap kept per held lock, ${HELD_LOCKS} of them`, [
    { figure: "bytes", title: "bytes", absolute: true, goal: "≤ 800" },
  ]);
}
