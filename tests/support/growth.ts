/**
 * How work grows with its size, on machines that do other things meanwhile.
 *
 * @module
 */
import { assertLess } from "@std/assert";

/** Pairs of measurements after which the smallest of each are taken for what the work itself takes. */
const ROUNDS_MAX = 50;

/**
 * Asserts that the longer work takes less than `timesMax` times as long as the shorter: what disturbs the one or the
 * other only adds, so both are measured until the smallest of each say so, or often enough.
 *
 * @param timesMax Between what work in proportion takes and what it would take otherwise, well away from both.
 * @param shortMs Does the shorter work and returns how long it took.
 * @param longMs Does the longer work and returns how long it took.
 */
export function assertGrowth(timesMax: number, shortMs: () => number, longMs: () => number): void {
  longMs(); // until it is compiled
  let [short, long] = [Infinity, Infinity];
  for (let round = 0; round < ROUNDS_MAX; round++) {
    short = Math.min(short, shortMs());
    long = Math.min(long, longMs());
    if (round > 2 && long / short < timesMax) return;
  }
  assertLess(long / short, timesMax);
}
