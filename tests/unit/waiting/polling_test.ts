import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { backoffMs } from "../../../src/waiting/polling.ts";

const SEED = 1_024;

Deno.test("backoffMs() doubles its limit with each attempt", () => {
  const limits = [0, 1, 2, 3].map((attempt) => backoffMs(attempt, 100, 10_000, 1));
  assertEquals(limits, [100, 200, 400, 800]);
});

Deno.test("backoffMs() stays below its highest limit", () => {
  assertEquals([4, 5, 6].map((attempt) => backoffMs(attempt, 100, 2_000, 1)), [
    1_600,
    2_000,
    2_000,
  ]);
});

Deno.test("backoffMs() draws from the whole range down to 0", () => {
  assertEquals([0, 0.25, 0.5].map((fraction) => backoffMs(1, 100, 2_000, fraction)), [0, 50, 100]);
});

Deno.test("backoffMs() is a number within its limits for any attempt", () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.nat(2_000), fc.constantFrom(1_023, 1_024, 1e9)),
      fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1e9, noNaN: true })),
      fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1e9, noNaN: true })),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (attempt, baseMs, maxMs, fraction) => {
        const delayMs = backoffMs(attempt, baseMs, maxMs, fraction);
        assert(delayMs >= 0 && delayMs <= maxMs, `${delayMs}`);
      },
    ),
    { seed: SEED, numRuns: 1_000 },
  );
});
