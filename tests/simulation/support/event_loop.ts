/**
 * The one event loop of a simulation: what happens, in the order of simulated time.
 *
 * Promises are the runtime's own. After an event that may have moved any, the loop waits for one
 * macrotask of the runtime, before which it runs every microtask there is: so the order of things
 * never depends on how many promises lie one behind the other. Macrotasks are planned many at a
 * time, because the runtime looks for sockets and timers once for all of them, and that costs more
 * than most events.
 */
import { setImmediate } from "node:timers";

/** How many macrotasks are planned at a time. */
const MACROTASKS = 64;

/** Something that will happen. */
export interface SimEvent {
  /** When, in milliseconds of simulated time. */
  readonly atMs: number;
  /** Orders events of one moment: first planned, first done. */
  readonly order: number;
  /** What; `undefined` once it is cancelled. */
  action: (() => Turn | void) | undefined;
}

/** A turn of somebody's code, which ends when all its promises have run. */
export interface Turn {
  /** Called once they have. */
  endTurn(): void;
}

/** The queue of events, and the true time. */
export class EventLoop {
  /**
   * The true time, in milliseconds since the simulation began. No party of the simulation can read
   * it.
   */
  nowMs = 0;
  /** How many events were done. */
  count = 0;
  readonly #heap: SimEvent[] = [];
  #order = 0;
  /** How many macrotasks are planned and have not begun. */
  #planned = 0;
  #onMacrotask: (() => void) | undefined;
  #looks: { readonly everyMs: number; readonly look: () => void; nextMs: number } | undefined;

  /** Has `action` done at `atMs`, or now if that is past. */
  at(atMs: number, action: () => Turn | void): SimEvent {
    const event = { atMs: Math.max(atMs, this.nowMs), order: this.#order++, action };
    this.#push(event);
    return event;
  }

  /** Has `look` called every so many milliseconds. It must change nothing, and is no event. */
  watch(everyMs: number, look: () => void): void {
    this.#looks = { everyMs, look, nextMs: this.nowMs };
  }

  /**
   * Does what is due until `endMs`, or until `finished` says so.
   *
   * @param endMs When to stop, in milliseconds of simulated time.
   * @param afterEach Called after each event.
   * @param finished Asked after each event.
   */
  async run(endMs: number, afterEach: () => void, finished = () => false): Promise<void> {
    while (!finished()) {
      const event = this.#heap[0];
      if (!event || event.atMs > endMs) {
        this.nowMs = endMs;
        return;
      }
      this.#pop();
      const { action } = event;
      if (!action) continue;
      this.#lookUntil(event.atMs);
      this.nowMs = event.atMs;
      this.count++;
      const turn = action();
      if (turn) {
        await this.#macrotask();
        turn.endTurn();
      }
      afterEach();
    }
  }

  #lookUntil(atMs: number): void {
    const looks = this.#looks;
    for (; looks && looks.nextMs < atMs; looks.nextMs += looks.everyMs) {
      this.nowMs = looks.nextMs;
      looks.look();
    }
  }

  #macrotask(): Promise<void> {
    if (this.#planned === 0) {
      this.#planned = MACROTASKS;
      for (let count = 0; count < MACROTASKS; count++) setImmediate(this.#begin);
    }
    return new Promise((resolve) => this.#onMacrotask = resolve);
  }

  readonly #begin = (): void => {
    this.#planned--;
    this.#onMacrotask?.();
  };

  #push(event: SimEvent): void {
    const heap = this.#heap;
    let index = heap.push(event) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(event, heap[parent])) break;
      heap[index] = heap[parent];
      index = parent;
    }
    heap[index] = event;
  }

  #pop(): void {
    const heap = this.#heap;
    const event = heap.pop()!;
    if (heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1], heap[child])) child++;
      if (!isBefore(heap[child], event)) break;
      heap[index] = heap[child];
      index = child;
    }
    heap[index] = event;
  }
}

function isBefore(one: SimEvent, other: SimEvent): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
}
