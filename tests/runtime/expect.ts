/**
 * The few assertions that the suite needs, without a library that would have to run everywhere too.
 */

/** Fails unless `condition` holds. */
export function expect(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(message);
}

/** Fails unless both are the same. */
export function expectSame(actual: unknown, expected: unknown, what: string): void {
  if (Object.is(actual, expected)) return;
  throw new Error(`${what} is ${JSON.stringify(actual)} in place of ${JSON.stringify(expected)}`);
}

/** What `promise` rejects with; fails if it resolves. */
export async function rejectionOf(promise: Promise<unknown>): Promise<unknown> {
  let value: unknown;
  try {
    value = await promise;
  } catch (error) {
    return error;
  }
  throw new Error(`expected a rejection, got ${value}`);
}

/** Resolves after a while. */
export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
