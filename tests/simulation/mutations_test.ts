import { assert, assertEquals, assertThrows } from "@std/assert";
import ts from "typescript";
import { scriptOf } from "../../src/testing/lua/script.ts";
import * as scripts from "../support/scripts.ts";
import { edited, markedFiles, runMutation, SCRIPTS } from "./support/mutation_run.ts";
import {
  again,
  becomes,
  drop,
  inPart,
  late,
  mutate,
  now,
  once,
  type Operator,
  part,
  sometimes,
  without,
} from "./support/mutation_operators.ts";
import { MUTATIONS } from "./support/mutations.ts";
import { testScenarios } from "./support/mutation_cases.ts";
import { SCENARIOS } from "./support/scenarios.ts";
import { REGRESSION_SCENARIOS } from "./support/scenarios_regressions.ts";

/** Mutations tried each time; the others are tried by `deno task sim --mutations`. */
const SAMPLE: readonly string[] = [
  "validity-without-drift",
  "quorum-one-too-small",
  "one-value-for-all-attempts",
  "release-does-not-compare",
  "end-aborts-nothing",
  "set-sent-again",
];

for (const mark of SAMPLE) {
  const mutation = MUTATIONS.find((known) => known.mark === mark);
  assert(mutation !== undefined, mark);
  Deno.test(`the checkers notice that ${mutation.name}`, async () => {
    const outcome = await runMutation(mutation, { from: 0, to: 500, enough: 1, limitMs: 60_000 });
    assertEquals(outcome.caught.length, 1);
  });
}

testScenarios(MUTATIONS.filter(({ operator }) => operator));

Deno.test("every mutation that a scenario catches is there", () => {
  const marks = MUTATIONS.map(({ mark }) => mark);
  const caught = SCENARIOS.flatMap(({ catches }) => catches);
  assertEquals(caught.filter((mark) => !marks.includes(mark)), []);
  for (const { id, catches } of REGRESSION_SCENARIOS) assert(catches.length > 0, id);
});

const BY_MARK = MUTATIONS.flatMap(({ mark, operator }) => operator ? [{ mark, operator }] : []);

Deno.test("every mark in src has one mutation, and every mutation of code its mark", async () => {
  const files = await markedFiles();
  assertEquals([...files.keys()].sort(), BY_MARK.map(({ mark }) => mark).sort());
  assertEquals(new Set(MUTATIONS.map(({ mark }) => mark)).size, MUTATIONS.length);
});

Deno.test("every mutation of code changes its source, to another that can be parsed", async () => {
  const files = await markedFiles();
  for (const { mark, operator } of BY_MARK) {
    for (const file of files.get(mark)!) {
      const source = await Deno.readTextFile(new URL(`../../src/${file}`, import.meta.url));
      const broken = mutate(source, mark, operator);
      assert(broken !== source, mark);
      assertEquals(ts.transpileModule(broken, { reportDiagnostics: true }).diagnostics, [], mark);
    }
  }
});

Deno.test("every mutation of a script finds its texts once, and leaves Lua that can be compiled", async () => {
  const folder = new URL(`../../src/${SCRIPTS}/`, import.meta.url);
  let texts = "";
  for await (const { name } of Deno.readDir(folder)) {
    texts += await Deno.readTextFile(new URL(name, folder));
  }
  const sources = Object.values(scripts).flatMap((it) => typeof it === "object" ? [it.source] : []);
  for (const { mark, edits = [] } of MUTATIONS) {
    for (const [from] of edits) assertEquals(texts.split(from).length, 2, `${mark}: ${from}`);
    for (const source of sources) scriptOf(edited(source, edits));
  }
});

const OPERATIONS: readonly (readonly [name: string, Operator, from: string, to: string])[] = [
  ["drop leaves the statement out", drop, "if (a) b();", ";"],
  ["becomes() replaces what is returned", becomes("0"), "return a + b;", "return 0;"],
  ["becomes() replaces what an if tests", becomes("true"), "if (a && b) c();", "if (true) c();"],
  ["becomes() replaces what is assigned", becomes("0"), "a.b ??= c + d;", "a.b ??= 0;"],
  ["part() leaves an operand", part(0), "return a - b(c);", "return (a);"],
  ["part() leaves a branch", part(2), "const a = b ? c : d;", "const a = (d);"],
  ["without() leaves out an operand", without(1), "if (a && b && c) d();", "if ((a && c)) d();"],
  ["without() leaves out an argument", without(1), "return max(a, b, c);", "return max(a, c);"],
  ["inPart() goes on in an argument", inPart(1, becomes("0")), "a(b, c);", "a(b, 0);"],
  ["now reads the clocks", now, "a = b;", "a = globalThis.mutant.now();"],
  ["once keeps a value", once, "const a = b();", "const a = globalThis.mutant.once(() => b());"],
  [
    "late() puts a call off",
    late(5),
    "this.#a(b, c);",
    "globalThis.mutant.late(5, (...args) => this.#a(...args), b, c);",
  ],
  [
    "again() repeats a statement",
    again(5),
    "a(b);",
    "{ a(b); globalThis.mutant.again(5, () => { a(b); }); }",
  ],
  [
    "sometimes() breaks each third time",
    sometimes(inPart(0, becomes("0"))),
    "a(b);",
    "{ if (globalThis.mutant.third()) { a(0); } else { a(b); } }",
  ],
];

for (const [name, operator, from, to] of OPERATIONS) {
  Deno.test(`mutation operators: ${name}`, () => {
    const around = (text: string) =>
      `function f() {\n  // mutation: a-test\n  ${text}\n  last();\n}\n`;
    assertEquals(mutate(around(from), "a-test", operator), around(to));
  });
}

Deno.test("mutate() changes what is marked wherever the mark is, and nothing else", () => {
  const source =
    "// mutation: one\n// mutation: two\n// why\nif (a) b();\nc(\n  // mutation: one\n  d && e,\n);\n";
  assertEquals(
    mutate(source, "one", becomes("false")),
    source.replace("(a)", "(false)").replace("d && e", "false"),
  );
});

Deno.test("mutate() refuses a mark that is missing or that nothing follows, and an operator that does not fit", () => {
  assertThrows(() => mutate("a();", "one", drop), Error, 'There is no mark "one"');
  const last = "{\n  a();\n  // mutation: one\n}\nb();";
  assertThrows(() => mutate(last, "one", drop), Error, 'Nothing begins behind the mark "one"');
  const marked = "// mutation: one\nconst a = b;";
  assertThrows(() => mutate(marked, "one", part(1)), Error, "Cannot find part 1 in a Identifier");
  assertThrows(() => mutate(marked, "one", drop), Error, "Cannot find a statement to leave out");
  assertThrows(() => mutate(marked, "one", late(1)), Error, "Cannot find a call in a Identifier");
});
