/**
 * Resources in cooldown: a lock of this client on them ended without a confirmed release.
 *
 * @module
 */
import type { Clock } from "../time/clock.ts";

/** Most keys in cooldown; one more ends the cooldown of the oldest. */
export const COOLDOWNS_MAX = 10_000;

/** The cooldown of one key. */
interface Cooldown {
  /** The value of the lock that ended. */
  readonly value: string;
  /** When the cooldown is over, by the monotonic clock. */
  readonly untilMs: number;
}

/** The cooldowns of one client. Empty while every lock is released. */
export class Cooldowns {
  readonly #clock: Clock;
  /** The oldest first. */
  readonly #cooldowns: Map<string, Cooldown> = new Map();

  /** @param clock By which time passes. */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How many keys are in cooldown. */
  get size(): number {
    return this.#cooldowns.size;
  }

  /**
   * Begins the cooldown of keys.
   *
   * @param keys The keys of a lock that ended.
   * @param value Its value.
   * @param forMs How long it takes, in milliseconds; a key whose cooldown takes longer already keeps it.
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

  /** Ends the cooldown that a lock began, because a late release of it was confirmed. */
  end(keys: readonly string[], value: string): void {
    if (this.#cooldowns.size === 0) return;
    for (const key of keys) {
      if (this.#cooldowns.get(key)?.value === value) this.#cooldowns.delete(key);
    }
  }

  /** How long until none of the keys is in cooldown, in milliseconds. */
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

  /** Deletes cooldowns that are over, from the oldest on, and one more if there is no room otherwise. */
  #makeRoom(nowMs: number): void {
    for (const [key, { untilMs }] of this.#cooldowns) {
      if (untilMs > nowMs && this.#cooldowns.size < COOLDOWNS_MAX) return;
      this.#cooldowns.delete(key);
    }
  }
}
