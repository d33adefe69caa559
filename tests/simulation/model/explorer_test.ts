import { assertEquals } from "@std/assert";
import { explore, type Model, type Step } from "./explorer.ts";

type Litres = readonly [three: number, five: number];

/**
 * Jugs of three and five litres, to be filled, emptied and poured over; the larger must not hold
 * `unwanted` litres.
 */
function jugs(unwanted: number): Model<Litres, string> {
  const step = (action: string, ...state: Litres): Step<Litres, string> => {
    return { action, state, violation: state[1] === unwanted ? `${unwanted} litres` : undefined };
  };
  return {
    initial: () => [[0, 0]],
    steps([three, five]) {
      const over = Math.min(three, 5 - five);
      const back = Math.min(five, 3 - three);
      return [
        step("fill the small one", 3, five),
        step("fill the large one", three, 5),
        step("empty the small one", 0, five),
        step("empty the large one", three, 0),
        step("pour the small one over", three - over, five + over),
        step("pour the large one over", three + back, five - back),
      ];
    },
    key: (litres) => litres.join(),
    describeState: (litres) => `the jugs hold ${litres.join(" and ")}`,
    describeStep: ({ action }) => action,
  };
}

Deno.test("explore() finds the shortest way to a violation", () => {
  assertEquals(explore(jugs(4)).trace, [
    "the jugs hold 0 and 0",
    "fill the large one",
    "pour the large one over",
    "empty the small one",
    "pour the large one over",
    "fill the large one",
    "pour the large one over",
    "4 litres",
  ]);
});

Deno.test("explore() visits every state once", () => {
  // Of the 24 ways to hold whole litres those where one jug is full or empty.
  assertEquals(explore(jugs(6)), { states: 16, steps: 96, depth: 7, complete: true, trace: [] });
});

Deno.test("explore() ends where enough states were visited", () => {
  const { states, complete, trace } = explore(jugs(4), 5);
  assertEquals({ states, complete, trace }, { states: 5, complete: false, trace: [] });
});

Deno.test("explore() takes states with one key for one", () => {
  const step = (state: readonly number[]) => ({ action: "", state });
  const stairs: Model<readonly number[], string> = {
    initial: () => [[0, 0]],
    steps: (state) =>
      [0, 1].filter((who) => state[who] < 2).map((who) => step(state.with(who, state[who] + 1))),
    key: (state) => state.join(),
    describeState: String,
    describeStep: String,
  };
  assertEquals(explore(stairs).states, 9);
  assertEquals(explore({ ...stairs, key: (state) => state.toSorted().join() }).states, 6);
});
