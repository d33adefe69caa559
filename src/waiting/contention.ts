/**
 * How the calls of one client wait: behind each other, and the first of them among other clients.
 *
 * @module
 */
import type { EventListener } from "../events.ts";
import type { Settings } from "../options.ts";
import type { NodeSet } from "../quorum/node_set.ts";
import type { Round } from "../quorum/round.ts";
import { Pause } from "../time/pause.ts";
import type { LocalQueues, Owner } from "./local_queues.ts";
import { PollingWaiter } from "./polling.ts";
import { QueuedWaiter } from "./queued_waiter.ts";
import { ReleaseNotifications } from "./release_notifications.ts";
import type { Waiter, WaitingCall } from "./waiter.ts";

/** The calls of one client that wait. */
export class Contention {
  readonly #queues: LocalQueues;
  readonly #nodeSet: NodeSet;
  readonly #onEvent: EventListener | undefined;
  readonly #canSubscribe: boolean;
  #notifications: ReleaseNotifications | undefined = undefined;

  /**
   * @param queues The calls of the client.
   * @param nodeSet The nodes.
   * @param onEvent Gets an event for each node that refuses notifications.
   */
  constructor(queues: LocalQueues, nodeSet: NodeSet, onEvent: EventListener | undefined) {
    this.#queues = queues;
    this.#nodeSet = nodeSet;
    this.#onEvent = onEvent;
    this.#canSubscribe = nodeSet.nodes.some(({ subscribe }) => subscribe !== undefined);
  }

  /**
   * Waits behind all earlier calls.
   *
   * @param limitMs The longest wait, in milliseconds.
   * @param signal Ends the wait.
   * @returns Whether it is its turn: `caller` is the first now, or was admitted. Else it has left the queue.
   */
  async wait(
    name: string,
    caller: Owner,
    limitMs: number,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    if (!this.#queues.isFirst(name, caller)) {
      const pause = new Pause(this.#nodeSet.wheel, limitMs, signal);
      this.#queues.join(name, caller, pause.end);
      await pause.over;
    }
    const waits = this.#queues.get(name)?.calls.has(caller) === true;
    if (waits) this.#queues.leave(name, caller);
    return !waits;
  }

  /**
   * The waiter for a first call that expects contention: it joins the nodes' queues with its first request. Else
   * `undefined`, and the call asks at once.
   */
  waiterIfContended(call: WaitingCall, settings: Settings): Waiter | undefined {
    const expected = settings.notify && this.#queues.isContended(call.lockName);
    return expected ? this.waiter(call, settings) : undefined;
  }

  /** The waiter for the first call, after it was denied. */
  waiter(call: WaitingCall, settings: Settings): Waiter {
    if (!settings.notify || !this.#canSubscribe) {
      return new PollingWaiter(this.#nodeSet.wheel, settings);
    }
    const notifications = this.#notifications ??= new ReleaseNotifications(
      this.#nodeSet,
      this.#onEvent,
    );
    const resource = this.#queues.contend(call.lockName);
    const queue = this.#queues.open(call.name);
    queue.waiter ??= new QueuedWaiter(notifications, this.#nodeSet, call, resource);
    queue.waiter.settings = settings;
    return queue.waiter;
  }

  /** Remembers that the first call was denied, for the errors of calls that never ask. */
  recordDenial(name: string, denied: Round): void {
    const queue = this.#queues.get(name);
    if (queue) queue.latest = denied;
  }

  /**
   * The first call cannot take the lock for now, or has won one of several keys: it leaves the nodes' queues, and the
   * next that waits has a ticket of its own.
   *
   * @param won The round that won the key.
   */
  yield(name: string, won?: Round): void {
    const queue = this.#queues.get(name);
    queue?.waiter?.leave(won);
    if (queue) queue.waiter = undefined;
  }

  /** The client closes: no call is notified any more. */
  close(): void {
    this.#notifications?.close();
  }
}
