/**
 * The calls of this client for each lock: a queue, first in, first out. Of those that may wait
 * only the first asks the nodes, and none does while this client holds the lock. The first waits
 * among other clients by its {@linkcode QueuedWaiter}, which the next call takes over if the first
 * gives up.
 *
 * **Names.** What a call asks for has a `name`, that of its keys (`keysName`; of a pool, of one
 * key): by it the client keeps its own locks, and what it remembers of other clients. The queue of
 * calls has its `localName`: the same in exclusive mode, so that a lock takes the place of its
 * call; another for all readers of the keys, and for all calls for one pool.
 *
 * The other files in the order in which they are best read: `queued_waiter.ts` decides when the
 * first call asks, by what `ticket.ts` knows of its position on each node, by what nodes have sent
 * since (`news.ts`), and by clients of other libraries (`contended_resource.ts`).
 * `release_notifications.ts` knows which nodes notify this client, and `shared_clock.ts` the time
 * by which tickets are ordered.
 *
 * @module
 */
import { setLatest } from "../bounded_map.ts";
import type { EventListener } from "../events.ts";
import type { NodeSet } from "../quorum/quorum_node.ts";
import type { Round } from "../quorum/round.ts";
import { Pause } from "../time/pause.ts";
import { keysName } from "../resources.ts";
import { ContendedResource } from "./contended_resource.ts";
import { QueuedWaiter, type WaitingCall } from "./queued_waiter.ts";
import { ReleaseNotifications } from "./release_notifications.ts";

/** Locks that are remembered as contended; the oldest is forgotten for one more. */
const CONTENDED_MAX = 4_096;
/** At least so many owners are removed from the map before it is copied: see `#remove`. */
const REMOVED_MIN = 16;

/** The call that asks for a lock, or the lock itself once it is held; compared by identity. */
export type Owner = object;

/** The calls for one lock, if there is more than one or if one has to wait. */
export class LocalQueue {
  /** The calls behind the owner, in the order in which they came, and what lets each go on. */
  readonly calls: Map<WaitingCall, () => void> = new Map();
  /** Waits among other clients, for one call after another. */
  waiter: QueuedWaiter | undefined;
}

/** All local queues of one client. A lock that no other call waits for takes one entry of a map. */
export class LocalQueues {
  #owners: Map<string, Owner> = new Map();
  /** How many owners were removed since the map was last copied. */
  #removed = 0;
  readonly #queues: Map<string, LocalQueue> = new Map();
  /** The locks in shared mode that this client holds, by the names of their keys. */
  readonly #readers: Map<string, Set<Owner>> = new Map();
  readonly #contended: Map<string, ContendedResource> = new Map();
  readonly #nodeSet: NodeSet;
  readonly #onEvent: EventListener | undefined;
  #notifications: ReleaseNotifications | undefined;

  /**
   * @param nodeSet The nodes.
   * @param onEvent Gets an event for each node that refuses notifications.
   */
  constructor(nodeSet: NodeSet, onEvent: EventListener | undefined) {
    this.#nodeSet = nodeSet;
    this.#onEvent = onEvent;
  }

  /** The first call, which asks for the lock, or the lock if it is held. */
  owner(localName: string): Owner | undefined {
    return this.#owners.get(localName);
  }

  /** Makes `caller` the first call, unless another call is; returns whether it is the first. */
  claim(localName: string, caller: Owner): boolean {
    const owner = this.#owners.get(localName);
    if (owner === undefined) this.#owners.set(localName, caller);
    return owner === undefined || owner === caller;
  }

