/**
 * What nodes have sent a ticket since its last attempt began: that it may have the key, or until
 * when another may.
 *
 * The other's turn is watched: the ticket asks when that is over, or a little later if only a
 * minority of nodes has said that it has begun. If the turn was used, because a quorum of nodes
 * says that the key was taken, the ticket asks when the key expires. If a lock has ended but keeps
 * its key for a while, the end of that is watched like the end of a turn.
 *
 * @module
 */
import { bitCount } from "../quorum/quorum_node.ts";

/**
 * How much later it asks if only a minority of nodes says that another's turn has begun, in
 * milliseconds: mostly the others still hold the key and would deny it. But their messages may be
 * lost instead, so it does ask: a free lock waits 1.5 s at most, and a turn lasts for up to 1 s.
 */
const MINORITY_LATER_MS = 200;
/**
 * How much later if a quorum says so, in milliseconds: on the other nodes the turn, or the key, may
 * end after that, and one that denies would keep the ticket that had the turn.
 */
const QUORUM_LATER_MS = 2;

/** The news of one ticket. Of a pool, they are about one key that it may have, and one to watch. */
export class News {
  /** One bit a node: those that have notified the ticket. */
  notifiedBy = 0;
  /**
   * Whether one of them says that it is the ticket's turn, or, by the same message, that it was
   * overtaken; else it may only enter beside readers.
   */
  hasTurn = false;
  /**
   * When what is watched ends, by the monotonic clock: another's turn; or if that was used, the
   * life of the key. `Infinity`: nothing is watched.
   */
  watchEndMs = Infinity;
  /** The index of the pool's key that it may have; `undefined`: the ticket is for no pool. */
  #ownPlace: number | undefined;
  /** That of the key of which a turn is watched. */
  #turnPlace: number | undefined;
  /** One bit a node: those that say that this turn has begun. */
  #begunOn = 0;
  /** One bit a node: those on which that key was taken since the turn began. */
  #takenOn = 0;
  readonly #quorum: number;

  /** @param quorum On how many nodes a turn must have begun, or be used. */
  constructor(quorum: number) {
    this.#quorum = quorum;
  }

  /** Only with a pool: a key that the ticket may have, or may when another's turn is over. */
  get place(): number | undefined {
    return this.notifiedBy !== 0 ? this.#ownPlace : this.#turnPlace;
  }

  /**
   * A node says that the ticket may have a key. Of a pool, only the nodes that say so of the key
   * that was named first are counted; but a turn for any of the keys is a turn.
   */
  onNotified(nodeIndex: number, place: number | undefined, isTurn: boolean): void {
    if (this.notifiedBy === 0) this.#ownPlace = place;
    if (place === this.#ownPlace) this.notifiedBy |= 1 << nodeIndex;
    if (isTurn) this.hasTurn = true;
  }

  /** It is another's turn, which ends at this time, unless it is used; of several, at the first. */
  endAt(place: number | undefined, endMs: number): void {
    if (this.#watch(place) && !this.#isUsed) this.watchEndMs = Math.min(this.watchEndMs, endMs);
  }

  /** A node says that another's turn has begun, and when it ends. */
  onWatch(nodeIndex: number, place: number | undefined, endMs: number): void {
    if (!this.#watch(place)) return;
    const bit = 1 << nodeIndex;
    // If it was taken there, it was released since: this is the next turn, and what nodes said of
    // the last one counts no longer. But if only a minority said that the last one was used, they
    // are slow, and the nodes that say that a turn has begun may mean this one.
    if (this.#takenOn & bit) {
      if (this.#isUsed) this.#begunOn = 0;
      this.#takenOn = 0;
    }
    this.#begunOn |= bit;
    const isMinority = bitCount(this.#begunOn) < this.#quorum;
    const laterMs = isMinority ? MINORITY_LATER_MS : QUORUM_LATER_MS;
    // mutation: notified-first-never-overtaken
    this.endAt(place, endMs + laterMs);
  }

  /** A node says that another took a key, and when it expires. */
  onTaken(nodeIndex: number, place: number | undefined, expiryMs: number): void {
    if (!this.#watch(place)) return;
    this.#takenOn |= 1 << nodeIndex;
    // mutation: first-overtaken-though-it-took-the-key
    if (this.#isUsed) this.watchEndMs = expiryMs;
  }

  /** Watches the turn for this key, unless that for another is watched: then returns `false`. */
  #watch(place: number | undefined): boolean {
    if (place === this.#turnPlace) return true;
    if (this.watchEndMs !== Infinity && !this.#isUsed) return false;
    this.#turnPlace = place;
    this.#begunOn = this.#takenOn = 0;
    return true;
  }

  get #isUsed(): boolean {
    return bitCount(this.#takenOn) >= this.#quorum;
  }
}
