/**
 * What fencing tokens cost: locks with one beside locks without, on fresh resources and on used
 * ones.
 */

import { Samples } from "../table.ts";
import { type Bench, inRounds } from "./scenario.ts";

const PAIRS = 1_000;

/** Measures p50 with fencing against p50 without. */
export async function fencing(bench: Bench): Promise<void> {
  const samples = new Samples();
  const workers = bench.workers.filter(({ name }) => name === "ours");
  await inRounds({ ...bench, workers }, samples, "fencing", (worker, round) => {
    return worker.measure("fenced", { count: PAIRS, round });
  });
  samples.print("With fencing tokens: p50 of a pair as a ratio to one without", [
    { figure: "plainUs", title: "without, µs", absolute: true },
    { figure: "fresh", title: "fresh", digits: 2, absolute: true, goal: "≤ 1.15" },
    { figure: "used", title: "used", digits: 2, absolute: true, goal: "≤ 1.15" },
  ]);
}
