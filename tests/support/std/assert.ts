/**
 * Stands in for what the tests use of `@std/assert` where JSR can't be reached: the same names and
 * signatures, on `node:assert`.
 *
 * `assertEquals` differs in being stricter: `0` is not `-0`, an object without a prototype is not a
 * plain one, and errors are compared by message and cause too.
 */

import nodeAssert, { AssertionError } from "node:assert/strict";
import { failWith } from "./assert_throws.ts";

export { assertRejects, assertThrows } from "./assert_throws.ts";

// deno-lint-ignore no-explicit-any
type AnyClass = abstract new (...args: any[]) => any;

/** Asserts that `expr` is truthy. */
export function assert(expr: unknown, msg = ""): asserts expr {
  if (!expr) throw new AssertionError({ message: msg });
}

/** Asserts that `expr` is falsy. */
export function assertFalse(expr: unknown, msg?: string): asserts expr is false {
  if (expr) failWith("Expected the value to be falsy", msg);
}

/** Asserts that both values are deeply and strictly equal. */
export function assertEquals<T>(actual: T, expected: T, msg?: string): void {
  explained(() => nodeAssert.deepStrictEqual(actual, expected), msg);
}

/** Asserts that both are the same value, as `Object.is` sees it. */
export function assertStrictEquals<T>(
  actual: unknown,
  expected: T,
  msg?: string,
): asserts actual is T {
  explained(() => nodeAssert.strictEqual(actual, expected), msg);
}

/** Asserts that `actual` is an instance of `expectedType`. */
export function assertInstanceOf<T extends AnyClass>(
  actual: unknown,
  expectedType: T,
  msg?: string,
): asserts actual is InstanceType<T> {
  if (actual instanceof expectedType) return;
  failWith(`Expected an instance of ${expectedType.name}: current value is ${shown(actual)}`, msg);
}

/** Asserts that `actual` matches the pattern `expected`. */
export function assertMatch(actual: string, expected: RegExp, msg?: string): void {
  explained(() => nodeAssert.match(actual, expected), msg);
}

/** Asserts that `actual` contains `expected`. */
export function assertStringIncludes(actual: string, expected: string, msg?: string): void {
  if (actual.includes(expected)) return;
  failWith(`Expected ${shown(actual)} to contain ${shown(expected)}`, msg);
}

/** Asserts that `actual` is greater than `expected`. */
export function assertGreater<T>(actual: T, expected: T, msg?: string): void {
  if (!(actual > expected)) failWith(`Expected ${shown(actual)} > ${shown(expected)}`, msg);
}

/** Asserts that `actual` is greater than or equal to `expected`. */
export function assertGreaterOrEqual<T>(actual: T, expected: T, msg?: string): void {
  if (!(actual >= expected)) failWith(`Expected ${shown(actual)} >= ${shown(expected)}`, msg);
}

/** Asserts that `actual` is less than `expected`. */
export function assertLess<T>(actual: T, expected: T, msg?: string): void {
  if (!(actual < expected)) failWith(`Expected ${shown(actual)} < ${shown(expected)}`, msg);
}

/** Asserts that `actual` is less than or equal to `expected`. */
export function assertLessOrEqual<T>(actual: T, expected: T, msg?: string): void {
  if (!(actual <= expected)) failWith(`Expected ${shown(actual)} <= ${shown(expected)}`, msg);
}

function shown(value: unknown): string {
  return Deno.inspect(value, { strAbbreviateSize: 1000 });
}

/** Runs one of Node's assertions, whose own `message` argument would replace the diff. */
function explained(assertion: () => void, msg: string | undefined): void {
  try {
    assertion();
  } catch (error) {
    if (error instanceof AssertionError && msg) error.message = `${msg}\n${error.message}`;
    throw error;
  }
}
