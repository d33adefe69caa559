import { assert, assertEquals, assertThrows } from "@std/assert";
import { runMutation } from "./support/mutation_run.ts";
import { mutate, MUTATIONS } from "./support/mutations.ts";

/** Mutations tried each time; the others are tried by `deno task sim --mutations`. */
const SAMPLE: readonly string[] = [
  "the drift is not taken off the validity",
  "the quorum is one too small",
  "every attempt has the same value",
  "a release does not compare",
  "the end of the validity aborts nothing",
  "a SET without an answer is sent again",
];

const mayRun = (await Deno.permissions.query({ name: "run" })).state === "granted";

for (const name of SAMPLE) {
  Deno.test({
    name: `the checkers notice that ${name}${mayRun ? "" : " (no permission to run programs)"}`,
    ignore: !mayRun,
    fn: async () => {
      const mutation = MUTATIONS.find((known) => known.name === name);
      assert(mutation !== undefined);
      const outcome = await runMutation(mutation, { from: 0, to: 500, enough: 1, limitMs: 60_000 });
      assertEquals(outcome.caught.length, 1);
    },
  });
}

Deno.test("every mutation still applies to the sources", async () => {
  for (const mutation of MUTATIONS) {
    const source = await Deno.readTextFile(new URL(`../../src/${mutation.file}`, import.meta.url));
    assert(mutate(source, mutation) !== source, mutation.name);
  }
});

Deno.test("mutate() refuses a text that is not there, or more than once", () => {
  const mutation = { name: "a test", file: "a.ts", from: "one", to: "two" };
  assertEquals(mutate("one", mutation), "two");
  for (const [source, count] of [["", 0], ["one one", 2]] as const) {
    assertThrows(
      () => mutate(source, mutation),
      Error,
      `Cannot apply mutation "a test": its text is ${count} times in src/a.ts`,
    );
  }
});
