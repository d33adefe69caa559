import { assertEquals } from "@std/assert";
import { run } from "./support/run.ts";
import { complaint } from "./support/scenario.ts";
import { SCENARIOS } from "./support/scenarios.ts";

for (const scenario of SCENARIOS) {
  Deno.test(`${scenario.id}: ${scenario.name}`, async () => {
    assertEquals(complaint(scenario, await run(scenario.plan)), undefined);
  });
}
