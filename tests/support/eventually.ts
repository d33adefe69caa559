/** Waiting for a condition in place of sleeping for a time. */

/** Pause between two looks at a condition. */
const POLL_EVERY_MS = 5;

/**
 * Repeats `check` until it neither throws nor returns `false`.
 *
 * @param check A condition, or assertions.
 * @param withinMs How long it may take, in milliseconds.
 * @throws What `check` threw last, or an `Error`, once the time is over.
 */
export async function eventually(
  check: () => unknown | Promise<unknown>,
  withinMs = 20_000,
): Promise<void> {
  const giveUpAtMs = performance.now() + withinMs;
  for (;;) {
    let failure: unknown = new Error(`Condition not met within ${withinMs} ms: ${check}`);
    try {
      if (await check() !== false) return;
    } catch (error) {
      failure = error;
    }
    if (performance.now() >= giveUpAtMs) throw failure;
    await new Promise((resolve) => setTimeout(resolve, POLL_EVERY_MS));
  }
}
