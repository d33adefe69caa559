import { assert, assertEquals, assertGreater, assertMatch } from "@std/assert";
import { type Exploration, explore } from "./explorer.ts";
import {
  anyCounters,
  FencingModel,
  risingCounters,
  type Rules,
  type World,
} from "./fencing_model.ts";

const mayReadEnv = (await Deno.permissions.query({ name: "env" })).state === "granted";
/**
 * How many states are enough of models that have more: `MODEL_STATES_MAX=5000000` takes some
 * minutes and gigabytes.
 */
const STATES_MAX = Number(mayReadEnv && Deno.env.get("MODEL_STATES_MAX") || 60_000);

/** A counter a node, and the maximum of a quorum's answers. */
const MAXIMUM: Rules = { raises: "nowhere", answers: "the counter", firstRoundCounts: true };
/** … which is then written to a majority. */
const WRITTEN_BACK: Rules = { raises: "anywhere", answers: "as asked", firstRoundCounts: false };
/** … and only where the key still holds the attempt's value. */
const WRITTEN_WHERE_HELD: Rules = { ...WRITTEN_BACK, raises: "where held" };
/** … and counts only where the counter then equals the token. */
const EQUAL: Rules = { ...WRITTEN_WHERE_HELD, answers: "the counter" };
/**
 * … and is not written at all where a quorum's counters are equal at once: what the library does.
 */
const EQUAL_AT_ONCE: Rules = { ...EQUAL, firstRoundCounts: true };

/** Three nodes with any counters, two attempts, and keys that are lost before their time. */
const THREE: World = {
  nodes: 3,
  attempts: 2,
  counters: anyCounters(3, 2),
  keysStay: "where counted",
  forgets: 0,
  leaps: 0,
  fills: false,
  guarded: true,
  resumes: true,
  demanded: "order of hand-outs",
};
/** Five nodes whose counters are not far apart. */
const FIVE: World = { ...THREE, nodes: 5, counters: risingCounters(5, 1) };

/** Explores, and prints what came of it. */
function search(rules: Rules, world: World, statesMax = Infinity): Exploration {
  const startMs = performance.now();
  const found = explore(new FencingModel(rules, world), statesMax);
  const tookMs = Math.round(performance.now() - startMs);
  const { states, steps, depth, complete, trace } = found;
  const part = trace.length > 0 ? "to a violation" : complete ? "all there is" : "to the limit";
  console.log(`${states} states, ${steps} steps, depth ${depth}, ${part}, in ${tookMs} ms`);
  for (const line of trace) console.log(`  ${line}`);
  return found;
}

/** Fails unless every state was visited and nothing was wrong. */
function assertHolds(rules: Rules, world: World, statesMin: number) {
  const { states, complete, trace } = search(rules, world);
  assertEquals(trace, []);
  assert(complete);
  assertGreater(states, statesMin);
}

/** Fails unless nothing was wrong with as many states as there are, or as are enough. */
function assertHoldsSoFar(rules: Rules, world: World) {
  const { states, complete, trace } = search(rules, world, STATES_MAX);
  assertEquals(trace, []);
  assert(complete || states >= STATES_MAX);
}

/** Fails unless something was wrong. */
function assertBroken(
  rules: Rules,
  world: World,
  violation = /^token \d+ does not exceed token \d+$/u,
) {
  const { trace } = search(rules, world);
  assertGreater(trace.length, 5);
  assertMatch(trace[trace.length - 1], violation);
}

Deno.test("of 3 nodes, a counter that equals the token on a quorum after a second round makes it hold", () => {
  assertHolds(EQUAL, THREE, 50_000);
});

Deno.test("of 3 nodes, a counter that equals the token on a quorum at once makes it hold", () => {
  assertHolds(EQUAL_AT_ONCE, THREE, 20_000);
});

Deno.test("of 3 nodes, one that forgets its data does no harm if it stays out and resumes above", () => {
  assertHolds(EQUAL_AT_ONCE, { ...THREE, forgets: 1, counters: [[0, 0, 0]] }, 20_000);
  assertHolds(EQUAL_AT_ONCE, { ...THREE, forgets: 1, counters: [[0, 0, 1]] }, 20_000);
});

Deno.test("of 3 nodes, nodes that forget twice do no harm", () => {
  const world: World = { ...THREE, forgets: 2, counters: [[0, 0, 0]], keysStay: "all" };
  assertHolds(EQUAL_AT_ONCE, world, 20_000);
});

Deno.test("of 3 nodes, three attempts do no harm to one another", () => {
  assertHolds(EQUAL_AT_ONCE, { ...THREE, attempts: 3, counters: [[0, 0, 0]] }, 50_000);
  assertHoldsSoFar(EQUAL_AT_ONCE, { ...THREE, attempts: 3, counters: risingCounters(3, 2) });
});

Deno.test("of 3 nodes, counters that leap ahead, as those do that are set to the clock, do no harm", () => {
  assertHolds(EQUAL_AT_ONCE, { ...THREE, leaps: 1, counters: risingCounters(3, 1) }, 20_000);
  assertHolds(EQUAL_AT_ONCE, { ...THREE, leaps: 2, counters: [[0, 0, 0]] }, 20_000);
  assertHoldsSoFar(EQUAL_AT_ONCE, { ...THREE, leaps: 1, forgets: 1, counters: [[0, 0, 0]] });
});

