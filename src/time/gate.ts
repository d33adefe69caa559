/**
 * Order in place of refusal: of many that ask at once, some go on and the others wait.
 *
 * @module
 */
import { Pause } from "./pause.ts";
import type { TimerWheel } from "./timer_wheel.ts";

/** A caller that waits. */
class Entrant<Caller> extends Pause {
  readonly caller: Caller;
  entered = false;

  constructor(
    caller: Caller,
    wheel: TimerWheel,
    limitMs: number,
    signal: AbortSignal | undefined,
  ) {
    super(wheel, limitMs, signal);
    this.caller = caller;
  }
}

/**
 * Callers that wait: first come, first served. Each awaits its entrant, because one more promise
 * for each would cost a crowd time.
 */
export class Line<Caller> {
  readonly #wheel: TimerWheel;
  /** In their order: those that have entered, up to `#next`; then who waits, or has given up. */
  #entrants: Entrant<Caller>[] = [];
  #next = 0;
  /** How many have entered or given up. */
  #gone = 0;

  /** @param wheel Where waits end. */
  constructor(wheel: TimerWheel) {
    this.#wheel = wheel;
  }

  /**
   * Puts a caller behind all that came before. It is to wait until that is `over`, and then to
   * {@linkcode leave}.
   *
   * @param limitMs The longest wait, in milliseconds.
   * @param signal Ends the wait; so does the end of the client.
   */
  stand(caller: Caller, limitMs: number, signal: AbortSignal | undefined): Entrant<Caller> {
    const entrant = new Entrant(caller, this.#wheel, limitMs, signal);
    this.#entrants.push(entrant);
    return entrant;
  }

  /** Returns whether it may go on, because {@linkcode next} has returned its caller. */
  leave({ entered }: Entrant<Caller>): boolean {
    if (++this.#gone > this.#entrants.length / 2) {
      this.#entrants = this.#entrants.slice(this.#next).filter(({ scheduled }) => scheduled);
      this.#next = this.#gone = 0;
    }
    return entered;
  }

  /** Lets the first of those that wait yet go on; returns who that is, if anybody waits. */
  next(): Caller | undefined {
    while (this.#next < this.#entrants.length) {
      const entrant = this.#entrants[this.#next++];
      if (!entrant.scheduled) continue; // it has given up
      entrant.entered = true;
      entrant.end();
      return entrant.caller;
    }
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
    if (this.enter()) return true;
    const line = isUrgent ? this.#urgent : this.#others;
    const entrant = line.stand(true, limitMs, signal);
    await entrant.over;
    return line.leave(entrant);
  }

  /** One that is inside leaves. */
  leave(): void {
    // mutation: gate-lets-nobody-in
    if (!this.#urgent.next() && !this.#others.next()) this.#free++;
  }
}
