import { assertEquals, assertGreater, assertLess } from "@std/assert";
import { backoffMs } from "../../../src/time/backoff.ts";
import { systemRandom } from "../../../src/time/random.ts";
import { Callers } from "../../support/callers.ts";

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

Deno.test("backoffMs() from 0 on is 0, however often somebody has waited", () => {
  assertEquals(backoffMs(systemRandom, { retryDelayMs: 0, retryDelayMaxMs: 10 }, 2_000), 0);
});
