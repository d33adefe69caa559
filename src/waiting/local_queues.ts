/**
 * The calls of this client for each lock: a queue, first in, first out. Of those that may wait
 * only the first asks the nodes. Its lock then takes its place, unless others may have one beside
 * it: in shared mode, or with a pool.
 *
 * **From a denial to the lock.** Read first the head of `redis_node/scripts/queue.ts`: tickets,
 * turns, watchers and patience are explained there.
 *
 * 1. The first call is denied, or expects to be, because its client remembers that others wait. It
 *    gets a {@linkcode QueuedWaiter}, and its queue a {@linkcode Ticket} if it has none.
 * 2. Once a quorum of nodes can notify this client (`release_notifications.ts`), the call's next
 *    attempt has the ticket with it. Nodes that deny put that in their queues, which are ordered by
 *    the time of `shared_clock.ts`, and answer with its position.
 * 3. The waiter plans when to ask by these positions, by what nodes send it (`news.ts`), and by
 *    clients of other libraries (`foreign_clients.ts`). Then the call makes its next attempt.
 * 4. If it wins, nodes that grant have taken the ticket out. From those that deny the release takes
 *    it: if it left at once, they would notify the next client, which could not win. But it leaves
 *    at once if others may have a lock beside this one, or if the keys may live on.
 * 5. If the call gives up, the next goes on with the ticket, in its place, and with a waiter of its
 *    own. Without another call the ticket leaves; so it does if the call must wait for a cooldown,
 *    or if the settings of the next one forbid notifications.
 *
 * **Names.** What a call asks for has a `name`, that of its keys (`keysName`; of a pool, of one
 * key): by it the client keeps its own locks, and what it remembers of other clients. The queue of
 * calls has its `localName`: the same in exclusive mode, so that a lock takes the place of its
 * call; another for all readers of the keys, and for all calls for one pool.
 *
 * @module
 */
import { setLatest } from "../bounded_map.ts";
import type { EventListener } from "../events.ts";
import type { NodeSet } from "../quorum/quorum_node.ts";
import type { Round } from "../quorum/round.ts";
import { Line } from "../time/gate.ts";
import { keysName } from "../resources.ts";
import { ForeignClients } from "./foreign_clients.ts";
import { QueuedWaiter, type WaitingCall } from "./queued_waiter.ts";
import { ReleaseNotifications } from "./release_notifications.ts";
import { Ticket } from "./ticket.ts";

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
  /** What stands for one call after another in the queues of all clients. */
  ticket: Ticket | undefined;
}

/** All local queues of one client. */
export class LocalQueues {
  /** By their names; a name that was used lately may have none. */
  #queues: Map<string, LocalQueue | undefined> = new Map();
  /** How many queues there are. */
  #count = 0;
  /** The locks in shared mode that this client holds, by the names of their keys. */
  readonly #readers: Map<string, Set<Owner>> = new Map();
  /** The names of what other clients hold or wait for, and those of other libraries among them. */
  readonly #contended: Map<string, ForeignClients> = new Map();
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
    this.#queues.set(localName, { owner: caller, line: undefined, ticket: undefined });
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
   * Gives the first call a waiter, because it was denied, or expects to be; `undefined` if it polls
   * because its settings forbid notifications.
   */
  takeWaiter(call: WaitingCall): QueuedWaiter | undefined {
    const { localName, settings } = call;
    const queue = this.#queues.get(localName)!;
    if (!settings.notify) return void this.removeTicket(call); // that of a call before it
    const notifications = this.#notifications ??= new ReleaseNotifications(
      this.#nodeSet,
      this.#onEvent,
    );
    const ticket = queue.ticket ??= new Ticket(notifications, this.#nodeSet, call);
    if (!call.waiter) {
      call.waiter = new QueuedWaiter(settings, ticket);
      notifications.register(ticket.name, call.waiter); // until the ticket ends
    }
    call.waiter.foreign = this.remember(call.name);
    return call.waiter;
  }

  /**
   * The first call cannot take the lock for now, or has one that others may have beside it. Its
   * ticket leaves the nodes' queues, and the next that waits gets one of its own.
   *
   * @param won See {@linkcode Ticket.leave}.
   */
  removeTicket(call: WaitingCall, won?: Round): void {
    call.waiter = undefined;
    const queue = this.#queues.get(call.localName);
    if (queue) this.#endTicket(queue)?.leave(won);
  }

  /** Nobody waits with the ticket of a queue from now on; returns it, if there was one. */
  #endTicket(queue: LocalQueue): Ticket | undefined {
    const { ticket } = queue;
    queue.ticket = undefined;
    if (ticket) this.#notifications!.unregister(ticket.name, ticket.keys);
    return ticket;
  }

  /** Remembers that other clients hold a lock, or wait for it; returns what is known of them. */
  remember(name: string): ForeignClients {
    const foreign = this.#contended.get(name) ?? new ForeignClients();
    setLatest(this.#contended, name, foreign, CONTENDED_MAX);
    return foreign;
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
      else if (!this.#contended.get(name)?.isSeen(nowMs)) this.#contended.delete(name);
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
    const isFirst = queue?.owner === call;
    // The ticket leaves the queues now, if others may have another key of the pool, or enter beside
    // this lock, before it ends; or if the release is one that names no ticket (`atLeastMs`).
    if (call.waiter && (pool || mode || atLeastMs > 0)) this.removeTicket(call, round);
    if (mode) {
      const readers = this.#readers.get(call.name) ?? new Set();
      this.#readers.set(call.name, readers.add(held));
      // All that wait behind it ask at once, and enter beside it.
      const line = isFirst ? queue.line : undefined;
      // mutation: admitted-reader-goes-on-waiting
      for (let next = line?.next(); next; next = line?.next()) next.entersAtOnce = true;
      this.leave(call);
    } else if (pool || !isFirst) {
      // Of a pool, the next one asks at once, for another key. Calls for this key wait until the
      // lock ends, unless another call or lock is before it.
      this.leave(call);
      this.claim(call.name, held);
    } else {
      // The lock takes the place of its call: the next one asks when it ends.
      queue.owner = held;
    }
  }

  /** A lock in shared mode that this client holds, if it holds one. */
  reader(name: string): Owner | undefined {
    return this.#readers.get(name)?.values().next().value;
  }

  /** A call waits no more, or has a lock that is not in its place. The next goes on, if any. */
  leave(call: WaitingCall): void {
    const { localName } = call;
    const queue = this.#queues.get(localName);
    if (queue?.owner !== call) return;
    if (!this.#passOn(localName, queue)) this.#endTicket(queue)?.leave();
  }

  /**
   * A lock has ended. The next call goes on, with a ticket of its own.
   *
   * @param keys Its keys.
   * @param won The round that won it, if it was not released: a release takes the ticket out of the
   * nodes' queues.
   */
  lockEnded(keys: readonly string[], held: Owner, won?: Round): void {
    const name = keysName(keys);
    const readers = this.#readers.get(name);
    if (readers?.delete(held) && readers.size === 0) this.#readers.delete(name);
    const queue = this.#queues.get(name);
    if (queue?.owner !== held) return;
    const ticket = this.#endTicket(queue);
    const { clock, random } = this.#nodeSet.wheel;
    if (ticket) this.#contended.get(name)?.concede(clock.monotonicMs(), random);
    if (won) ticket?.leave(won);
    this.#passOn(name, queue);
  }

  /** The next call becomes the first; returns whether there is one. Else removes the queue. */
  #passOn(name: string, queue: LocalQueue): boolean {
    const next = queue.line?.next();
    if (next) queue.owner = next;
    else this.#remove(name);
    return next !== undefined;
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
