import { assert, assertEquals, assertGreater, assertLess } from "@std/assert";
import fc from "fast-check";
import { backoffMs } from "../../../src/waiting/polling.ts";
import { Callers } from "../../support/callers.ts";

const SEED = 1_024;

Deno.test("backoffMs() draws from a range that doubles with each attempt, up to its highest limit", () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.nat(2_000), fc.constantFrom(1_023, 1_024, 1e9)),
      fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1e9, noNaN: true })),
      fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1e9, noNaN: true })),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (attempt, baseMs, maxMs, fraction) => {
        const delayMs = backoffMs(attempt, baseMs, maxMs, fraction);
        const limitMs = backoffMs(attempt, baseMs, maxMs, 1);
        assert(delayMs >= 0 && delayMs <= limitMs && limitMs <= maxMs, `${delayMs}`);
        const nextMs = backoffMs(attempt + 1, baseMs, maxMs, 1);
        assert(nextMs === Math.min(maxMs, 2 * limitMs) || attempt >= 32, `${nextMs}`);
        assertEquals(backoffMs(attempt, baseMs, maxMs, 0), 0);
      },
    ),
    { seed: SEED, numRuns: 1_000 },
  );
  assertEquals([0, 1, 2].map((attempt) => backoffMs(attempt, 100, 250, 0.5)), [50, 100, 125]);
});

Deno.test("a call that polls asks after delays that grow up to retryDelayMaxMs and differ between clients, and no longer than it may wait", async () => {
  const firstMs = new Set<number>();
  for (const fraction of [0.1, 0.5, 0.99]) {
    const options = { notify: false, retryDelayMs: 100, retryDelayMaxMs: 1_000, waitMs: 5_500 };
    const callers = new Callers(options, 1);
    callers.fraction = fraction;
    callers.occupy();
    callers.call("first");
    const startMs = callers.nowMs;
    await callers.advance(10_000);
    const asksMs = callers.asksMs(startMs);
    const delaysMs = asksMs.slice(1, -1).map((askMs, index) => askMs - asksMs[index]);
    assertEquals(delaysMs, delaysMs.toSorted((one, other) => one - other));
    assertGreater(delaysMs.at(-1)!, 0.99 * fraction * 1_000);
    for (const delayMs of delaysMs) assertLess(delayMs, 1_000);
    assertEquals([asksMs.at(-1), callers.errors.size], [5_500, 1]);
    firstMs.add(delaysMs[0]);
  }
  assertEquals(firstMs.size, 3);
});
