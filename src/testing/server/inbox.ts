/**
 * The requests that a node has received and not served, because it hangs or is slow.
 *
 * @module
 */
import { type Clock, systemClock, type TimerHandle } from "../../time/clock.ts";

/** One request. */
interface Item {
  /** Its connection. */
  readonly from: object;
  readonly arrivedMs: number;
  readonly serve: () => void;
}

/**
 * A queue in the order of arrival over all connections; it serves everything at once unless a
 * property is set.
 */
export class Inbox {
  readonly #clock: Clock;
  #items: Item[] = [];
  #held = false;
  #delayMs = 0;
  #timer: TimerHandle | undefined;

  /** @param clock The clock of the delays. */
  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  /** Whether nothing is served. */
  get held(): boolean {
    return this.#held;
  }

  set held(held: boolean) {
    this.#held = held;
    this.#serveDue();
  }

  /** The delay of each request in milliseconds; a request that has waited longer is served now. */
  set delayMs(delayMs: number) {
    this.#delayMs = delayMs;
    this.#serveDue();
  }

  /** Serves a request in its turn. */
  add(from: object, serve: () => void): void {
    this.#items.push({ from, arrivedMs: this.#clock.monotonicMs(), serve });
    this.#serveDue();
  }

  /** Drops the requests of a connection. */
  drop(from: object): void {
    this.#items = this.#items.filter((item) => item.from !== from);
  }

  /** Drops all requests. */
  clear(): void {
    this.#items = [];
    this.#serveDue();
  }

  #serveDue(): void {
    this.#clock.clearTimer(this.#timer);
    this.#timer = undefined;
    while (!this.#held && this.#items.length > 0) {
      const waitMs = this.#items[0].arrivedMs + this.#delayMs - this.#clock.monotonicMs();
      if (this.#delayMs > 0 && waitMs > 0) {
        this.#timer = this.#clock.setTimer(() => this.#serveDue(), Math.ceil(waitMs));
        return;
      }
      this.#items.shift()!.serve();
    }
  }
}
