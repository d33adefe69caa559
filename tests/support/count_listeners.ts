/**
 * Listeners on a signal.
 *
 * @module
 */

/** Counts the listeners that `signal` has from here on. */
export function countListeners(signal: AbortSignal): () => number {
  let count = 0;
  const { addEventListener, removeEventListener } = signal;
  Object.assign(signal, {
    addEventListener(...args: Parameters<typeof addEventListener>) {
      count++;
      addEventListener.apply(signal, args);
    },
    removeEventListener(...args: Parameters<typeof removeEventListener>) {
      count--;
      removeEventListener.apply(signal, args);
    },
  });
  return () => count;
}