Deno.test("of 3 nodes, one that is filled in after the lock was handed out does no harm", () => {
  const world: World = { ...THREE, fills: true, counters: risingCounters(3, 1) };
  assertHolds(EQUAL_AT_ONCE, world, 20_000);
  assertHolds(EQUAL_AT_ONCE, { ...world, keysStay: "all", demanded: "exclusion" }, 2_000);
  assertHoldsSoFar(EQUAL_AT_ONCE, { ...world, attempts: 3, counters: [[0, 0, 0]] });
  assertHoldsSoFar(EQUAL_AT_ONCE, { ...world, forgets: 1, counters: [[0, 0, 0]] });
});

Deno.test("of 4 nodes, a counter that equals the token on a quorum at once makes it hold", () => {
  assertHolds(EQUAL_AT_ONCE, { ...THREE, nodes: 4, counters: risingCounters(4, 1) }, 5_000);
});

Deno.test("of 5 nodes, a counter that equals the token on a quorum at once makes it hold", () => {
  assertHolds(EQUAL_AT_ONCE, { ...FIVE, counters: [[0, 0, 0, 0, 0]] }, 20_000);
  assertHolds(EQUAL_AT_ONCE, { ...FIVE, keysStay: "all" }, 20_000);
  assertHoldsSoFar(EQUAL_AT_ONCE, FIVE);
});

Deno.test("of 5 nodes, a counter that equals the token on a quorum after a second round makes it hold", () => {
  assertHoldsSoFar(EQUAL, { ...FIVE, counters: [[0, 0, 0, 0, 0]], keysStay: "all" });
  assertHoldsSoFar(EQUAL, FIVE);
});

Deno.test("of 5 nodes, counters that leap ahead and nodes that are filled in do no harm", () => {
  assertHoldsSoFar(EQUAL_AT_ONCE, { ...FIVE, leaps: 1, counters: [[0, 0, 0, 0, 0]] });
  assertHoldsSoFar(EQUAL_AT_ONCE, { ...FIVE, fills: true });
});

Deno.test("of 5 nodes, one that forgets its data does no harm if it stays out and resumes above", () => {
  assertHolds(
    EQUAL_AT_ONCE,
    { ...FIVE, forgets: 1, counters: [[0, 0, 0, 0, 0]], keysStay: "all" },
    10_000,
  );
  assertHoldsSoFar(EQUAL_AT_ONCE, { ...FIVE, forgets: 1 });
});

for (const counters of [[0, 0, 1], [0, 0, 0, 0, 1]]) {
  const nodes = counters.length;
  const world: World = { ...THREE, nodes, counters: [counters] };

  Deno.test(`of ${nodes} nodes, the maximum of a quorum's counters breaks`, () => {
    assertBroken(MAXIMUM, { ...world, keysStay: "all" });
  });

  Deno.test(`of ${nodes} nodes, the maximum written back to a majority breaks`, () => {
    assertBroken(WRITTEN_BACK, { ...world, keysStay: "all" });
  });

  Deno.test(`of ${nodes} nodes, the maximum written back where the key is held breaks by a late grant`, () => {
    assertBroken(WRITTEN_WHERE_HELD, { ...world, counters: [counters.map(() => 0)] });
  });

  Deno.test(`of ${nodes} nodes, counters made equal where the key is not held break`, () => {
    assertBroken({ ...EQUAL_AT_ONCE, raises: "anywhere" }, { ...world, keysStay: "all" });
  });

  Deno.test(`of ${nodes} nodes, one that forgets its data breaks it if it is counted at once`, () => {
    assertBroken(EQUAL_AT_ONCE, { ...world, forgets: 1, guarded: false, keysStay: "all" });
  });

  Deno.test(`of ${nodes} nodes, one that forgets its data breaks it if its counter begins again`, () => {
    assertBroken(EQUAL_AT_ONCE, { ...world, forgets: 1, resumes: false, keysStay: "all" });
  });
}

Deno.test("where no key is ever lost before its time, what is written back need not be equal", () => {
  assertHolds(WRITTEN_WHERE_HELD, { ...THREE, keysStay: "all" }, 5_000);
});

Deno.test("where no key is ever lost before its time, no two attempts hold the lock", () => {
  assertHolds(EQUAL_AT_ONCE, { ...THREE, keysStay: "all", demanded: "exclusion" }, 2_000);
});

Deno.test("where a key is lost before its time, two attempts may hold the lock", () => {
  assertBroken(EQUAL_AT_ONCE, { ...THREE, demanded: "exclusion" }, /^two attempts hold the lock$/u);
});

Deno.test("where validity can't be trusted, tokens rise in order of beginnings, not of hand-outs", () => {
  const world: World = { ...THREE, counters: risingCounters(3, 1), keysStay: "none" };
  assertBroken(EQUAL_AT_ONCE, world);
  assertHolds(EQUAL_AT_ONCE, { ...world, demanded: "order of beginnings" }, 10_000);
  assertBroken(MAXIMUM, { ...world, demanded: "order of beginnings" });
});

Deno.test("a trace is the shortest story of what goes wrong", () => {
  const { trace } = explore(new FencingModel(MAXIMUM, { ...THREE, keysStay: "all" }));
  assertEquals(trace, [
    "the counters are 0, 0, 1",
    "node 1 grants A the lock, with counter 1",
    "node 3 grants A the lock, with counter 2",
    "A is handed out with token 2",
    "A is over",
    "node 2 grants B the lock, with counter 1",
    "the key of A is gone from node 1",
    "node 1 grants B the lock, with counter 2",
    "B is handed out with token 2",
    "token 2 does not exceed token 2",
  ]);
});
