/**
 * A turn that is not this ticket's: the client that has it is ahead in the queues. The ticket asks
 * when the turn is over; but if it was used, which is when a quorum of nodes says that the key was
 * taken, when the key expires. If a lock has ended but keeps its key for a while, the end of that
 * is watched like the end of a turn.
 *
 * @module
 */
import { bitCount } from "../quorum/quorum_node.ts";

/** The turn that one ticket watches: of a pool, that for one of its keys at a time. */
export class WatchedTurn {
  /**
   * When it is over, by the monotonic clock; or if it was used, when the key expires. `Infinity`:
   * none is watched.
   */
  endMs = Infinity;
  /** The index of the pool's key that it is for; `undefined`: the ticket is for no pool. */
  place: number | undefined;
  /** One bit a node: those on which that key was taken since the turn began. */
  #takenOn = 0;
  readonly #quorum: number;

  /** @param quorum On how many nodes the key must be taken for the turn to be used. */
  constructor(quorum: number) {
    this.#quorum = quorum;
  }

  /** Watches the turn for this key, unless that for another is watched: then returns `false`. */
  watch(place: number | undefined): boolean {
    if (place === this.place) return true;
    if (this.endMs !== Infinity && !this.#isUsed) return false;
    this.place = place;
    this.#takenOn = 0;
    return true;
  }

  /** It ends at this time; if several are said, at the first. */
  endAt(endMs: number): void {
    this.endMs = Math.min(this.endMs, endMs);
  }

  /** A node says that the turn has begun, and when it ends there. */
  onBegun(nodeIndex: number, endMs: number): void {
    const bit = 1 << nodeIndex;
    if (this.#takenOn & bit) this.#takenOn = 0; // and released again
    // mutation: notified-first-never-overtaken
    if (!this.#isUsed) this.endAt(endMs);
  }

  /** A node says that the key was taken, and when it expires. */
  onTaken(nodeIndex: number, expiryMs: number): void {
    this.#takenOn |= 1 << nodeIndex;
    // mutation: first-overtaken-though-it-took-the-key
    if (this.#isUsed) this.endMs = expiryMs;
  }

  get #isUsed(): boolean {
    return bitCount(this.#takenOn) >= this.#quorum;
  }
}
