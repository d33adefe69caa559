/**
 * A thread that runs the seeds that it is sent, one after the other, and sends back what came of
 * each.
 *
 * @module
 */

import { parentPort } from "node:worker_threads";
import { run } from "../../tests/simulation/support/run.ts";
import { type FaultKind, swarmPlan } from "../../tests/simulation/support/swarm.ts";

/** One seed to run. */
export interface SeedTask {
  readonly seed: number;
  readonly kinds: readonly FaultKind[] | undefined;
}

/** What came of one seed, in numbers. */
export interface SeedSummary {
  readonly seed: number;
  readonly simulatedMs: number;
  readonly locks: number;
  readonly faults: number;
  /** Whether there were violations that are expected, and others. */
  readonly excused: boolean;
  readonly failed: boolean;
}

parentPort!.on("message", async ({ seed, kinds }: SeedTask) => {
  const { plan, simulatedMs, locks, excused, violations } = await run(
    swarmPlan(String(seed), { kinds }),
  );
  const summary: SeedSummary = {
    seed,
    simulatedMs,
    locks,
    faults: plan.faults.length,
    excused: excused.length > 0,
    failed: violations.length > 0,
  };
  parentPort!.postMessage(summary);
});
