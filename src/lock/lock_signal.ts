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
 * **A lock that nobody has any more** is not extended. Its own signal cannot show that, because the
 * lock keeps it. So the lock lends one that `AbortSignal.any()` makes of its own: the runtime keeps
 * that for as long as the program has it, or a listener on it and the lock's own signal lives. So
 * nothing that is lent keeps the lock's own signal, and that is let go of once it has aborted: else
 * no signal with a listener would ever be collected.
 *
 * @module
 */

import { thrownHere } from "../messages.ts";

/** A reference, weak or not. */
type Ref<T extends object> = Pick<WeakRef<T>, "deref">;

/** What aborts when a lock is lost. */
export class LockSignal {
  /** Until it aborts. */
  #controller: AbortController | undefined = new AbortController();
  readonly #lossOf: () => Error | undefined;
  readonly #isLent: boolean;
  #shown: Ref<AbortSignal> | undefined;
  #cause: { readonly reason: unknown } | undefined;

  /**
   * @param lossOf Ends the lock if its time is over; returns why it was lost, if it was.
   * @param isLent Whether the lock lets go of the signal for the program, so that {@linkcode
   * isKept} says when the program has done so, too.
   */
  constructor(lossOf: () => Error | undefined, isLent: boolean) {
    this.#lossOf = lossOf;
    this.#isLent = isLent;
  }

  /** The signal for the program. */
  get shown(): AbortSignal {
    const known = this.#shown?.deref();
    if (known) return known;
    this.look();
    const own = this.#controller?.signal ?? AbortSignal.abort(this.#cause!.reason);
    // What is made of a lent one, by `AbortSignal.any()` too, follows the signal of the controller:
    // so it aborts with the lock, even if the lent one was collected before.
    const shown = this.#isLent ? AbortSignal.any([own]) : own;
    this.#shown = this.#refTo(shown);
    return clockedSignal(shown, this.#refTo(this));
  }

  /** Whether the program still has the signal. */
  get isKept(): boolean {
    return this.#shown?.deref() !== undefined;
  }

  /** Workers may be without `WeakRef`: it depends on their compatibility date. */
  #refTo<T extends object>(target: T): Ref<T> {
    return this.#isLent ? new WeakRef(target) : { deref: () => target };
  }

  /** Has {@linkcode look} abort it for this reason, unless it knows one. */
  abortFor(reason: unknown): void {
    this.#cause ??= { reason };
  }

  /** Aborts the signal if there is a reason to, unless that was done. */
  look(): void {
    const loss = this.#lossOf();
    if (loss) this.abortFor(loss);
    const controller = this.#controller;
    if (!controller || !this.#cause) return;
    this.#controller = undefined; // first, because a runtime may read the signal while it aborts it
    controller.abort(this.#cause.reason);
  }
}

/** Has a signal look at the clock first. */
function clockedSignal(signal: AbortSignal, own: Ref<LockSignal>): AbortSignal {
  const ask = (member: "aborted" | "reason"): unknown => {
    // mutation: signal-does-not-look-at-the-clock
    own.deref()?.look();
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
