/** How work grows with its size, on machines that do other things meanwhile. */
import { assertLess } from "@std/assert";

/**
 * How many times larger the larger work is: work that grows with the square of its size takes as
 * many times too long.
 */
export const FACTOR = 16;
/** The limit, well away from both 1 and {@linkcode FACTOR}. */
const TIMES_MAX = 5;
/**
 * Pairs of measurements after which the smallest of each are taken for what the work itself takes.
 */
const ROUNDS_MAX = 50;

/**
 * Asserts that work takes time in proportion to its size: {@linkcode FACTOR} times the work takes
 * about as long as one work of {@linkcode FACTOR} times the size. Both take equally long, so other
 * programs interrupt both equally often; and what they add can only be more, so both are measured
 * until the smallest of each say so, or often enough.
 *
 * @param size The size of the smaller work.
 * @param workMs Does work of a size and returns how long it took.
 */
export function assertProportional(size: number, workMs: (size: number) => number): void {
  workMs(size * FACTOR); // until it is compiled
  let [many, large] = [Infinity, Infinity];
  for (let round = 0; round < ROUNDS_MAX; round++) {
    let sumMs = 0;
    for (let count = 0; count < FACTOR; count++) sumMs += workMs(size);
    many = Math.min(many, sumMs);
    large = Math.min(large, workMs(size * FACTOR));
    if (round > 2 && large / many < TIMES_MAX) return;
  }
  assertLess(large / many, TIMES_MAX);
}
