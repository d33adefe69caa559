import { assertEquals } from "@std/assert";
import { Assumptions } from "./support/assumptions.ts";
import { SCENARIOS } from "./support/scenarios.ts";

const readme = await Deno.readTextFile(new URL("README.md", import.meta.url));

/**
 * The names in one column of the table below a heading, in the order of the alphabet, each once.
 */
function namesBelow(heading: string, column: number): string[] {
  const [, section] = readme.split(`## ${heading}\n`);
  const rows = section.split("\n## ")[0].split("\n").filter((line) => line.startsWith("| "));
  const names = rows.flatMap((row) =>
    [...row.split("|")[column].matchAll(/`([a-z][a-zA-Z-]+)`/gu)].map(([, name]) => name)
  );
  return [...new Set(names)].sort();
}

/** What the sources of the simulator name as checkers. */
async function checkersInSource(): Promise<string[]> {
  const found = new Set<string>();
  const folder = new URL("support/", import.meta.url);
  for await (const { name } of Deno.readDir(folder)) {
    const source = await Deno.readTextFile(new URL(name, folder));
    for (const [, checker] of source.matchAll(/\.fail\w*\(\s*(?:\w+, )*"([a-z-]+)"/gu)) {
      found.add(checker);
    }
  }
  return [...found].sort();
}

Deno.test("the simulator's README names every checker, and no other", async () => {
  assertEquals(namesBelow("Promise and checker", 2), await checkersInSource());
});

Deno.test("the simulator's README names every assumption, and checkers that ask about it", async () => {
  const { guardMs: _, ...members } = Object.getOwnPropertyDescriptors(Assumptions.prototype);
  const predicates = Object.keys(members).filter((name) => !/^(?:constructor$|note)/u.test(name));
  assertEquals(namesBelow("Assumption and predicate", 2), predicates.sort());
  const checkers = await checkersInSource();
  const asking = namesBelow("Assumption and predicate", 3);
  assertEquals(asking.filter((name) => !checkers.includes(name)), []);
});

Deno.test("the scenario that the simulator's README names is there", () => {
  const [, id] = readme.match(/--scenario (\w+)/u)!;
  assertEquals(SCENARIOS.some((scenario) => scenario.id === id), true);
});
