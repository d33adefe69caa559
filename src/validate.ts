/**
 * Checks of numbers that users pass, with one wording for all of them.
 *
 * @module
 */

/**
 * @param attempt What cannot be done otherwise: `acquire lock`.
 * @param name The option.
 * @param value Its value.
 * @throws {TypeError} If it is no number.
 * @throws {RangeError} If it is NaN, infinite, zero or negative.
 */
export function checkPositiveMs(attempt: string, name: string, value: number): void {
  checkNumber(attempt, name, value);
  if (!(value > 0 && value < Infinity)) {
    throw rangeError(attempt, name, "must be a finite number more than 0", value);
  }
}

/**
 * @param attempt What cannot be done otherwise.
 * @param name The option.
 * @param value Its value.
 * @throws {TypeError} If it is no number.
 * @throws {RangeError} If it is NaN or negative. `Infinity` is let through.
 */
export function checkNotNegative(attempt: string, name: string, value: number): void {
  checkNumber(attempt, name, value);
  if (!(value >= 0)) throw rangeError(attempt, name, "must not be negative", value);
}

/**
 * @param attempt What cannot be done otherwise.
 * @param name The option.
 * @param value Its value.
 * @throws {TypeError} If it is no number.
 */
export function checkNumber(attempt: string, name: string, value: unknown): void {
  if (typeof value === "number") return;
  throw new TypeError(
    `Cannot ${attempt} as '${name}' must be a number: current type is '${typeof value}'`,
  );
}

/**
 * @param attempt What cannot be done otherwise.
 * @param name The option.
 * @param value Its value.
 * @throws {TypeError} If it is no number.
 * @throws {RangeError} If it is NaN, infinite or negative.
 */
export function checkFiniteMs(attempt: string, name: string, value: number): void {
  checkNumber(attempt, name, value);
  if (!(value >= 0 && value < Infinity)) {
    throw rangeError(attempt, name, "must be a finite number and not negative", value);
  }
}

/** The error of a number that is out of range. */
export function rangeError(
  attempt: string,
  name: string,
  rule: string,
  value: number,
): RangeError {
  return new RangeError(`Cannot ${attempt} as '${name}' ${rule}: current value is ${value}`);
}
