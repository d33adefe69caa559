/** Tests that scenarios go wrong if the library is broken. */
import { assertEquals } from "@std/assert";
import { runMutation } from "./mutation_run.ts";
import type { Mutation } from "./mutations.ts";
import { SCENARIOS } from "./scenarios.ts";

/** Registers a test for each of the mutations that scenarios catch. */
export function testScenarios(mutations: readonly Mutation[]): void {
  for (const mutation of mutations) {
    const catching = SCENARIOS.filter(({ catches }) => catches.includes(mutation.mark));
    const ids = catching.map(({ id }) => id);
    if (ids.length === 0) continue;
    Deno.test(`${[...new Set(ids)].join(", ")} goes wrong if ${mutation.name}`, async () => {
      const noSeeds = { from: 0, to: 0, enough: 1, limitMs: 60_000 };
      assertEquals((await runMutation(mutation, noSeeds)).scenarios, ids);
    });
  }
}
