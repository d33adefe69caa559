import { assert, assertEquals } from "@std/assert";
import type { SeedSummary } from "../../scripts/sim/seed_thread.ts";
import { runInThreads } from "../../scripts/sim/seed_threads.ts";
import { run } from "./support/run.ts";
import { swarmPlan } from "./support/swarm.ts";

const SEEDS = 6;

function tasks(seeds = SEEDS) {
  return Array.from({ length: seeds }, (_, seed) => ({ seed, kinds: undefined })).values();
}

Deno.test("seeds that threads run make the same runs as here", async () => {
  const summaries: SeedSummary[] = [];
  await runInThreads(2, tasks(), (summary) => {
    summaries.push(summary);
    return true;
  });
  summaries.sort((one, other) => one.seed - other.seed);
  assertEquals(summaries.length, SEEDS);
  for (const { seed, simulatedMs, locks, faults } of summaries) {
    const outcome = await run(swarmPlan(String(seed)));
    assertEquals(
      { simulatedMs, locks, faults },
      {
        simulatedMs: outcome.simulatedMs,
        locks: outcome.locks,
        faults: outcome.plan.faults.length,
      },
      `seed ${seed}`,
    );
  }
});

Deno.test("threads take no further seed once they are stopped", async () => {
  const left = tasks();
  let count = 0;
  await runInThreads(2, left, () => {
    count++;
    return false;
  });
  assertEquals(count, 2); // the second thread was on its way
  assert(!left.next().done);
});
