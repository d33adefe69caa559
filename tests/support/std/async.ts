/** Stands in for the parts of `@std/async` that the tests use where JSR can't be reached. */

/** Resolves after `ms` milliseconds. */
export function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Settles as `promise` does, or rejects with a `TimeoutError` after `ms` milliseconds. */
export async function deadline<T>(promise: Promise<T>, ms: number): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(new DOMException("Signal timed out.", "TimeoutError"));
  }, ms);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
