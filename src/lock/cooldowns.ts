/**
 * Resources in cooldown: a lock of this client on them was lost, or ended without a confirmed
 * release.
 *
 * @module
 */
import type { Clock } from "../time/clock.ts";

/** Most keys in cooldown; one more ends the cooldown of the oldest. */
export const COOLDOWNS_MAX = 10_000;

/** The cooldowns of one client. Empty while every lock is released. */
export class Cooldowns {
  readonly #clock: Clock;
  /** When the cooldown of each key is over, by the monotonic clock; the oldest first. */
  readonly #cooldowns: Map<string, number> = new Map();

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
   * @param forMs How long it takes, in milliseconds; a key whose cooldown takes longer already
   * keeps it.
   */
  begin(keys: readonly string[], forMs: number): void {
    if (forMs <= 0) return;
    const nowMs = this.#clock.monotonicMs();
    const untilMs = nowMs + forMs;
    for (const key of keys) {
      if ((this.#cooldowns.get(key) ?? 0) > untilMs) continue;
      this.#cooldowns.delete(key); // so that it goes to the end
      this.#makeRoom(nowMs);
      this.#cooldowns.set(key, untilMs);
    }
  }

  /** How long until none of the keys is in cooldown, in milliseconds. */
  leftMs(keys: readonly string[]): number {
    if (this.#cooldowns.size === 0) return 0;
    const nowMs = this.#clock.monotonicMs();
    let leftMs = 0;
    for (const key of keys) {
      const untilMs = this.#cooldowns.get(key) ?? 0;
      if (untilMs > nowMs) leftMs = Math.max(leftMs, untilMs - nowMs);
      else this.#cooldowns.delete(key);
    }
    return leftMs;
  }

  /**
   * Deletes cooldowns that are over, from the oldest on, and one more if there is no room
   * otherwise.
   */
  #makeRoom(nowMs: number): void {
    for (const [key, untilMs] of this.#cooldowns) {
      if (untilMs > nowMs && this.#cooldowns.size < COOLDOWNS_MAX) return;
      this.#cooldowns.delete(key);
    }
  }
}
