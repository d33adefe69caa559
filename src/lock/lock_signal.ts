/**
 * The signal of a lock, which reads the clock whenever it is asked.
 *
 * A timer aborts the signal, but a process that stood still (a busy event loop, `SIGSTOP`, a
 * suspended machine) runs its code on before any timer: `signal.throwIfAborted()` would let one
 * more write through after the validity is over. So the three members by which code asks a signal
 * look at the clock before they answer. They are properties of this one object, because callers
 * keep it (`const { signal } = lock`); everything else is the runtime's own. It stays a real
 * `AbortSignal`: `fetch` and its like take it, and abort when the timer does.
 *
 * @module
 */

import { thrownHere } from "../errors.ts";

/**
 * Has a signal look at the clock first.
 *
 * @param signal The signal.
 * @param look Aborts it if its time has come.
 */
export function clockedSignal(signal: AbortSignal, look: () => void): AbortSignal {
  const ask = (member: "aborted" | "reason"): unknown => {
    // mutation: signal-does-not-look-at-the-clock
    look();
    return Reflect.get(AbortSignal.prototype, member, signal);
  };
  return Object.defineProperties(signal, {
    aborted: { configurable: true, get: () => ask("aborted") },
    reason: { configurable: true, get: () => ask("reason") },
    throwIfAborted: {
      configurable: true,
      writable: true,
      value() {
        if (ask("aborted")) throw thrownHere(ask("reason"));
      },
    },
  });
}
