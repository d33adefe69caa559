/**
 * Errors whose stack trace would say nothing.
 *
 * @module
 */

/**
 * Creates an error without a stack trace, which would show nothing but how the answers of nodes are
 * read. Recording one takes microseconds and hundreds of bytes, and a server can cause that with
 * three bytes. Its `stack` has the message, also in Bun, which leaves out a stack without a trace:
 * of a cause, loggers show nothing else.
 */
export function stackless<T extends Error>(create: () => T): T {
  const limit: unknown = Reflect.get(Error, "stackTraceLimit");
  if (typeof limit !== "number") return create();
  Reflect.set(Error, "stackTraceLimit", 0); // does not throw if Error is frozen
  try {
    const error = create();
    if ("stack" in error) return error;
    const value = `${error}`;
    return Object.defineProperty(error, "stack", { value, configurable: true, writable: true });
  } finally {
    Reflect.set(Error, "stackTraceLimit", limit);
  }
}
