/**
 * The calls of this client for each lock: a queue, first in, first out. Only the first call asks the nodes, and none does
 * while this client holds the lock.
 *
 * @module
 */
import type { Round } from "../quorum/round.ts";
import { ContendedResource } from "./contended_resource.ts";
import type { QueuedWaiter } from "./queued_waiter.ts";

/** Separates the keys of one lock in its name: no well-formed string contains it. */
const SEPARATOR = "\udc00";

/** Locks that are remembered as contended; the oldest is forgotten for one more. */
const CONTENDED_MAX = 4_096;
/** Fewest owners that are removed from a map before it is copied. */
const REMOVED_MIN = 16;

/** The call that asks for a lock, or the lock itself once it is held; compared by identity. */
export type Owner = object;

/** The calls for one lock, if there is more than one or if one has to wait. */
export class LocalQueue {
  /** The calls behind the owner, in the order in which they came, and what to call when it is their turn. */
  readonly calls: Map<Owner, (() => void) | undefined> = new Map();
  /** Waits among other clients, for one call after another. */
  waiter: QueuedWaiter | undefined = undefined;
  /** The last attempt that failed, for the errors of calls that never ask. */
  latest: Round | undefined = undefined;
}

/** The name of a set of keys, in whatever order they are given. */
export function queueKey(keys: readonly string[]): string {
  return keys.length === 1 ? keys[0] : [...keys].sort().join(SEPARATOR);
}

/** The name of a set of keys of which a call locks any one; the name of no other lock begins so. */
export function poolKey(keys: readonly string[]): string {
  return SEPARATOR + keys.join(SEPARATOR);
}

/** The name of the queue of calls in shared mode for a lock; the name of no other lock begins so. */
export function sharedName(lockName: string): string {
  return SEPARATOR + SEPARATOR + lockName;
}

/** All local queues of one client. A lock that no other call waits for takes one entry of a map. */
export class LocalQueues {
  #owners: Map<string, Owner> = new Map();
  /** How many owners were removed since the map was made. */
  #removed = 0;
  readonly #queues: Map<string, LocalQueue> = new Map();
  readonly #contended: Map<string, ContendedResource> = new Map();

  /** The first call, which asks for the lock, or the lock if it is held. */
  owner(name: string): Owner | undefined {
    return this.#owners.get(name);
  }

  /** Makes `caller` the first call, unless another call is; returns whether it did. */
  enter(name: string, caller: Owner): boolean {
    if (this.#owners.has(name)) return false;
    this.#owners.set(name, caller);
    return true;
  }

  /** Whether `caller` is the first call. */
  isFirst(name: string, caller: Owner): boolean {
    return this.#owners.get(name) === caller;
  }

  /** Puts `caller` behind all earlier calls, if it is not in the queue; it leaves by {@linkcode leave}. */
  join(name: string, caller: Owner, onTurn?: () => void): void {
    if (!this.isFirst(name, caller)) this.open(name).calls.set(caller, onTurn);
  }

  /** The queue of that name, if a call waits or has waited. */
  get(name: string): LocalQueue | undefined {
    return this.#queues.get(name);
  }

  /** The same; creates the queue if it is missing. */
  open(name: string): LocalQueue {
    const queue = this.#queues.get(name) ?? new LocalQueue();
    this.#queues.set(name, queue);
    return queue;
  }

  /** What is remembered of a lock that other clients hold or wait for; it is remembered from here on. */
  contend(name: string): ContendedResource {
    const resource = this.#contended.get(name) ?? new ContendedResource();
    this.#contended.set(name, resource);
    if (this.#contended.size > CONTENDED_MAX) {
      const [oldest] = this.#contended.keys();
      this.#contended.delete(oldest);
    }
    return resource;
  }

  /** Whether other clients are expected to wait for a lock: then its next call joins them with its first request. */
  isContended(name: string): boolean {
    return this.#contended.has(name) || this.#queues.get(name)?.waiter !== undefined;
  }

  /** A release has learned whether other clients wait; the next call of this client comes after them. */
  noteReleased(name: string, othersWait: boolean, nowMs: number): void {
    // mutation: release-forgets-who-waits
    if (othersWait) this.contend(name);
    else if (this.#contended.get(name)?.shareMsMax(nowMs) === 0) this.#contended.delete(name);
  }

  /** The first call has the lock now. */
  promote(name: string, caller: Owner, held: Owner): void {
    if (!this.isFirst(name, caller)) return;
    this.#owners.set(name, held);
    const queue = this.#queues.get(name);
    if (!queue) return;
    queue.latest = undefined;
    queue.waiter?.park();
  }

  /** The first call has a lock that others may have beside it: it is the turn of all calls behind it. */
  admit(name: string, caller: Owner): void {
    if (!this.isFirst(name, caller)) return;
    const calls = this.#queues.get(name)?.calls ?? [];
    this.#remove(name);
    this.#queues.delete(name);
    // mutation: admitted-reader-goes-on-waiting
    for (const [, onTurn] of calls) onTurn?.();
  }

  /** A call, or the lock, is done. If it was the first, the next call is. */
  leave(name: string, owner: Owner): void {
    const queue = this.#queues.get(name);
    if (!this.isFirst(name, owner)) return void queue?.calls.delete(owner);
    const [next] = queue?.calls ?? [];
    if (!queue || !next) {
      this.#remove(name);
      this.#queues.delete(name);
      queue?.waiter?.leave();
      return;
    }
    const [caller, onTurn] = next;
    queue.calls.delete(caller);
    this.#owners.set(name, caller);
    queue.waiter?.requeue();
    onTurn?.();
  }

  /**
   * Removes an owner, and now and then copies the map, in constant time on average: V8 links each table that a map
   * outgrows to the next one, so an old table keeps all later ones alive, with the locks that were in them, until the
   * whole heap is collected.
   */
  #remove(name: string): void {
    this.#owners.delete(name);
    if (++this.#removed < REMOVED_MIN + this.#owners.size) return;
    this.#owners = new Map(this.#owners);
    this.#removed = 0;
  }
}
