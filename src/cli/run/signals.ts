/**
 * The signals that `hasp` receives: they end its waiting, or are passed on to its command.
 *
 * @module
 */
import { constants } from "node:os";
import process from "node:process";
import { SIGNAL_BASE } from "../exit_codes.ts";

const POSIX_SIGNALS: readonly NodeJS.Signals[] = [
  ...["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const,
];
const WINDOWS_SIGNALS: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP"];

/** The reason of {@linkcode Signals.waiting} when a signal ends the waiting. */
export class Interrupted extends Error {
  /** The name of the class. */
  override readonly name = "Interrupted";
  /** The exit code after this signal. */
  readonly exitCode: number;

  /** @param signal The signal. */
  constructor(signal: NodeJS.Signals) {
    super(`interrupted by ${signal}`);
    this.exitCode = signalExitCode(signal);
  }
}

/** The exit code of a process that was ended by a signal, as shells report it. */
export function signalExitCode(signal: string): number {
  const numbers: Readonly<Record<string, number | undefined>> = constants.signals;
  return SIGNAL_BASE + (numbers[signal] ?? 0);
}

/** The signals that arrive from its creation until {@linkcode Signals.stop}. */
export class Signals {
  readonly #waiting = new AbortController();
  readonly #names = process.platform === "win32" ? WINDOWS_SIGNALS : POSIX_SIGNALS;
  readonly #early: NodeJS.Signals[] = [];
  #pass: ((signal: NodeJS.Signals) => void) | undefined;

  constructor() {
    for (const name of this.#names) process.on(name, this.#receive);
  }

  /** Aborts when the first signal arrives before there is a command. */
  get waiting(): AbortSignal {
    return this.#waiting.signal;
  }

  /** Passes on every signal from now on, and those that have arrived before. */
  passTo(pass: (signal: NodeJS.Signals) => void): void {
    this.#pass = pass;
    for (const signal of this.#early) pass(signal);
  }

  /** Leaves signals to the runtime again. */
  stop(): void {
    for (const name of this.#names) process.off(name, this.#receive);
  }

  readonly #receive = (signal: NodeJS.Signals): void => {
    if (this.#pass) return this.#pass(signal);
    this.#early.push(signal);
    this.#waiting.abort(new Interrupted(signal));
  };
}
