import { assert, assertEquals, assertGreater } from "@std/assert";
import { type Exploration, explore } from "./explorer.ts";
import { PoolModel, type PoolRules } from "./pool_model.ts";

/** Three nodes, three callers of two slots. */
const THREE: PoolRules = { nodes: 3, callers: 3, slots: 2, attempts: 1, grants: "a slot" };

/** Explores, and prints what came of it. */
function search(rules: PoolRules): Exploration {
  const found = explore(new PoolModel(rules));
  const { states, steps, depth, complete, trace } = found;
  console.log(
    `${states} states, ${steps} steps, depth ${depth}, ${complete ? "all there is" : ""}`,
  );
  for (const line of trace) console.log(`  ${line}`);
  return found;
}

for (const rules of [THREE, { ...THREE, callers: 2, attempts: 2 }]) {
  Deno.test(`${rules.nodes} nodes, ${rules.callers} callers of ${rules.slots} slots, ${rules.attempts} attempts: no order gives one slot to two`, () => {
    const { states, complete, trace } = search(rules);
    assertEquals(trace, []);
    assert(complete);
    assertGreater(states, 1_000);
  });
}

Deno.test("if nodes count places instead, three callers hold two slots", () => {
  const { trace } = search({ ...THREE, grants: "a place" });
  assertEquals(trace.at(-1), "3 callers hold 2 slots");
});