  /**
   * Waits behind all earlier calls.
   *
   * @param limitMs The longest wait, in milliseconds.
   * @returns Whether it may go on: it is the first now, or it enters at once. Else it has left the
   * queue.
   */
  async wait(call: WaitingCall, limitMs: number): Promise<boolean> {
    const { localName, settings: { signal } } = call;
    const pause = new Pause(this.#nodeSet.wheel, limitMs, signal);
    this.#open(localName).calls.set(call, pause.end);
    await pause.over;
    const waitsYet = this.#queues.get(localName)?.calls.delete(call);
    return !waitsYet; // what lets it go on takes it out
  }

  /** The queue of that name, if a call waits or has waited. */
  get(localName: string): LocalQueue | undefined {
    return this.#queues.get(localName);
  }

  /**
   * How the first call waits among other clients, after it was denied or because it expects to be;
   * `undefined` if it polls.
   */
  waiterFor(call: WaitingCall): QueuedWaiter | undefined {
    const { localName, settings } = call;
    if (!settings.notify || !this.#nodeSet.nodes.some(({ subscribe }) => subscribe)) {
      return void this.dropWaiter(localName); // that of a call before it
    }
    const queue = this.#open(localName);
    this.#notifications ??= new ReleaseNotifications(this.#nodeSet, this.#onEvent);
    const waiter = queue.waiter ??= new QueuedWaiter(this.#notifications, this.#nodeSet, call);
    waiter.call = call;
    waiter.resource = this.remember(call.name);
    return waiter;
  }

  /** What {@linkcode waiterFor} returned last, if this call has asked for it and still has it. */
  waiterOf(call: WaitingCall): QueuedWaiter | undefined {
    const waiter = this.#queues.get(call.localName)?.waiter;
    return waiter?.call === call ? waiter : undefined;
  }

  /**
   * The lock of this client has ended; or the first call cannot take the lock for now, or has one
   * that others may have beside it. It leaves the nodes' queues, and the next that waits has a
   * ticket of its own.
   *
   * @param won The round that won the lock.
   */
  dropWaiter(localName: string, won?: Round): void {
    const queue = this.#queues.get(localName);
    queue?.waiter?.leave(won);
    if (queue) queue.waiter = undefined;
  }

  /**
   * What is remembered of a lock that other clients hold or wait for; it is remembered from here
   * on.
   */
  remember(name: string): ContendedResource {
    const resource = this.#contended.get(name) ?? new ContendedResource();
    setLatest(this.#contended, name, resource, CONTENDED_MAX);
    return resource;
  }

  /**
   * Whether other clients are expected to wait for a lock, or for one of its keys: then its next
   * call joins them with its first request.
   */
  isContended(call: Pick<WaitingCall, "localName" | "name" | "keys" | "pool">): boolean {
    const { localName, name, keys, pool } = call;
    return this.#contended.has(name) || this.#queues.get(localName)?.waiter !== undefined ||
      keys.length > 1 && !pool && keys.some((key) => this.#contended.has(key));
  }

  /**
   * A release has learned whether other clients wait; the next call of this client for one of the
   * keys comes after them.
   */
  noteReleased(keys: readonly string[], othersWait: boolean): void {
    // as after most releases, which the loop would cost memory
    if (!othersWait && this.#contended.size === 0) return;
    const nowMs = this.#nodeSet.wheel.clock.monotonicMs();
    for (const name of keys.length > 1 ? [keysName(keys), ...keys] : keys) {
      // mutation: release-forgets-who-waits
      if (othersWait) this.remember(name);
      else if (!this.#contended.get(name)?.isForeignSeen(nowMs)) this.#contended.delete(name);
    }
  }

  /**
   * A call has its lock: decides which call of this client may ask next, and when.
   *
   * @param held The lock.
   * @param round The round that won it.
   */
  won(call: WaitingCall, held: Owner, round: Round): void {
    const { localName, mode, pool, settings: { atLeastMs } } = call;
    const waiter = this.waiterOf(call);
    const isFirst = this.owner(localName) === call;
    const queue = isFirst ? this.#queues.get(localName) : undefined;
    // The ticket leaves the queues now, if others may have another key of the pool, or enter beside
    // this lock, before it ends; or if the release is one that names no ticket (`atLeastMs`).
    if (waiter && (pool || mode || atLeastMs > 0)) this.dropWaiter(localName, round);
    if (mode) {
      const readers = this.#readers.get(call.name) ?? new Set();
      this.#readers.set(call.name, readers.add(held));
      // All that wait behind it ask at once, and enter beside it.
      // mutation: admitted-reader-goes-on-waiting
      for (const [caller, goOn] of queue?.calls ?? []) {
        caller.entersAtOnce = true;
        goOn();
      }
      queue?.calls.clear();
      this.leave(localName, call);
    } else if (pool || !isFirst) {
      // Of a pool, the next one asks at once, for another key. Calls for this key wait until the
      // lock ends, unless another call or lock is before it.
      if (pool) this.leave(localName, call);
      this.claim(call.name, held);
    } else {
      // The lock takes the place of its call: the next one asks when it ends.
      this.#owners.set(localName, held);
      if (waiter) waiter.call = undefined;
    }
  }

  /** A lock in shared mode that this client holds, if it holds one. */
  reader(name: string): Owner | undefined {
    return this.#readers.get(name)?.values().next().value;
  }

  /**
   * A call, or the lock, is done. If it was the first, the next call is.
   *
   * @param name The name of the queue that it is in; of a lock in shared mode, that of its keys.
   * @param won The round that won the lock, if it was not released: a release takes the ticket out
   * of the nodes' queues.
   */
  leave(name: string, owner: Owner, won?: Round): void {
    const readers = this.#readers.get(name);
    if (readers?.delete(owner) && readers.size === 0) this.#readers.delete(name);
    const queue = this.#queues.get(name);
    if (this.owner(name) !== owner) return void queue?.calls.delete(owner as WaitingCall);
    const [next] = queue?.calls ?? [];
    if (!queue || !next) {
      this.#remove(name);
      this.#queues.delete(name);
      queue?.waiter?.leave(won);
      return;
    }
    const [caller, goOn] = next;
    queue.calls.delete(caller);
    this.#owners.set(name, caller);
    if (queue.waiter && !queue.waiter.call) this.dropWaiter(name, won);
    goOn();
  }

  /**
   * Removes an owner, and now and then copies the map, in constant time on average: V8 links each
   * table that a map outgrows to the next one, so an old table keeps all later ones alive, with the
   * locks that were in them, until the whole heap is collected.
   */
  #remove(localName: string): void {
    this.#owners.delete(localName);
    if (++this.#removed < REMOVED_MIN + this.#owners.size) return;
    this.#owners = new Map(this.#owners);
    this.#removed = 0;
  }

  #open(localName: string): LocalQueue {
    const queue = this.#queues.get(localName) ?? new LocalQueue();
    this.#queues.set(localName, queue);
    return queue;
  }
}
