/** One lock at a time: latency, the client's CPU time, and what is sent for a pair. */

import { commandsSentTo } from "../../support/monitor.ts";
import type { Figures } from "../measures.ts";
import { Samples } from "../table.ts";
import type { WorkerProcess } from "../worker_process.ts";
import { type Bench, inRounds } from "./scenario.ts";

/** How many pairs the commands are counted of. */
const COUNTED_PAIRS = 200;

/** Measures acquire and release, one at a time. */
export async function sequential(bench: Bench): Promise<void> {
  const samples = new Samples();
  await inRounds(
    bench,
    samples,
    "sequential",
    (worker) => worker.measure("sequential", { durationMs: bench.durationMs }),
  );
  samples.print("Acquire and release, one at a time (ratio to the floor)", [
    { figure: "p50Us", title: "p50 µs", goal: "≤ 1.12" },
    { figure: "p99Us", title: "p99 µs", goal: "≤ 1.4" },
    { figure: "cpuUs", title: "client CPU µs", goal: "≤ 1.25" },
  ]);
  const counts = new Samples();
  await inRounds({ ...bench, rounds: 1 }, counts, "commands", (worker) => count(bench, worker));
  counts.print("Commands sent per pair, to all five servers together", [
    { figure: "set", title: "set", digits: 2, absolute: true, goal: "5" },
    { figure: "scripts", title: "eval, evalsha", digits: 2, absolute: true, goal: "5" },
    { figure: "others", title: "others", digits: 2, absolute: true, goal: "0" },
  ]);
}

async function count(bench: Bench, worker: WorkerProcess): Promise<Figures> {
  const sent = await commandsSentTo(bench.servers, () => {
    return worker.measure("pairs", { count: COUNTED_PAIRS });
  });
  const figures: Figures = { set: 0, scripts: 0, others: 0 };
  for (const counts of sent) {
    for (const [name, calls] of Object.entries(counts)) {
      const figure = name === "set" ? "set" : /^eval(sha)?$/u.test(name) ? "scripts" : "others";
      figures[figure]! += calls / COUNTED_PAIRS;
    }
  }
  return figures;
}
