/**
 * Order in place of refusal: of many that ask at once, some go on and the others wait.
 *
 * @module
 */
import { Pause } from "./pause.ts";
import type { TimerWheel } from "./timer_wheel.ts";

/** One that waits at a gate: in a list, because it is a crowd that waits. */
class Entrant extends Pause {
  entered = false;
  behind: Entrant | undefined;
}

/**
 * Lets a number of callers in, and the next one when one of them leaves: first come, first served.
 */
export class Gate {
  readonly #wheel: TimerWheel;
  #free: number;
  /** The places of those that wait, and of some that gave up. */
  #first: Entrant | undefined;
  #last: Entrant | undefined;

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
   * @param isUrgent Whether it goes ahead of all that wait.
   * @returns Whether the caller is inside.
   */
  async wait(limitMs: number, signal?: AbortSignal, isUrgent = false): Promise<boolean> {
    await undefined; // the tick in which a crowd asks is no part of the wait
    if (this.enter()) return true;
    const entrant = new Entrant(this.#wheel, limitMs, signal);
    if (isUrgent || !this.#first) {
      entrant.behind = this.#first;
      this.#first = entrant;
    } else {
      this.#last!.behind = entrant;
    }
    if (!entrant.behind) this.#last = entrant;
    await entrant.over;
    return entrant.entered;
  }

  /** One that is inside leaves. */
  leave(): void {
    for (let entrant = this.#first; entrant; entrant = this.#first) {
      this.#first = entrant.behind;
      if (!entrant.scheduled) continue; // it gave up
      entrant.entered = true;
      // mutation: gate-lets-nobody-in
      return entrant.end();
    }
    this.#free++;
  }
}
