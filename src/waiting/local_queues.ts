/**
 * The calls of this client for each lock: a queue, first in, first out. Only the first call asks the nodes, and none does
 * while this client holds the lock.
 *
 * @module
 */
import { ReleaseNotifications } from "./release_notifications.ts";
import { QueuedWaiter } from "./queued_waiter.ts";
import type { EventListener } from "../events.ts";
import type { Settings } from "../options.ts";
import type { NodeSet, Round } from "../quorum/round.ts";
import { Pause } from "../time/pause.ts";
import { PollingWaiter } from "./polling.ts";
import type { Waiter } from "./waiter.ts";

/** Separates the keys of one lock in its name: no well-formed string contains it. */
const SEPARATOR = "\udc00";

/** The call that asks for a lock, or the lock itself once it is held; compared by identity. */
type Owner = object;

/** One call that waits for those ahead of it. */
interface QueuedCall {
  readonly caller: Owner;
  pause: Pause | undefined;
}

/** The calls for one lock, if there is more than one or if one has to wait. */
class LocalQueue {
  owner: Owner;
  /** The calls behind the owner, in the order in which they came. */
  readonly calls: Set<QueuedCall> = new Set();
  /** Waits among other clients, for one call after another. */
  waiter: QueuedWaiter | undefined = undefined;
  /** Whether other clients were waiting when this client last released the lock. */
  hasWaiters = false;
  /** The last attempt that failed, for the errors of calls that never ask. */
  latest: Round | undefined = undefined;

  constructor(owner: Owner) {
    this.owner = owner;
  }
}

/** The name of a set of keys, in whatever order they are given. */
export function queueKey(keys: readonly string[]): string {
  return keys.length === 1 ? keys[0] : [...keys].sort().join(SEPARATOR);
}

/** All local queues of one client. A lock that no other call wants takes one entry of a map. */
export class LocalQueues {
  readonly #occupied: Map<string, Owner | LocalQueue> = new Map();
  readonly #nodeSet: NodeSet;
  readonly #onEvent: EventListener | undefined;
  readonly #canSubscribe: boolean;
  #notifications: ReleaseNotifications | undefined = undefined;

  /**
   * @param nodeSet The nodes.
   * @param onEvent Gets an event for each node that refuses notifications.
   */
  constructor(nodeSet: NodeSet, onEvent: EventListener | undefined) {
    this.#nodeSet = nodeSet;
    this.#onEvent = onEvent;
    this.#canSubscribe = nodeSet.nodes.some(({ subscribe }) => subscribe !== undefined);
  }

  /** Makes `caller` the first call, if there is none; returns whether it is. */
  enter(name: string, caller: Owner): boolean {
    if (this.#occupied.has(name)) return false;
    this.#occupied.set(name, caller);
    return true;
  }

  /**
   * Waits behind all earlier calls.
   *
   * @param limitMs The longest wait, in milliseconds.
   * @param signal Ends the wait.
   * @returns Whether `caller` is the first now; else it has left the queue.
   */
  async wait(
    name: string,
    caller: Owner,
    limitMs: number,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    const { calls } = this.#queue(name);
    const turn = { caller, pause: new Pause(this.#nodeSet.wheel, limitMs, signal) };
    calls.add(turn);
    await turn.pause.over;
    return !calls.delete(turn);
  }

  /** The last denied attempt of the first call in that queue. */
  latest(name: string): Round | undefined {
    const found = this.#occupied.get(name);
    return found instanceof LocalQueue ? found.latest : undefined;
  }

  /** How many clients wait for the lock, as far as is known. */
  length(name: string): number | undefined {
    const found = this.#occupied.get(name);
    return found instanceof LocalQueue ? found.waiter?.queueLength : undefined;
  }

  /** The calls that ask for locks, and the locks that are held. */
  *owners(): Iterable<Owner> {
    for (const found of this.#occupied.values()) {
      yield found instanceof LocalQueue ? found.owner : found;
    }
  }

  /** The first call has the lock now. */
  promote(name: string, caller: Owner, held: Owner): void {
    const found = this.#occupied.get(name);
    if (found === caller) this.#occupied.set(name, held);
    else if (found instanceof LocalQueue) {
      found.owner = held;
      found.latest = undefined;
      found.waiter?.park();
    }
  }

  /**
   * The first call, or the lock, is done. The next call is the first.
   *
   * @param othersWait Whether other clients wait, which come before the next call of this one.
   */
  leave(name: string, owner: Owner, othersWait = false): void {
    const found = this.#occupied.get(name);
    if (found === owner) this.#occupied.delete(name);
    if (!(found instanceof LocalQueue) || found.owner !== owner) return;
    found.hasWaiters = othersWait;
    const [next] = found.calls;
    if (next) {
      found.calls.delete(next);
      found.owner = next.caller;
      found.waiter?.requeue();
      next.pause!.end();
    } else {
      this.#occupied.delete(name);
      found.waiter?.leave();
    }
  }

  /**
   * The waiter for a first call that expects contention: it joins the nodes' queues with its first request. Else
   * `undefined`, and the call asks at once.
   */
  waiterIfContended(name: string, keys: readonly string[], settings: Settings): Waiter | undefined {
    const notifications = this.#notifications;
    const found = this.#occupied.get(name);
    const othersWait = found instanceof LocalQueue && found.hasWaiters;
    if (!othersWait && !(notifications?.hasQuorum && notifications.expectsContention(name))) {
      return undefined;
    }
    return settings.notify ? this.waiter(name, keys, settings) : undefined;
  }

  /** The waiter for the first call, after it was denied. */
  waiter(name: string, keys: readonly string[], settings: Settings): Waiter {
    if (!settings.notify || !this.#canSubscribe) {
      return new PollingWaiter(this.#nodeSet.wheel, settings);
    }
    const queue = this.#queue(name);
    const notifications = this.#notifications ??= new ReleaseNotifications(
      this.#nodeSet,
      this.#onEvent,
    );
    notifications.noteContended(name);
    queue.waiter ??= new QueuedWaiter(notifications, this.#nodeSet, keys);
    queue.waiter.settings = settings;
    return queue.waiter;
  }

  /** Remembers that the first call was denied, for the errors of calls that never ask. */
  recordDenial(name: string, denied: Round): void {
    const found = this.#occupied.get(name);
    if (found instanceof LocalQueue) found.latest = denied;
  }

  /** The first call does not want the lock for now, and leaves the nodes' queues. */
  yield(name: string): void {
    const found = this.#occupied.get(name);
    if (!(found instanceof LocalQueue)) return;
    found.waiter?.leave();
    found.waiter = undefined;
  }

  /** The client closes: no call is notified any more. */
  close(): void {
    this.#notifications?.close();
  }

  /** The queue of that name, which has an owner. */
  #queue(name: string): LocalQueue {
    const found = this.#occupied.get(name)!;
    if (found instanceof LocalQueue) return found;
    const queue = new LocalQueue(found);
    this.#occupied.set(name, queue);
    return queue;
  }
}
