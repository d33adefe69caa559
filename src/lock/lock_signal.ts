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
 * **A lock that nobody has any more** is not extended. So such a lock has two signals: its *own*,
 * which it aborts, and a *lent* one for the program, which `AbortSignal.any()` makes of its own.
 * Each of these keeps the next alive:
 *
 *     program → handle → lent signal → lock → own signal
 *
 * The own signal keeps the lent one only if that has a listener. Without one, the lent one can be
 * collected as soon as the program has neither it nor the handle. A signal that the program makes
 * of the lent one follows the own one, so it aborts with the lock, even if the lent one was
 * collected before. The lock lets go of its own signal when it ends: else no lent signal with a
 * listener would ever be collected. The handle keeps it, too: in Node 24, a signal that is made of
 * it, and has no listener, reads as not aborted after it was collected.
 *
 * @module
 */

import { thrownHere } from "../messages.ts";

/**
 * Has a signal look at the clock first.
 *
 * @param look Aborts the signal if the lock's time is over.
 */
export function clockedSignal(signal: AbortSignal, look: () => void): void {
  const ask = (member: "aborted" | "reason"): unknown => {
    // mutation: signal-does-not-look-at-the-clock
    look();
    return Reflect.get(AbortSignal.prototype, member, signal);
  };
  Object.defineProperties(signal, {
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
