/**
 * Waiting between two attempts: the seam behind which a call learns that it may be worth asking again.
 *
 * @module
 */
import { backoffMs } from "./backoff.ts";
import type { Ticket } from "../quorum/lock_node.ts";
import type { Settings } from "../options.ts";
import type { Round } from "../quorum/round.ts";
import { Timed, type TimerWheel } from "../time/timer_wheel.ts";

/** How a call waits after it was denied. */
export interface Waiter {
  /** Begins the next attempt, and says what it comes with, where the nodes are to put its caller in line. */
  next(): Ticket | undefined;
  /** Whether the last wait ended because the lock may be free. */
  readonly woken: boolean;
  /** Resolves when a first attempt that is to line up can be made; `signal` and the end of `limitMs` cut it short. */
  ready?(limitMs: number, signal: AbortSignal | undefined): Promise<void>;
  /**
   * Resolves when the next attempt is due, when `signal` aborts, or when the client closes, whichever is first.
   *
   * @param attempt How many attempts failed before the last, from 0.
   * @param limitMs The longest wait, in milliseconds.
   * @param signal Ends the wait.
   * @param denied The last attempt.
   */
  wait(
    attempt: number,
    limitMs: number,
    signal: AbortSignal | undefined,
    denied: Round,
  ): Promise<void>;
}

/** Asks again after a jittered, growing delay. */
export class PollingWaiter implements Waiter {
  readonly #wheel: TimerWheel;
  readonly #settings: Settings;

  constructor(wheel: TimerWheel, settings: Settings) {
    this.#wheel = wheel;
    this.#settings = settings;
  }

  get woken(): boolean {
    return false;
  }

  next(): undefined {
    return undefined;
  }

  wait(attempt: number, limitMs: number, signal: AbortSignal | undefined): Promise<void> {
    const delayMs = pollingDelayMs(this.#wheel, this.#settings, attempt);
    return pause(this.#wheel, Math.min(delayMs, limitMs), signal);
  }
}

/** How long a caller who polls waits before it asks again, in milliseconds. */
export function pollingDelayMs(wheel: TimerWheel, settings: Settings, attempt: number): number {
  const { retryDelayMs, retryDelayMaxMs } = settings;
  return backoffMs(attempt, retryDelayMs, retryDelayMaxMs, wheel.random.fraction());
}

/** Resolves after `delayMs`, when `signal` aborts, or when the client closes. Never rejects. */
export function pause(
  wheel: TimerWheel,
  delayMs: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  return new Pause(wheel, delayMs, signal).over;
}

/** A wait that somebody is in: it keeps the process alive. */
export class Pause extends Timed {
  /** Resolves at its end. */
  readonly over: Promise<void>;
  readonly #wheel: TimerWheel;
  readonly #signal: AbortSignal | undefined;
  #resolve: (() => void) | undefined = undefined;

  /**
   * @param wheel Where it waits.
   * @param delayMs For how long, in milliseconds; for ever where it is `Infinity`.
   * @param signal Ends it.
   */
  constructor(wheel: TimerWheel, delayMs: number, signal: AbortSignal | undefined) {
    super();
    this.#wheel = wheel;
    this.#signal = signal;
    if (signal?.aborted) {
      this.over = Promise.resolve();
      return;
    }
    this.over = new Promise((resolve) => this.#resolve = resolve);
    signal?.addEventListener("abort", this.end, { once: true });
    wheel.hold();
    wheel.schedule(this, wheel.clock.monotonicMs() + delayMs);
  }

  /** Ends it now. */
  readonly end = (): void => {
    const resolve = this.#resolve;
    if (!resolve) return;
    this.#resolve = undefined;
    this.#signal?.removeEventListener("abort", this.end);
    this.#wheel.cancel(this);
    this.#wheel.release();
    resolve();
  };

  /** Has it end `delayMs` from now, if it would not end before. */
  shorten(delayMs: number): void {
    const dueMs = this.#wheel.clock.monotonicMs() + delayMs;
    if (this.#resolve && dueMs < this.dueMs) this.#wheel.schedule(this, dueMs);
  }

  override onDue(): void {
    if (this.#wheel.clock.monotonicMs() < this.dueMs) this.#wheel.schedule(this, this.dueMs);
    else this.end();
  }

  override onClosed(): boolean {
    this.end();
    return true;
  }
}
