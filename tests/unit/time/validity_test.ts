import { assert, assertEquals } from "@std/assert";
import { driftMs, expiryMarginMs, validityMs } from "../../../src/time/validity.ts";

Deno.test("driftMs() is the factor's share of the TTL, rounded up, and 2 ms", () => {
  assertEquals(driftMs(30_000, 0.01), 302);
  assertEquals(driftMs(10_001, 0.01), 103);
  assertEquals(driftMs(10, 0.01), 3);
  assertEquals(driftMs(1_000, 0), 2);
});

Deno.test("validityMs() is the TTL less its drift", () => {
  assertEquals(validityMs(30_000, 0.01), 29_698);
  assertEquals(validityMs(10, 0.01), 7);
});

Deno.test("validityMs() is not positive where the drift eats the TTL up", () => {
  assertEquals(validityMs(10, 0.8), 0);
  assertEquals(validityMs(10, 0.99), -2);
});

Deno.test("expiryMarginMs() is a twentieth of the validity, and 25 ms at the most", () => {
  assertEquals(expiryMarginMs(100), 5);
  assertEquals(expiryMarginMs(500), 25);
  assertEquals(expiryMarginMs(1_000_000), 25);
});

Deno.test("expiryMarginMs() is 2 ms at least, as timers count whole milliseconds", () => {
  assertEquals(expiryMarginMs(40), 2);
  assertEquals(expiryMarginMs(7), 2);
});

Deno.test("expiryMarginMs() leaves at least half of any validity", () => {
  assertEquals(expiryMarginMs(2), 1);
  for (let ttlMs = 10; ttlMs < 5_000; ttlMs++) {
    const validity = validityMs(ttlMs, 0.01);
    assert(expiryMarginMs(validity) <= validity / 2);
  }
});
