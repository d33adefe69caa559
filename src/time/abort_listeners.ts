/**
 * One listener on a signal for many callbacks. Runtimes warn of a leak if a signal has more than
 * ten listeners, and search all of them to remove one.
 *
 * @module
 */

/** The callbacks of one signal. */
interface Callbacks {
  readonly all: Set<() => void>;
  readonly listener: () => void;
}

const callbacks = /* @__PURE__ */ new WeakMap<AbortSignal, Callbacks>();

/**
 * Calls `callback` once when `signal` aborts, until {@linkcode offAbort}. A callback that is added
 * twice is called once; it must not throw. {@linkcode offAbort} must follow in the end, also after
 * the abort: it frees the callback.
 *
 * @param signal A signal that has not aborted yet.
 * @param callback The function to call.
 */
export function onAbort(signal: AbortSignal, callback: () => void): void {
  const known = callbacks.get(signal);
  if (known) {
    known.all.add(callback);
    return;
  }
  const all = new Set([callback]);
  const listener = () => {
    for (const each of all) each();
  };
  callbacks.set(signal, { all, listener });
  signal.addEventListener("abort", listener);
}

/** Removes `callback`, and with the last one the listener. */
export function offAbort(signal: AbortSignal, callback: () => void): void {
  const known = callbacks.get(signal);
  if (!known?.all.delete(callback) || known.all.size > 0) return;
  callbacks.delete(signal);
  signal.removeEventListener("abort", known.listener);
}
