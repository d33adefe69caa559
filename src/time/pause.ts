/**
 * Waits of callers.
 *
 * @module
 */
import { offAbort, onAbort } from "./abort_listeners.ts";
import { TimerEntry, type TimerWheel } from "./timer_wheel.ts";

/** Resolves after `delayMs`, when `signal` aborts, or when the client closes. Never rejects. */
export function pause(
  wheel: TimerWheel,
  delayMs: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  return new Pause(wheel, delayMs, signal).over;
}

/**
 * Resolves when `promise` settles, after `limitMs`, when `signal` aborts, or when the client
 * closes. Bytes end the wait: so after the time the runtime gets ticks to read its sockets.
 */
export function settledWithin(
  wheel: TimerWheel,
  promise: Promise<unknown>,
  limitMs: number,
  signal?: AbortSignal,
): Promise<void> {
  const limit = new Pause(wheel, limitMs, signal, true);
  promise.then(limit.end, limit.end);
  return limit.over;
}

/** A wait of a caller, which keeps the process alive. */
export class Pause extends TimerEntry {
  /** Resolves at its end. */
  readonly over: Promise<void>;
  readonly #wheel: TimerWheel;
  readonly #signal: AbortSignal | undefined;
  #resolve: (() => void) | undefined;

  /**
   * @param wheel The timer wheel.
   * @param delayMs The duration in milliseconds; `Infinity` for no limit.
   * @param signal A signal that ends it.
   * @param isDeadline Whether it is a wait for bytes.
   */
  constructor(
    wheel: TimerWheel,
    delayMs: number,
    signal: AbortSignal | undefined,
    isDeadline = false,
  ) {
    super();
    this.#wheel = wheel;
    this.#signal = signal;
    if (signal?.aborted) {
      this.over = Promise.resolve();
      return;
    }
    this.over = new Promise((resolve) => this.#resolve = resolve);
    if (signal) onAbort(signal, this.end);
    wheel.ref();
    wheel.schedule(this, wheel.clock.monotonicMs() + delayMs, isDeadline);
  }

  /** Ends it now. */
  readonly end = (): void => {
    const resolve = this.#resolve;
    if (!resolve) return;
    this.#resolve = undefined;
    if (this.#signal) offAbort(this.#signal, this.end);
    this.#wheel.cancel(this);
    this.#wheel.unref();
    resolve();
  };

  override onDue(): void {
    this.end();
  }

  override onClosed(): void {
    this.end();
  }
}
