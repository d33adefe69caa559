/**
 * Notifications of releases: which nodes send them to this client, and which of its waiters they
 * are for.
 *
 * @module
 */
import { setLatest } from "../bounded_map.ts";
import { emit, type EventListener } from "../events.ts";
import type { QueueMessage, ReleaseListener, TimeReading } from "../quorum/queue_ticket.ts";
import { bitCount, type NodeSet } from "../quorum/quorum_node.ts";
import type { TimerEntry } from "../time/timer_wheel.ts";
import { SharedClock } from "./shared_clock.ts";

/** How long subscriptions stay though nobody waits, in milliseconds. */
const IDLE_MS = 30_000;
/** How long callers wait at most while nodes subscribe, in milliseconds. */
const SUBSCRIBE_MS_MAX = 1_000;
/** How long they wait for the last nodes once a quorum is subscribed, in milliseconds. */
const SUBSCRIBE_GRACE_MS = 50;
/**
 * Tickets that are remembered after they have left, to be taken out where they come back; the
 * oldest is forgotten.
 */
const LEFT_MAX = 1_024;
/** For how long a node that was asked to take out a ticket is not asked again, in milliseconds. */
const LEAVE_AGAIN_MS = 1_000;
/** Hexadecimal digits of a client's id. */
const ID_LENGTH = 16;

/** Who waits with a ticket. */
export interface TicketListener {
  /** See {@linkcode ReleaseListener}. */
  onQueueMessage(nodeIndex: number, message: QueueMessage): void;
  /** The nodes that are subscribed have changed, or whether callers wait for more of them. */
  onSubscriptionChange(): void;
}

/** A ticket that has left. */
interface LeftTicket {
  readonly keys: readonly string[];
  /** Node by node, when the node may be asked again to take it out, by the monotonic clock. */
  readonly againMs: number[];
}

/** The notifications of all nodes of one client. Nothing is opened before a caller has to wait. */
export class ReleaseNotifications implements ReleaseListener {
  readonly id: string;
  /** The clock by which tickets are ordered. */
  readonly clock: SharedClock;
  readonly #nodeSet: NodeSet;
  readonly #onEvent: EventListener | undefined;
  readonly #waiters: Map<string, TicketListener> = new Map();
  readonly #left: Map<string, LeftTicket> = new Map();
  #numbers = 0;
  /** Whether it has subscribed, though no node may have confirmed that. */
  #open = false;
  /** One bit a node: those that send notifications now. */
  #subscribed = 0;
  /** Those that callers wait for, because they have not said yet whether they will send them. */
  #subscribing = 0;
  /** Those that refuse to, or never can. */
  #refused = 0;
  /** Ends the wait of callers for nodes that are subscribing. */
  #grace: TimerEntry | undefined;
  #idle: TimerEntry | undefined;

  /**
   * @param nodeSet The nodes.
   * @param onEvent Gets an event for each node that refuses notifications.
   */
  constructor(nodeSet: NodeSet, onEvent: EventListener | undefined) {
    this.#nodeSet = nodeSet;
    this.#onEvent = onEvent;
    this.id = nodeSet.wheel.random.value().slice(0, ID_LENGTH);
    this.clock = new SharedClock(nodeSet.wheel.clock);
    nodeSet.nodes.forEach(({ subscribe }, nodeIndex) => {
      if (!subscribe) this.#refused |= 1 << nodeIndex;
    });
  }

