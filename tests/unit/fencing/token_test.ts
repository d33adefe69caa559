import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { agreeOnToken, counterHint } from "../../../src/fencing/token.ts";
import { TTL_MS_MAX } from "../../../src/options.ts";
import { COUNTER_AGE_US_MAX, COUNTER_TTL_MS } from "../../../src/redis_node/scripts/fencing.ts";

const SEED = 6_174;

Deno.test("agreeOnToken() agrees with counting the maximum, whatever the order of the answers", () => {
  const answer = fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined });
  fc.assert(
    fc.property(
      fc.array(answer, { maxLength: 7 }),
      fc.integer({ min: 1, max: 4 }),
      (answers, quorum) => {
        const given = answers.filter((one) => one !== undefined);
        const token = Math.max(0, ...given);
        const agreed = given.filter((one) => one === token).length >= quorum;
        assertEquals(agreeOnToken(answers, quorum), { token, agreed });
      },
    ),
    { seed: SEED, numRuns: 1_000 },
  );
});

Deno.test("counterHint() is the wall clock and a second, in whole microseconds", () => {
  assertEquals(counterHint(1_700_000_000_000), 1_700_000_001_000_000);
  assertEquals(counterHint(1_700_000_000_000.123456), 1_700_000_001_000_123);
});

Deno.test("counterHint() is a safe integer until the year 2255", () => {
  assert(Number.isSafeInteger(counterHint(Date.UTC(2255, 0, 1))));
  assert(!Number.isSafeInteger(counterHint(Date.UTC(2256, 0, 1))));
});

Deno.test("a counter that is renewed when it is a day old lives a week after its last use, longer than any TTL", () => {
  const afterLastUseMs = COUNTER_TTL_MS - COUNTER_AGE_US_MAX / 1_000;
  assertEquals(afterLastUseMs, 604_800_000);
  assert(afterLastUseMs > TTL_MS_MAX);
});
