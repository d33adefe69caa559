/**
 * Order in place of refusal: of many that ask at once, some go on and the others wait.
 *
 * @module
 */
import { Pause } from "./pause.ts";
import type { TimerWheel } from "./timer_wheel.ts";

/** One that waits at a gate: in a list, because it is a crowd that waits. */
class Place extends Pause {
  entered = false;
  behind: Place | undefined;
}

/**
 * Lets a number of callers in, and the next one when one of them leaves: first come, first served.
 */
export class Gate {
  readonly #wheel: TimerWheel;
  #free: number;
  /** The places of those that wait, and of some that gave up. */
  #first: Place | undefined;
  #last: Place | undefined;

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
    const place = new Place(this.#wheel, limitMs, signal);
    if (isUrgent || !this.#first) {
      place.behind = this.#first;
      this.#first = place;
    } else {
      this.#last!.behind = place;
    }
    if (!place.behind) this.#last = place;
    await place.over;
    return place.entered;
  }

  /** One that is inside leaves. */
  leave(): void {
    for (let place = this.#first; place; place = this.#first) {
      this.#first = place.behind;
      if (!place.scheduled) continue; // it gave up
      place.entered = true;
      // mutation: gate-lets-nobody-in
      return place.end();
    }
    this.#free++;
  }
}
