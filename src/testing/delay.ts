/**
 * Delays that a test asks for.
 *
 * @module
 */
import { check, NUMBER, rangeError } from "../validate.ts";

/** The longest delay in milliseconds: runtimes fire a timer with a longer one at once. */
export const DELAY_MS_MAX = 2 ** 31 - 1;

/**
 * Checks a delay.
 *
 * @throws {TypeError} If it is not a number.
 * @throws {RangeError} If it is out of range.
 */
export function checkDelayMs(action: string, delayMs: number): void {
  check(action, "delayMs", delayMs, NUMBER);
  if (delayMs >= 0 && delayMs <= DELAY_MS_MAX) return;
  throw rangeError(action, "delayMs", `must be a number from 0 to ${DELAY_MS_MAX}`, delayMs);
}
