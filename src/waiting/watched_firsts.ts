/**
 * The first tickets of a queue that a waiter watches: each was notified, and has not taken the key yet.
 *
 * @module
 */
import type { NotifiedFirst } from "../quorum/queue_ticket.ts";
import { bitCount } from "./release_notifications.ts";

/** What one waiter knows of the firsts; of a pool, those of one key at a time. */
export class WatchedFirsts {
  /** The index of the key in the pool whose firsts are watched. */
  place: number | undefined = undefined;
  readonly #quorum: number;
  /** Until when to wait for each, by the monotonic clock. */
  readonly #untilMs: Map<string, number> = new Map();
  /** One bit a node: those on which the first has taken the key since it was notified. */
  #takenOn = 0;

  constructor(quorum: number) {
    this.#quorum = quorum;
  }

  /** When the first wait is over. */
  get dueMs(): number {
    return Math.min(...this.#untilMs.values());
  }

  /** Whether the firsts for a key are watched; if no other ones are, they are from now on. */
  watches(place: number | undefined): boolean {
    if (place === this.place) return true;
    if (this.#untilMs.size > 0) return false;
    this.place = place;
    this.#takenOn = 0;
    return true;
  }

  /** A first has taken the key on one node. */
  onTaken(nodeIndex: number): void {
    this.#takenOn |= 1 << nodeIndex;
    // mutation: first-overtaken-though-it-took-the-key
    if (this.#isTaken) this.clear();
  }

  /** A first was notified by one node; it is waited for as long as it says, and some time more. */
  onNotified(nodeIndex: number, first: NotifiedFirst, nowMs: number, moreMs: number): void {
    if (this.#takenOn & 1 << nodeIndex) this.#takenOn = 0; // and released again
    // mutation: notified-first-never-overtaken
    if (!this.#isTaken) this.watch(first, nowMs, moreMs);
  }

  /** Waits for a first from the first time on that it is known: it may be notified again and again. */
  watch({ ticketId, patienceMs }: NotifiedFirst, nowMs: number, moreMs: number): void {
    if (this.#untilMs.has(ticketId)) return;
    // mutation: stuck-first-never-overtaken
    const dueMs = nowMs + patienceMs;
    this.#untilMs.set(ticketId, dueMs + moreMs);
  }

  /** Has each wait longer, in milliseconds: meanwhile an attempt of this client had keys that the first needs. */
  postpone(delayMs: number): void {
    for (const [ticketId, dueMs] of this.#untilMs) this.#untilMs.set(ticketId, dueMs + delayMs);
  }

  /** Those that have not used their turn in time, which are watched no longer. */
  overdue(nowMs: number): string[] {
    const stuck = [...this.#untilMs].filter(([, dueMs]) => dueMs <= nowMs).map(([id]) => id);
    for (const ticketId of stuck) this.#untilMs.delete(ticketId);
    return stuck;
  }

  /** No first is watched. */
  clear(): void {
    this.#untilMs.clear();
  }

  /** Whether the first has used its turn. */
  get #isTaken(): boolean {
    return bitCount(this.#takenOn) >= this.#quorum;
  }
}
