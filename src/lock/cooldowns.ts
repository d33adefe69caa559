/**
 * Resources that this client lets be for a while, as a lock of its own on them ended without a release.
 *
 * @module
 */
import type { Clock } from "../time/clock.ts";

/** Most keys that are remembered; for one more the oldest is forgotten, and may be taken again at once. */
export const COOLDOWNS_MAX = 10_000;

/** Why and for how long a key is let be. */
interface Cooldown {
  /** The value of the lock that ended. */
  readonly value: string;
  /** By the monotonic clock. */
  readonly untilMs: number;
}

/** What one client lets be. While every lock is released it remembers nothing. */
export class Cooldowns {
  readonly #clock: Clock;
  /** The oldest first. */
  readonly #cooldowns: Map<string, Cooldown> = new Map();

  /** @param clock By which time passes. */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How many keys are remembered. */
  get size(): number {
    return this.#cooldowns.size;
  }

  /**
   * Lets keys be from now on.
   *
   * @param keys The keys of a lock that ended.
   * @param value Its value.
   * @param forMs For how long, in milliseconds; a key that is let be for longer already stays so.
   */
  begin(keys: readonly string[], value: string, forMs: number): void {
    if (forMs <= 0) return;
    const nowMs = this.#clock.monotonicMs();
    const untilMs = nowMs + forMs;
    for (const key of keys) {
      if ((this.#cooldowns.get(key)?.untilMs ?? 0) > untilMs) continue;
      this.#cooldowns.delete(key); // so that it goes to the end
      this.#makeRoom(nowMs);
      this.#cooldowns.set(key, { value, untilMs });
    }
  }

  /** A lock that had ended was released after all, and that was confirmed. */
  end(keys: readonly string[], value: string): void {
    if (this.#cooldowns.size === 0) return;
    for (const key of keys) {
      if (this.#cooldowns.get(key)?.value === value) this.#cooldowns.delete(key);
    }
  }

  /** For how much longer one of the keys is let be, in milliseconds; 0 where none is. */
  leftMs(keys: readonly string[]): number {
    if (this.#cooldowns.size === 0) return 0;
    const nowMs = this.#clock.monotonicMs();
    let leftMs = 0;
    for (const key of keys) {
      const cooldown = this.#cooldowns.get(key);
      if (!cooldown) continue;
      if (cooldown.untilMs > nowMs) leftMs = Math.max(leftMs, cooldown.untilMs - nowMs);
      else this.#cooldowns.delete(key);
    }
    return leftMs;
  }

  /** Drops from the oldest on what is over, and one more where there is no room else. */
  #makeRoom(nowMs: number): void {
    for (const [key, { untilMs }] of this.#cooldowns) {
      if (untilMs > nowMs && this.#cooldowns.size < COOLDOWNS_MAX) return;
      this.#cooldowns.delete(key);
    }
  }
}
