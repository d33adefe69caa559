import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { COUNTER_TTL_MS, counterHint, counterStart, judge } from "../../../src/fencing/token.ts";
import { TTL_MS_MAX } from "../../../src/options.ts";

const SEED = 6_174;

Deno.test("judge() settles on what a quorum answered alike", () => {
  assertEquals(judge([7, 7, undefined], 2), { token: 7, settled: true });
  assertEquals(judge([6, 7, 7], 2), { token: 7, settled: true });
  assertEquals(judge([7, 6, 7], 2), { token: 7, settled: true });
});

Deno.test("judge() does not settle on a maximum that fewer than a quorum answered", () => {
  assertEquals(judge([7, 6, 6], 2), { token: 7, settled: false });
  assertEquals(judge([6, 6, 7], 2), { token: 7, settled: false });
  assertEquals(judge([undefined, 7, undefined], 2), { token: 7, settled: false });
});

Deno.test("judge() is undecided where nobody has answered", () => {
  assertEquals(judge([undefined, undefined, undefined], 2), { token: 0, settled: false });
  assertEquals(judge([], 1), { token: 0, settled: false });
});

Deno.test("judge() settles as answers come, and on more where a late one is higher", () => {
  const answers: (number | undefined)[] = [undefined, undefined, undefined, undefined, undefined];
  const settled = [[0, 4], [3, 4], [1, 5], [0, 5], [3, 5]].map(([seat, answer]) => {
    answers[seat] = answer;
    return judge(answers, 3).settled;
  });
  assertEquals(settled, [false, false, false, false, true]);
});

Deno.test("judge() agrees with counting the maximum, whatever the order of the answers", () => {
  const answer = fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined });
  fc.assert(
    fc.property(
      fc.array(answer, { maxLength: 7 }),
      fc.integer({ min: 1, max: 4 }),
      (answers, quorum) => {
        const given = answers.filter((one) => one !== undefined);
        const token = Math.max(0, ...given);
        const settled = given.filter((one) => one === token).length >= quorum;
        assertEquals(judge(answers, quorum), { token, settled });
      },
    ),
    { seed: SEED, numRuns: 1_000 },
  );
});

Deno.test("counterHint() is the wall clock and a second, in whole microseconds", () => {
  assertEquals(counterHint(1_700_000_000_000), 1_700_000_001_000_000);
  assertEquals(counterHint(1_700_000_000_000.123456), 1_700_000_001_000_123);
});

Deno.test("counterHint() is the highest counter seen, where that is more", () => {
  assertEquals(counterHint(1_000, 2_000_001), 2_000_001);
  assertEquals(counterHint(1_000, 1_999_999), 2_000_000);
});

Deno.test("counterHint() is a safe integer until the year 2255", () => {
  assert(Number.isSafeInteger(counterHint(Date.UTC(2255, 0, 1))));
  assert(!Number.isSafeInteger(counterHint(Date.UTC(2256, 0, 1))));
});

Deno.test("counterStart() is the greater of the node's clock and the hint", () => {
  assertEquals(counterStart(5, 3), 5);
  assertEquals(counterStart(3, 5), 5);
});

Deno.test("counterStart() is one for all nodes whose clocks are ahead by less than a second", () => {
  const nowMs = 1_700_000_000_000;
  const aheadMs = [-60_000, 0, 999];
  const starts = aheadMs.map((ms) => counterStart((nowMs + ms) * 1_000, counterHint(nowMs)));
  assertEquals(new Set(starts).size, 1);
});

Deno.test("a counter lives a week, which is longer than any TTL", () => {
  assertEquals(COUNTER_TTL_MS, 604_800_000);
  assert(COUNTER_TTL_MS > TTL_MS_MAX);
});