  /**
   * Whether a quorum of nodes sends notifications. Any lock is held on one of them, so no release
   * is missed.
   */
  get hasQuorum(): boolean {
    return bitCount(this.#subscribed) >= this.#nodeSet.quorum;
  }

  /** Whether nodes are subscribing that are worth waiting for. */
  get isSubscribing(): boolean {
    return this.#subscribing !== 0;
  }

  /** Whether a node sends notifications now. */
  isSubscribed(nodeIndex: number): boolean {
    return (this.#subscribed & 1 << nodeIndex) !== 0;
  }

  /** The number of a new ticket. */
  newNumber(): number {
    return ++this.#numbers;
  }

  /**
   * Notifies this waiter of what is for the ticket of this name from now on, in place of the one
   * before it. Subscribes if it is the first.
   */
  register(name: string, waiter: TicketListener): void {
    this.#waiters.set(name, waiter);
    this.#nodeSet.wheel.cancel(this.#idle);
    this.#idle = undefined;
    if (!this.#open) this.#subscribe();
  }

  /** The waiter of this name waits for the keys no longer. */
  unregister(name: string, keys: readonly string[]): void {
    this.#waiters.delete(name);
    setLatest(this.#left, name, { keys, againMs: [] }, LEFT_MAX);
    if (this.#waiters.size > 0 || this.#nodeSet.closed) return;
    this.#idle ??= this.#nodeSet.wheel.after(IDLE_MS, () => this.#unsubscribe());
  }

  onSubscribed(nodeIndex: number, reading?: TimeReading): void {
    if (!this.#open || this.#nodeSet.closed) return;
    if (reading) this.clock.note(nodeIndex, reading);
    this.#subscribed |= 1 << nodeIndex;
    if (bitCount(this.#subscribed) === this.#nodeSet.quorum) this.#limitWait(SUBSCRIBE_GRACE_MS);
    this.#waitNoLonger(1 << nodeIndex);
  }

  onUnsubscribed(nodeIndex: number): void {
    const bit = 1 << nodeIndex;
    this.#subscribed &= ~bit;
    this.#waitNoLonger(bit);
  }

  onRefused(nodeIndex: number, error: Error): void {
    const bit = 1 << nodeIndex;
    const isKnown = this.#refused & bit;
    this.#refused |= bit;
    this.onUnsubscribed(nodeIndex);
    const node = this.#nodeSet.nodes[nodeIndex].name;
    if (!isKnown) emit(this.#onEvent, { type: "notify-refused", node, error });
  }

  /**
   * A ticket that has left may be in a queue all the same: a server that hung executed late what
   * had put it there. So the node is asked to take it out, which passes the notification on. For a
   * second it is not asked again: a pool's ticket that has just left may get one for each key.
   */
  onQueueMessage(nodeIndex: number, message: QueueMessage): void {
    const { name, ticketId } = message;
    const waiter = this.#waiters.get(name);
    if (waiter) return waiter.onQueueMessage(nodeIndex, message);
    const left = this.#left.get(name);
    const { nodes, wheel: { clock } } = this.#nodeSet;
    const nowMs = clock.monotonicMs();
    if (!left || nowMs < (left.againMs[nodeIndex] ?? 0)) return;
    left.againMs[nodeIndex] = nowMs + LEAVE_AGAIN_MS;
    nodes[nodeIndex].leaveQueue?.(left.keys, ticketId);
  }

  #subscribe(): void {
    const { nodes } = this.#nodeSet;
    this.#open = true;
    this.#subscribing = 2 ** nodes.length - 1 & ~this.#refused;
    this.#limitWait(SUBSCRIBE_MS_MAX);
    nodes.forEach((node, nodeIndex) => node.subscribe?.(this, nodeIndex));
  }

  /** From now on, callers wait no longer than this for nodes that are subscribing. */
  #limitWait(delayMs: number): void {
    const { wheel } = this.#nodeSet;
    wheel.cancel(this.#grace);
    this.#grace = wheel.after(delayMs, () => {
      if (this.isSubscribing) this.#waitNoLonger(this.#subscribing);
    });
  }

  #unsubscribe(): void {
    this.#open = false;
    this.#idle = undefined;
    this.#subscribed = this.#subscribing = 0;
    for (const node of this.#nodeSet.nodes) node.unsubscribe?.();
  }

  /** Nobody waits for these nodes any more; waiters look at which are subscribed. */
  #waitNoLonger(nodes: number): void {
    this.#subscribing &= ~nodes;
    for (const waiter of [...this.#waiters.values()]) waiter.onSubscriptionChange();
  }
}
