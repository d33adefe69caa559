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
  /**
   * The indexes of the keys that were chosen since the call began, or since it last waited; the
   * last one is that of the next attempt.
   */
  #chosen = [0];

  /**
   * @param client The client.
   * @param keys The keys.
   */
  constructor(client: ClientState, keys: readonly string[]) {
    this.#client = client;
    this.#keys = keys;
    this.name = poolName(keys);
    const last = client.lastPlaces.get(this.name);
    this.choose(last !== undefined && this.#isUsable(last) ? last : undefined);
  }

  /** The index of the key that the attempt is for. */
  get place(): number {
    return this.#chosen.at(-1)!;
  }

  /** The key that the attempt is for. */
  get key(): string {
    return this.#keys[this.place];
  }

  /** The pool, as the nodes get it. */
  get details(): KeyPool {
    return { keys: this.#keys, place: this.place, free: [] };
  }

  /**
   * Chooses the key that may be free on most nodes, and on a quorum at least, and that was not
   * chosen yet.
   *
   * @param last The last attempt.
   * @returns Whether there is one; else the call waits, if it may.
   */
  chooseAnother(last: Round): boolean {
    const nodes = this.#keys.map((_, place) =>
      this.#isUsable(place) && !this.#chosen.includes(place) ? freeOn(last, place) : 0
    );
    const most = Math.max(this.#client.quorum, ...nodes);
    const place = this.#pick((place) => nodes[place] === most);
    if (place !== undefined) this.#chosen.push(place);
    return place !== undefined;
  }

  /**
   * Chooses the key for the first attempt of the call, or since it has waited; it may ask for every
   * other key after that.
   *
   * @param preferred The key that this client had last, or that a node has named. If it is missing
   * or in its cooldown: any that can be had, else one that this client has.
   */
  choose(preferred?: number): void {
    const isWarm = (place: number) => !this.#isCooling(place);
    const place = preferred !== undefined && isWarm(preferred)
      ? preferred
      : this.#pick((place) => this.#isUsable(place)) ?? this.#pick(isWarm) ?? this.place;
    this.#chosen = [place];
  }

  /** The call has the key: the next call of this client asks for it first. */
  noteWon(): void {
    setLatest(this.#client.lastPlaces, this.name, this.place, LAST_PLACES_MAX);
  }

  /** Whether no other lock or call of this client has a key, and the key is not in its cooldown. */
  #isUsable(place: number): boolean {
    return this.#client.localQueues.get(this.#keys[place]) === undefined &&
      !this.#isCooling(place);
  }

  #isCooling(place: number): boolean {
    return this.#client.cooldownLeftMs([this.#keys[place]]) > 0;
  }

  /** One at random of the keys that match; `undefined` if none does. */
  #pick(matches: (place: number) => boolean): number | undefined {
    const places = [...this.#keys.keys()].filter(matches);
    if (places.length === 0) return undefined;
    return places[Math.floor(this.#client.wheel.random.fraction() * places.length)];
  }
}

/**
 * On how many nodes a key may be free: those that said so, and those that granted or denied and did
 * not say which keys are free.
 */
function freeOn(round: Round, place: number): number {
  return round.nodeSet.nodes.filter((_, nodeIndex) => {
    const free = round.pool?.free[nodeIndex];
    if (free === undefined) return ["granted", "denied"].includes(round.voteOf(nodeIndex)!);
    // mutation: free-keys-ignored
    return Math.floor(free / 2 ** place) % 2 === 1;
  }).length;
}
