/**
 * Order in place of refusal: of many that ask at once, some go on and the others wait.
 *
 * @module
 */
import { Pause } from "./pause.ts";
import type { TimerWheel } from "./timer_wheel.ts";

/**
 * Lets a number of callers in, and the next one when one of them leaves: first come, first served.
 */
export class Gate {
  /** How many wait. */
  waiting = 0;
  readonly #wheel: TimerWheel;
  readonly #pauses: Set<Pause> = new Set();
  #free: number;

  /**
   * @param wheel Where waits end.
   * @param most How many may be inside.
   */
  constructor(wheel: TimerWheel, most: number) {
    this.#wheel = wheel;
    this.#free = most;
  }

  /** Enters if there is room; returns whether there is. */
  enter(): boolean {
    if (this.#free === 0) return false;
    this.#free--;
    return true;
  }

  /**
   * Waits for room.
   *
   * @param limitMs The longest wait, in milliseconds.
   * @param signal Ends the wait; so does the end of the client.
   * @returns Whether the caller is inside.
   */
  async wait(limitMs: number, signal?: AbortSignal): Promise<boolean> {
    this.waiting++;
    await undefined; // the tick in which a crowd asks is no part of the wait
    let entered = this.enter();
    if (!entered) {
      const pause = new Pause(this.#wheel, limitMs, signal);
      this.#pauses.add(pause);
      await pause.over;
      entered = !this.#pauses.delete(pause);
    }
    this.waiting--;
    return entered;
  }

  /** One that is inside leaves. */
  leave(): void {
    const [next] = this.#pauses;
    if (!next) {
      this.#free++;
      return;
    }
    this.#pauses.delete(next);
    // mutation: gate-lets-nobody-in
    next.end();
  }
}
