/**
 * Which of several keys a call for any one of them asks for.
 *
 * **Why each key has one holder.** Each attempt is for one of the keys, with a value of its own,
 * and is undone before the next if it fails. So the argument in `acquire.ts` holds for it, key by
 * key, and k keys have k holders at most. What nodes say about the other keys, and which queues a
 * ticket stands in, only decides for which key the next attempt is. Nodes that counted holders
 * would not do: of three nodes that each admit two of three callers, every caller may have two; and
 * a larger quorum would tolerate no failed node.
 *
 * @module
 */
import { setLatest } from "../bounded_map.ts";
import type { ClientState } from "./client_state.ts";
import type { KeyPool } from "../quorum/quorum_node.ts";
import type { Round } from "../quorum/round.ts";
import { poolName } from "../resources.ts";
import type { HeldLock } from "./held_lock.ts";

/**
 * Most pools of which a client remembers the key that it had last; the oldest is forgotten for one
 * more.
 */
const LAST_PLACES_MAX = 4_096;

/** The keys of one call, of which it locks any one. */
export class Pool {
  readonly #client: ClientState;
  readonly #keys: readonly string[];
  /** The name of the pool in this client's queues. */
  readonly name: string;
  /** The index of the key that the attempt is for. */
  place = 0;
  /** The keys that were asked for since the call began, or since it last waited. */
  readonly #asked: Set<number> = new Set();

  /**
   * @param client The client.
   * @param keys The keys.
   */
  constructor(client: ClientState, keys: readonly string[]) {
    this.#client = client;
    this.#keys = keys;
    this.name = poolName(keys);
  }

  /** The key that the attempt is for. */
  get key(): string {
    return this.#keys[this.place];
  }

  /**
   * Begins an attempt.
   *
   * @param isPlain Whether it is the first of its call, and has no ticket: then the nodes get a
   * plain one, so that an idle pool costs what a lock costs.
   * @returns The pool for the nodes, unless the attempt is plain.
   */
  beginAttempt(isPlain: boolean): KeyPool | undefined {
    this.#asked.add(this.place);
    return isPlain ? undefined : { keys: this.#keys, place: this.place, free: [] };
  }

  /**
   * Chooses the key that may be free on most nodes, and on a quorum at least, and that was not
   * asked for.
   *
   * @param denied The last attempt.
   * @returns Whether there is one; else the call waits, if it may.
   */
  chooseAnother(denied: Round): boolean {
    const { quorum } = this.#client;
    const found = this.#places((place) => !this.#asked.has(place) && this.#isUsable(place))
      .map((place) => ({ place, nodes: freeOn(denied, place) }));
    const most = Math.max(quorum, ...found.map(({ nodes }) => nodes));
    const best = found.filter(({ nodes }) => nodes === most).map(({ place }) => place);
    if (best.length === 0) return false;
    this.place = this.#pick(best);
    return true;
  }

  /**
   * The call is in no queue of the nodes: it may ask for every key, and first for the one that this
   * client had last.
   */
  chooseFirst(): void {
    this.#asked.clear();
    this.place = this.#choose(this.#client.lastPlaces.get(this.name));
  }

  /**
   * The call has waited: it may ask for every key again, and first for the one that a node has
   * named.
   */
  chooseAgain(place: number | undefined): void {
    this.#asked.clear();
    const named = place !== undefined && !this.#isCooling(place);
    this.place = named ? place : this.#choose();
  }

  /** The call has one of the keys: the next call of this client may ask for another. */
  won(call: object, held: HeldLock): void {
    const { localQueues, lastPlaces } = this.#client;
    setLatest(lastPlaces, this.name, this.place, LAST_PLACES_MAX);
    localQueues.leave(this.name, call);
    localQueues.claim(this.key, held);
  }

  /** The preferred key, if it can be had; else any that can be, or one that this client has. */
  #choose(preferred?: number): number {
    if (preferred !== undefined && this.#isUsable(preferred)) return preferred;
    const usable = this.#places((place) => this.#isUsable(place));
    const places = usable.length > 0 ? usable : this.#places((place) => !this.#isCooling(place));
    return places.length > 0 ? this.#pick(places) : this.place;
  }

  /** Whether no other lock or call of this client has a key, and the key is not in its cooldown. */
  #isUsable(place: number): boolean {
    return this.#client.localQueues.owner(this.#keys[place]) === undefined &&
      !this.#isCooling(place);
  }

  #isCooling(place: number): boolean {
    return this.#client.cooldowns.leftMs([this.#keys[place]]) > 0;
  }

  #places(matches: (place: number) => boolean): number[] {
    return [...this.#keys.keys()].filter(matches);
  }

  #pick(places: readonly number[]): number {
    return places[Math.floor(this.#client.wheel.random.fraction() * places.length)];
  }
}

/**
 * On how many nodes a key may be free: those that said so, and those that did not say whether it
 * is.
 */
function freeOn(round: Round, place: number): number {
  return round.nodeSet.nodes.filter((_, nodeIndex) => {
    const free = round.pool?.free[nodeIndex];
    if (free === undefined) return round.grantedBy(nodeIndex) || round.deniedBy(nodeIndex);
    // mutation: free-keys-ignored
    return Math.floor(free / 2 ** place) % 2 === 1;
  }).length;
}
