/**
 * Who wants what in this process: calls for the same resources stand in line, first in, first out. Only the first
 * asks the nodes; and while this client holds the lock nobody does.
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

/** Stands between the keys of one lock in its name: nothing that is well formed has it. */
const SEPARATOR = "\udc00";

/** Who asks for a lock, or has it: known by its identity alone. */
type Owner = object;

/** One call that waits for those before it. */
interface QueuedCall {
  readonly caller: Owner;
  pause: Pause | undefined;
}

/** The calls for one lock, where there is more than one or one has to wait. */
class LocalQueue {
  owner: Owner;
  /** Who waits behind, first come first. */
  readonly calls: Set<QueuedCall> = new Set();
  /** How this client waits among others. */
  waiter: QueuedWaiter | undefined = undefined;
  /** Whether others stood in line when this client last released the lock. */
  hasWaiters = false;
  /** The last attempt that failed, for those who never come to ask. */
  latest: Round | undefined = undefined;

  constructor(occupant: Owner) {
    this.owner = occupant;
  }
}

/** What all calls for the same keys have in common, in whatever order they name them. */
export function queueKey(keys: readonly string[]): string {
  return keys.length === 1 ? keys[0] : [...keys].sort().join(SEPARATOR);
}

/** All lines of one client. A lock that nobody else wants takes one entry of a map. */
export class LocalQueues {
  readonly #occupied: Map<string, Owner | LocalQueue> = new Map();
  readonly #nodeSet: NodeSet;
  readonly #onEvent: EventListener | undefined;
  readonly #canListen: boolean;
  #notifications: ReleaseNotifications | undefined = undefined;

  /**
   * @param nodeSet Who is asked.
   * @param onEvent Told of nodes that refuse to tell of releases.
   */
  constructor(nodeSet: NodeSet, onEvent: EventListener | undefined) {
    this.#nodeSet = nodeSet;
    this.#onEvent = onEvent;
    this.#canListen = nodeSet.nodes.some(({ subscribe }) => subscribe !== undefined);
  }

  /** Makes `caller` the first, if there is none; says whether it is. */
  enter(name: string, caller: Owner): boolean {
    if (this.#occupied.has(name)) return false;
    this.#occupied.set(name, caller);
    return true;
  }

  /**
   * Waits behind all who came before.
   *
   * @param limitMs The longest wait, in milliseconds.
   * @param signal Gives up.
   * @returns Whether `caller` is first now; else it is no longer in line.
   */
  async wait(
    name: string,
    caller: Owner,
    limitMs: number,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    const line = this.#queue(name);
    const turn = { caller, pause: new Pause(this.#nodeSet.wheel, limitMs, signal) };
    line.calls.add(turn);
    await turn.pause.over;
    return !line.calls.delete(turn);
  }

  /** The last attempt of whoever stood first in that line, and how many clients waited then. */
  latest(name: string): Round | undefined {
    const found = this.#occupied.get(name);
    return found instanceof LocalQueue ? found.latest : undefined;
  }

  /** How many clients stand in line for the lock, as far as it is known. */
  length(name: string): number | undefined {
    const found = this.#occupied.get(name);
    return found instanceof LocalQueue ? found.waiter?.queueLength : undefined;
  }

  /** Whoever asks for a lock, or has it. */
  *owners(): Iterable<Owner> {
    for (const found of this.#occupied.values()) {
      yield found instanceof LocalQueue ? found.owner : found;
    }
  }

  /** The first has the lock now. */
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
   * Whoever was first, or had the lock, is done. The next is first.
   *
   * @param othersWait Whether other clients stand in line, who come before the next of this one.
   */
  leave(name: string, occupant: Owner, othersWait = false): void {
    const found = this.#occupied.get(name);
    if (found === occupant) this.#occupied.delete(name);
    if (!(found instanceof LocalQueue) || found.owner !== occupant) return;
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
   * How the first waits where others were seen to want the same: it lines up behind them before it asks. Else
   * `undefined`, and it asks at once.
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

  /** How the first waits after it was denied. */
  waiter(name: string, keys: readonly string[], settings: Settings): Waiter {
    if (!settings.notify || !this.#canListen) {
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

  /** The first was denied, for those who never come to ask. */
  recordDenial(name: string, denied: Round): void {
    const found = this.#occupied.get(name);
    if (found instanceof LocalQueue) found.latest = denied;
  }

  /** The first does not want the lock for now: what it stands in line for on the nodes is for others. */
  yield(name: string): void {
    const found = this.#occupied.get(name);
    if (!(found instanceof LocalQueue)) return;
    found.waiter?.leave();
    found.waiter = undefined;
  }

  /** The client closes: nobody is woken any more. */
  close(): void {
    this.#notifications?.close();
  }

  /** The line of that name, which somebody stands in already. */
  #queue(name: string): LocalQueue {
    const found = this.#occupied.get(name)!;
    if (found instanceof LocalQueue) return found;
    const line = new LocalQueue(found);
    this.#occupied.set(name, line);
    return line;
  }
}
