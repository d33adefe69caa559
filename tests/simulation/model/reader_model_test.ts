import { assert, assertEquals, assertGreater } from "@std/assert";
import { type Exploration, explore } from "./explorer.ts";
import { ReaderModel, type ReaderRules } from "./reader_model.ts";

/** Three nodes, two readers and a writer. */
const THREE: ReaderRules = { nodes: 3, readers: 2, writers: 1, attempts: 1, keeps: "who reads" };

/** Explores, and prints what came of it. */
function search(rules: ReaderRules): Exploration {
  const found = explore(new ReaderModel(rules));
  const { states, steps, depth, complete, trace } = found;
  console.log(
    `${states} states, ${steps} steps, depth ${depth}, ${complete ? "all there is" : ""}`,
  );
  for (const line of trace) console.log(`  ${line}`);
  return found;
}

for (const rules of [THREE, { ...THREE, readers: 1, attempts: 2 }]) {
  Deno.test(`${rules.nodes} nodes, ${rules.readers} readers and a writer, ${rules.attempts} attempts: no order lets a writer in beside anybody`, () => {
    const { states, complete, trace } = search(rules);
    assertEquals(trace, []);
    assert(complete);
    assertGreater(states, 1_000);
  });
}

for (const keeps of ["how many read", "that somebody reads"] as const) {
  Deno.test(`if a node keeps ${keeps}, a writer comes in beside a reader`, () => {
    assertEquals(search({ ...THREE, keeps }).trace.at(-1), "a reader and a writer hold the lock");
  });
}
