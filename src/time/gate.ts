/**
 * Order in place of refusal: of many that ask at once, some go on and the others wait.
 *
 * @module
 */
import { Pause } from "./pause.ts";
import type { TimerWheel } from "./timer_wheel.ts";

/** Callers that wait: first come, first served. */
export class Line<Caller> {
  readonly #wheel: TimerWheel;
  readonly #callers: Map<Pause, Caller> = new Map();
  /** Goes on where it stopped: from the beginning, it would pass the gaps of all who have left. */
  #order: MapIterator<[Pause, Caller]> = this.#callers.entries();

  /** @param wheel Where waits end. */
  constructor(wheel: TimerWheel) {
    this.#wheel = wheel;
  }

  /**
   * Waits behind all that came before.
   *
   * @param limitMs The longest wait, in milliseconds.
   * @param signal Ends the wait; so does the end of the client.
   * @returns Whether the caller may go on: {@linkcode next} has returned it.
   */
  async wait(caller: Caller, limitMs: number, signal?: AbortSignal): Promise<boolean> {
    const pause = new Pause(this.#wheel, limitMs, signal);
    this.#callers.set(pause, caller);
    await pause.over;
    if (!this.#callers.delete(pause)) return true;
    this.#order = this.#callers.entries(); // it keeps what the map was, as long as nobody leaves
    return false;
  }

  /** Lets the first of those that wait yet go on; returns who that is, if anybody waits. */
  next(): Caller | undefined {
    if (this.#callers.size === 0) return undefined;
    for (const [pause, caller] of this.#order) {
      if (!pause.scheduled) continue; // it is just giving up
      this.#callers.delete(pause);
      pause.end();
      return caller;
    }
    this.#order = this.#callers.entries(); // for those who come from now on
    return undefined;
  }
}

/**
 * Lets a number of callers in, and the next one when one of them leaves.
 */
export class Gate {
  #free: number;
  readonly #urgent: Line<true>;
  readonly #others: Line<true>;

  /**
   * @param wheel Where waits end.
   * @param most How many may be inside.
   */
  constructor(wheel: TimerWheel, most: number) {
    this.#free = most;
    this.#urgent = new Line(wheel);
    this.#others = new Line(wheel);
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
   * @param isUrgent Whether it goes ahead of all that are not.
   * @returns Whether the caller is inside.
   */
  async wait(limitMs: number, signal?: AbortSignal, isUrgent = false): Promise<boolean> {
    await undefined; // the tick in which a crowd asks is no part of the wait
    return this.enter() || (isUrgent ? this.#urgent : this.#others).wait(true, limitMs, signal);
  }

  /** One that is inside leaves. */
  leave(): void {
    // mutation: gate-lets-nobody-in
    if (!this.#urgent.next() && !this.#others.next()) this.#free++;
  }
}
