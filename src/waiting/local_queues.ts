/**
 * The calls of this client for each lock: a queue, first in, first out. Of those that may wait
 * only the first asks the nodes. Its lock then takes its place, unless others may have one beside
 * it: in shared mode, or with a pool. The first waits among other clients by its
 * {@linkcode QueuedWaiter}, which the next call takes over if the first gives up.
 *
 * **Names.** What a call asks for has a `name`, that of its keys (`keysName`; of a pool, of one
 * key): by it the client keeps its own locks, and what it remembers of other clients. The queue of
 * calls has its `localName`: the same in exclusive mode, so that a lock takes the place of its
 * call; another for all readers of the keys, and for all calls for one pool.
 *
 * Read first the head of `redis_node/scripts/queue.ts`: tickets, turns, watchers and patience are
 * explained there. Then the other files in this order: `queued_waiter.ts` decides when the first
 * call asks, by what `ticket.ts` knows of its position on each node, by what nodes have sent
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
import { Line } from "../time/gate.ts";
import { keysName } from "../resources.ts";
import { ContendedResource } from "./contended_resource.ts";
import { QueuedWaiter, type WaitingCall } from "./queued_waiter.ts";
import { ReleaseNotifications } from "./release_notifications.ts";

/** Locks that are remembered as contended; the oldest is forgotten for one more. */
const CONTENDED_MAX = 4_096;
/** At least so many names without a queue are kept: see `#remove`. */
const UNUSED_MIN = 16;

/** The call that asks for a lock, or the lock itself once it is held; compared by identity. */
export type Owner = object;

/** What this client has under one name: the lock or the call that asks for it, and who waits. */
export interface LocalQueue {
  /** The first call, which asks for the lock, or the lock if it is held. */
  owner: Owner;
  /** The calls behind it, if one has waited. */
  line: Line<WaitingCall> | undefined;
  /** Waits among other clients, for one call after another. */
  waiter: QueuedWaiter | undefined;
}

/** All local queues of one client. */
export class LocalQueues {
  /** By their names; a name that was used lately may have none. */
  #queues: Map<string, LocalQueue | undefined> = new Map();
  /** How many queues there are. */
  #count = 0;
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

  /** The queue of that name, if a call asks or the lock is held. */
  get(localName: string): LocalQueue | undefined {
    return this.#queues.get(localName);
  }

  /** Makes `caller` the first call, unless another call is; returns whether it is the first. */
  claim(localName: string, caller: Owner): boolean {
    const queue = this.#queues.get(localName);
    if (queue) return queue.owner === caller;
    this.#queues.set(localName, { owner: caller, line: undefined, waiter: undefined });
    this.#count++;
    return true;
  }

  /**
   * Waits behind all earlier calls.
   *
   * @param queue The queue of the call.
   * @param limitMs The longest wait, in milliseconds.
   * @returns Whether it may go on: it is the first now, or it enters at once.
   */
  async wait(queue: LocalQueue, call: WaitingCall, limitMs: number): Promise<boolean> {
    const line = queue.line ??= new Line(this.#nodeSet.wheel);
    const entrant = line.stand(call, limitMs, call.settings.signal);
    await entrant.over;
    return line.leave(entrant);
  }

  /**
   * The first call takes the waiter of the call before it, or a new one, because it was denied, or
   * expects to be; `undefined` if it polls because its settings forbid notifications.
   */
  takeWaiter(call: WaitingCall): QueuedWaiter | undefined {
    const { localName, settings } = call;
    const queue = this.#queues.get(localName)!;
    if (!settings.notify) return void this.removeWaiter(localName); // that of a call before it
    this.#notifications ??= new ReleaseNotifications(this.#nodeSet, this.#onEvent);
    const waiter = queue.waiter ??= new QueuedWaiter(this.#notifications, this.#nodeSet, call);
    waiter.call = call;
    waiter.resource = this.remember(call.name);
    return waiter;
  }

  /** The waiter that a call has taken, and that it still has. */
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
  removeWaiter(localName: string, won?: Round): void {
    const queue = this.#queues.get(localName);
    if (!queue) return;
    queue.waiter?.leave(won);
    queue.waiter = undefined;
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
  isContended({ name, keys, pool }: Pick<WaitingCall, "name" | "keys" | "pool">): boolean {
    return this.#contended.has(name) ||
      keys.length > 1 && !pool && keys.some((key) => this.#contended.has(key));
  }

  /**
   * A release has learned whether other clients wait; the next call of this client for one of the
   * keys comes after them.
   */
  noteReleased(keys: readonly string[], othersWait: boolean): void {
    // as after most releases; the loop would allocate
    if (!othersWait && this.#contended.size === 0) return;
    const nowMs = this.#nodeSet.wheel.clock.monotonicMs();
    for (const name of [keysName(keys), ...keys]) {
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
    const queue = this.#queues.get(localName);
    const waiter = this.waiterOf(call);
    const isFirst = queue?.owner === call;
    // The ticket leaves the queues now, if others may have another key of the pool, or enter beside
    // this lock, before it ends; or if the release is one that names no ticket (`atLeastMs`).
    if (waiter && (pool || mode || atLeastMs > 0)) this.removeWaiter(localName, round);
    if (mode) {
      const readers = this.#readers.get(call.name) ?? new Set();
      this.#readers.set(call.name, readers.add(held));
      // All that wait behind it ask at once, and enter beside it.
      const line = isFirst ? queue.line : undefined;
      // mutation: admitted-reader-goes-on-waiting
      for (let next = line?.next(); next; next = line?.next()) next.entersAtOnce = true;
      this.leave(localName, call);
    } else if (pool || !isFirst) {
      // Of a pool, the next one asks at once, for another key. Calls for this key wait until the
      // lock ends, unless another call or lock is before it.
      if (pool) this.leave(localName, call);
      this.claim(call.name, held);
    } else {
      // The lock takes the place of its call: the next one asks when it ends.
      queue.owner = held;
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
    if (queue?.owner !== owner) return;
    const next = queue.line?.next();
    if (queue.waiter && (!next || !queue.waiter.call)) this.removeWaiter(name, won);
    if (next) queue.owner = next;
    else this.#remove(name);
  }

  /**
   * Removes a queue, and keeps its name: if the entry was deleted and set again and again, V8 would
   * look at each place that it has left in the map. Now and then copies what is used, in constant
   * time on average. It makes another map, because V8 links each table that a map outgrows to the
   * next: an old one would keep all later ones alive, with their locks, until the whole heap is
   * collected.
   */
  #remove(localName: string): void {
    this.#queues.set(localName, undefined);
    this.#count--;
    const unused = this.#queues.size - this.#count;
    if (unused < UNUSED_MIN + this.#count) return;
    const used = new Map<string, LocalQueue>();
    this.#queues.forEach((queue, name) => queue && used.set(name, queue));
    this.#queues = used;
  }
}
