/**
 * What a library that was broken on purpose calls beside its own code: the clocks and timers of the
 * process that it runs in. See `mutation_operators.ts`.
 */
import type { Clock } from "./library.ts";

/** What these functions are called in a source that was broken. */
export const MUTANT = "globalThis.mutant";

/** The process whose code runs now. */
let current: Clock | undefined;
/** What each process has kept. */
const kept = new WeakMap<Clock, unknown>();
/** How often each process was asked whether it is its third time. */
const times = new WeakMap<Clock, number>();

/** Notes whose code runs from now on. */
export function enterProcess(process: Clock): void {
  current = process;
}

function third(): boolean {
  const count = (times.get(current!) ?? 0) + 1;
  times.set(current!, count);
  return count % 3 === 0;
}

function later(delayMs: number, action: () => void): void {
  current!.setTimer(action, delayMs);
}

Object.assign(globalThis, {
  mutant: {
    now: () => current!.monotonicMs(),
    once(evaluate: () => unknown): unknown {
      if (!kept.has(current!)) kept.set(current!, evaluate());
      return kept.get(current!);
    },
    third,
    late<Args extends unknown[]>(delayMs: number, call: (...args: Args) => void, ...args: Args) {
      if (third()) later(delayMs, () => call(...args));
      else call(...args);
    },
    again(delayMs: number, action: () => void) {
      if (third()) later(delayMs, action);
    },
  },
});
