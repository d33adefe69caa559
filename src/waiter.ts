/**
 * Waiting between two attempts: the seam behind which a call learns that it may be worth asking again.
 *
 * @module
 */
import { backoffMs } from "./backoff.ts";
import type { Settings } from "./options.ts";
import { Timed, type TimerWheel } from "./timer_wheel.ts";

/** How a call waits after it was denied. */
export interface Waiter {
  /**
   * Resolves when the next attempt is due, when `signal` aborts, or when the client closes, whichever is first.
   *
   * @param attempt How many attempts failed, from 0.
   * @param limitMs The longest wait, in milliseconds.
   */
  wait(attempt: number, limitMs: number, signal: AbortSignal | undefined): Promise<void>;
}

/** Asks again after a jittered, growing delay. */
export class PollingWaiter implements Waiter {
  readonly #wheel: TimerWheel;
  readonly #settings: Settings;

  constructor(wheel: TimerWheel, settings: Settings) {
    this.#wheel = wheel;
    this.#settings = settings;
  }

  wait(attempt: number, limitMs: number, signal: AbortSignal | undefined): Promise<void> {
    const { retryDelayMs, retryDelayMaxMs } = this.#settings;
    const fraction = this.#wheel.random.fraction();
    const delayMs = backoffMs(attempt, retryDelayMs, retryDelayMaxMs, fraction);
    return pause(this.#wheel, Math.min(delayMs, limitMs), signal);
  }
}

/** Resolves after `delayMs`, when `signal` aborts, or when the client closes. Never rejects. */
export function pause(
  wheel: TimerWheel,
  delayMs: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const pausing = new Pause(wheel, () => {
      signal?.removeEventListener("abort", pausing.end);
      resolve();
    });
    signal?.addEventListener("abort", pausing.end, { once: true });
    wheel.schedule(pausing, wheel.clock.monotonicMs() + delayMs);
  });
}

/** A wait that somebody is in: it keeps the process alive. */
class Pause extends Timed {
  readonly #wheel: TimerWheel;
  readonly #onEnd: () => void;
  #ended = false;

  constructor(wheel: TimerWheel, onEnd: () => void) {
    super();
    this.#wheel = wheel;
    this.#onEnd = onEnd;
    wheel.hold();
  }

  readonly end = (): void => {
    if (this.#ended) return;
    this.#ended = true;
    this.#wheel.cancel(this);
    this.#wheel.release();
    this.#onEnd();
  };

  override onDue(): void {
    if (this.#wheel.clock.monotonicMs() < this.dueMs) this.#wheel.schedule(this, this.dueMs);
    else this.end();
  }

  override onClosed(): boolean {
    this.end();
    return true;
  }
}
