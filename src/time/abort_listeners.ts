/**
 * Many waits on one signal with one listener: runtimes warn of a leak when a signal has more than ten, and look
 * through all of them to remove one.
 *
 * @module
 */

/** What waits for one signal. */
interface Callbacks {
  readonly all: Set<() => void>;
  readonly listener: () => void;
}

const waiting = /* @__PURE__ */ new WeakMap<AbortSignal, Callbacks>();

/**
 * Calls `callback` once when `signal` aborts, until {@linkcode offAbort}. A callback that is added twice is called
 * once; it must not throw.
 *
 * @param signal One that has not aborted yet.
 * @param callback What is called.
 */
export function onAbort(signal: AbortSignal, callback: () => void): void {
  const known = waiting.get(signal);
  if (known) {
    known.all.add(callback);
    return;
  }
  const all = new Set([callback]);
  const listener = () => {
    for (const each of all) each();
    removeListener(signal, listener);
  };
  waiting.set(signal, { all, listener });
  signal.addEventListener("abort", listener);
}

/** Forgets `callback`; the last one takes the listener with it. */
export function offAbort(signal: AbortSignal, callback: () => void): void {
  const known = waiting.get(signal);
  if (known?.all.delete(callback) && known.all.size === 0) removeListener(signal, known.listener);
}

function removeListener(signal: AbortSignal, listener: () => void): void {
  if (waiting.delete(signal)) signal.removeEventListener("abort", listener);
}
