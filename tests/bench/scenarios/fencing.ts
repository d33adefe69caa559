/**
 * What fencing tokens cost: locks with one beside locks without, on fresh resources and on used ones.
 *
 * @module
 */

import { Samples } from "../table.ts";
import { type Bench, inRounds } from "./scenario.ts";

const PAIRS = 2_000;

/** Measures p50 with fencing against p50 without, and how many commands acquire and release take. */
export async function fencing(bench: Bench): Promise<void> {
  const samples = new Samples();
  const workers = bench.workers.filter(({ name }) => name === "ours");
  await inRounds({ ...bench, workers }, samples, "fencing", async (worker, round) => {
    const p50Us = async () =>
      (await worker.measure("sequential", { durationMs: bench.durationMs })).p50Us!;
    const before = await p50Us();
    for (const server of bench.servers) await server.resetCommandCounts();
    const fresh = await worker.measure("fenced", { count: PAIRS, round });
    const used = await worker.measure("fenced", { count: PAIRS, round });
    let evalsha = 0;
    for (const server of bench.servers) evalsha += (await server.commandCounts()).evalsha ?? 0;
    const plainUs = (before + await p50Us()) / 2;
    return {
      plainUs,
      fresh: fresh.p50Us! / plainUs,
      used: used.p50Us! / plainUs,
      evalsha: evalsha / (2 * PAIRS),
    };
  });
  samples.print("With fencing tokens: p50 of a pair as a ratio to one without", [
    { figure: "plainUs", title: "without, µs", absolute: true },
    { figure: "fresh", title: "fresh", digits: 2, absolute: true, goal: "≤ 1.15" },
    { figure: "used", title: "used", digits: 2, absolute: true, goal: "≤ 1.15" },
    { figure: "evalsha", title: "commands a pair", digits: 2, absolute: true, goal: "10" },
  ]);
}
