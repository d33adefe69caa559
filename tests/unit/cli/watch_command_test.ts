import { assertEquals } from "@std/assert";
import { type Inspection, QuorumError, type RedlockError, type Vote } from "../../../mod.ts";
import { WatchedResource } from "../../../src/cli/watch_command.ts";

const VOTES: readonly Vote[] = [{ node: "redis://a:1", outcome: "held", elapsedMs: 1 }];
const FREE: Inspection = {
  held: false,
  remainingMs: 0,
  holder: undefined,
  sharers: undefined,
  waiters: 0,
  foreign: undefined,
  votes: [],
};
const ALICE: Inspection = { ...FREE, held: true, remainingMs: 900, holder: "a11ce000" };
const BOB: Inspection = { ...ALICE, holder: "b0b00000", waiters: 2 };
const UNKNOWN = new QuorumError("Cannot inspect", { resources: ["a"], votes: VOTES });

/** What is said after each look, one second apart, and what the row shows after the last one. */
function watched(...states: (Inspection | RedlockError)[]) {
  const watched = new WatchedResource("job\n");
  const said = states.map((state, index) => watched.look(state, index * 1_000));
  const [, state, holder, heldFor] = watched.row(states.length * 1_000);
  return { said, row: [state, holder, heldFor].map((cell) => [cell].flat()[0]) };
}

Deno.test("WatchedResource says what has changed since the last look, and nothing else", () => {
  const { said } = watched(FREE, FREE, ALICE, { ...ALICE, remainingMs: 400 }, BOB, UNKNOWN, BOB);
  assertEquals(said, [
    "job\\u{a}  free",
    undefined,
    "job\\u{a}  held by a11ce000, 0 waiting",
    undefined,
    "job\\u{a}  held by b0b00000, 2 waiting",
    "job\\u{a}  unknown: too few nodes answered",
    "job\\u{a}  held by b0b00000, 2 waiting",
  ]);
});

Deno.test("WatchedResource says what is wrong with a key that no lock library has set", () => {
  const foreign = "holds a list, so no lock library set it";
  const list = { ...ALICE, holder: undefined, foreign, waiters: undefined };
  assertEquals(watched(list), {
    said: ["job\\u{a}  held: its key holds a list, so no lock library set it"],
    row: ["held", "?", "> 1.0 s"],
  });
});

Deno.test("WatchedResource counts how long a holder has held, and at least how long if it did not see the start", () => {
  assertEquals(watched(FREE, ALICE, ALICE).row, ["held", "a11ce000", "2.0 s"]);
  assertEquals(watched(ALICE, BOB).row, ["held", "b0b00000", "1.0 s"]);
  assertEquals(watched(FREE, ALICE, UNKNOWN, ALICE).row, ["held", "a11ce000", "3.0 s"]);
  assertEquals(watched(ALICE, ALICE).row, ["held", "a11ce000", "> 2.0 s"]);
  assertEquals(watched(FREE, UNKNOWN, ALICE).row, ["held", "a11ce000", "> 1.0 s"]);
  assertEquals(watched(ALICE, FREE).row, ["free", "–", "–"]);
  assertEquals(watched(ALICE, UNKNOWN).row, ["unknown", "?", "?"]);
});
