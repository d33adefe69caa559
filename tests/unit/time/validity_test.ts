import { assert, assertEquals } from "@std/assert";
import { driftMs, expiryMarginMs, validityMs } from "../../../src/time/validity.ts";

Deno.test("driftMs() is the factor's share of the TTL, rounded up, and 2 ms", () => {
  const cases = [[30_000, 0.01, 302], [10_001, 0.01, 103], [10, 0.01, 3], [1_000, 0, 2]];
  for (const [ttlMs, factor, drift] of cases) assertEquals(driftMs(ttlMs, factor), drift);
});

Deno.test("validityMs() is the TTL less its drift, which may leave nothing", () => {
  const cases = [[30_000, 0.01, 29_698], [10, 0.01, 7], [10, 0.8, 0], [10, 0.99, -2]];
  for (const [ttlMs, factor, validity] of cases) assertEquals(validityMs(ttlMs, factor), validity);
});

Deno.test("expiryMarginMs() is a twentieth of the validity, from 2 to 25 ms, and at most half", () => {
  const cases = [[2, 1], [7, 2], [40, 2], [100, 5], [500, 25], [1_000_000, 25]];
  for (const [validity, margin] of cases) assertEquals(expiryMarginMs(validity), margin);
  for (let ttlMs = 10; ttlMs < 5_000; ttlMs++) {
    const validity = validityMs(ttlMs, 0.01);
    assert(expiryMarginMs(validity) <= validity / 2);
  }
});
