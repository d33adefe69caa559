/** A node is replaced while clients lock: the manual's ways keep exclusion, and others do not. */

import { assertEquals, assertGreater } from "@std/assert";
import { replacementPlan, SAFE_WAYS, UNSAFE_WAYS } from "./support/replacement.ts";
import { run } from "./support/run.ts";

/** How many seeds are run each time. */
const SEEDS = 30;

for (const way of SAFE_WAYS) {
  Deno.test(`replacing a node keeps exclusion: ${way}`, async () => {
    let locks = 0;
    for (let seed = 0; seed < SEEDS; seed++) {
      const outcome = await run(replacementPlan(seed, way));
      assertEquals([...outcome.violations, ...outcome.excused], [], `seed ${seed}`);
      locks += outcome.locks;
    }
    assertGreater(locks, 20 * SEEDS);
  });
}

for (const way of UNSAFE_WAYS) {
  Deno.test(`replacing a node breaks exclusion: ${way}`, async () => {
    for (let seed = 0; seed < SEEDS; seed++) {
      const { excused } = await run(replacementPlan(seed, way));
      if (excused.some(({ checker }) => checker === "mutual-exclusion")) return;
    }
    throw new Error(`No two clients held one lock in ${SEEDS} seeds`);
  });
}
