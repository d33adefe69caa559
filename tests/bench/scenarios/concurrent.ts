/**
 * Many locks at a time, each on a resource of its own.
 *
 * @module
 */

import { Samples } from "../table.ts";
import { type Bench, inRounds } from "./scenario.ts";

const GOALS: Record<number, string> = { 10: "≥ 0.75", 100: "≥ 0.6", 1_000: "≥ 0.6" };

/** Measures pairs per second with 10, 100 and 1 000 of them in flight. */
export async function concurrent(bench: Bench): Promise<void> {
  const samples = new Samples();
  await inRounds(bench, samples, "concurrent", async (worker) => {
    const figures: Record<string, number> = {};
    for (const inFlight of [10, 100, 1_000]) {
      const { pairsPerS, cpuUs } = await worker.measure("concurrent", {
        inFlight,
        durationMs: bench.durationMs,
      });
      figures[`rate${inFlight}`] = pairsPerS!;
      figures[`cpu${inFlight}`] = cpuUs!;
    }
    return figures;
  });
  samples.print(
    "Pairs per second, distinct resources (ratio to the floor)",
    Object.entries(GOALS).map(([inFlight, goal]) => ({
      figure: `rate${inFlight}`,
      title: `${inFlight} in flight`,
      goal,
    })),
  );
  samples.print(
    "Client CPU per pair, µs",
    Object.keys(GOALS).map((inFlight) => ({
      figure: `cpu${inFlight}`,
      title: `${inFlight} in flight`,
      digits: 1,
    })),
  );
}
