/**
 * Hearing of releases: which nodes tell this client of them, and whom in it they concern.
 *
 * @module
 */
import { emit, type EventListener } from "../events.ts";
import type { ReleaseListener } from "../quorum/queue_ticket.ts";
import type { NodeSet } from "../quorum/round.ts";
import type { TimerEntry } from "../time/timer_wheel.ts";

/** How long nodes go on telling though nobody waits, in milliseconds. */
const IDLE_MS = 30_000;
/** How long nodes are waited for at the beginning, in milliseconds. */
const LISTEN_MS_MAX = 1_000;
/** How long the last of them are waited for once a quorum tells, in milliseconds. */
const GRACE_MS = 50;
/** Resources that are remembered as contended; the oldest is forgotten for one more. */
const CONTENDED_MAX = 4_096;
/** Characters of a client's id. */
const ID_LENGTH = 20;

/** Whoever waits to be woken. */
export interface NotificationHandler {
  /** A key it waits for may be free on a node; says whether it still stands there under that entry, and wants it. */
  onWake(nodeIndex: number, entry: string): boolean;
  /** Another node tells from now on, or one no longer does. */
  onSubscriptionChange(): void;
}

/** One client's ear for all its nodes. Nothing is opened before somebody has to wait. */
export class ReleaseNotifications implements ReleaseListener {
  readonly id: string;
  readonly #nodeSet: NodeSet;
  readonly #onEvent: EventListener | undefined;
  readonly #handlers: Map<string, NotificationHandler> = new Map();
  readonly #contended: Set<string> = new Set();
  #numbers = 0;
  #open = false;
  #closed = false;
  /** One bit a seat: the nodes that tell, that cannot at the moment, and that never will. */
  #subscribed = 0;
  #unsubscribed = 0;
  #unsupported = 0;
  /** Whether those that have not begun by now are waited for no longer. */
  #graceOver = false;
  #grace: TimerEntry | undefined = undefined;
  #idle: TimerEntry | undefined = undefined;

  /**
   * @param nodeSet Whose nodes tell.
   * @param onEvent Told of nodes that refuse to.
   */
  constructor(nodeSet: NodeSet, onEvent: EventListener | undefined) {
    this.#nodeSet = nodeSet;
    this.#onEvent = onEvent;
    this.id = nodeSet.wheel.random.value().slice(0, ID_LENGTH);
    nodeSet.nodes.forEach(({ subscribe }, nodeIndex) => {
      if (!subscribe) this.#unsupported |= 1 << nodeIndex;
    });
  }

  /** Whether the client was closed. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Whether so many nodes tell that no release goes unheard: whoever holds a lock holds it on one of them. */
  get hasQuorum(): boolean {
    return bitCount(this.#subscribed) >= this.#nodeSet.quorum;
  }

  /** Whether it is worth waiting for more nodes than tell by now. */
  get isReady(): boolean {
    const { length } = this.#nodeSet.nodes;
    const known = this.#subscribed | this.#unsubscribed | this.#unsupported;
    return bitCount(known) === length || this.#graceOver || this.#closed;
  }

  /** Gives a sleeper its number, and has the nodes tell. */
  enter(handler: NotificationHandler): string {
    const number = (++this.#numbers).toString(36);
    this.#handlers.set(number, handler);
    if (this.#idle) this.#nodeSet.wheel.cancel(this.#idle);
    this.#idle = undefined;
    if (!this.#open && !this.#closed) this.#begin();
    return number;
  }

  /** The sleeper with this number waits no longer. */
  leave(number: string): void {
    this.#handlers.delete(number);
    if (this.#handlers.size > 0 || !this.#open || this.#closed) return;
    this.#idle ??= this.#nodeSet.wheel.after(IDLE_MS, () => this.#end());
  }

  /** Remembers that others want what this line is about. */
  noteContended(line: string): void {
    if (this.#contended.has(line)) return;
    this.#contended.add(line);
    if (this.#contended.size <= CONTENDED_MAX) return;
    for (const oldest of this.#contended) {
      this.#contended.delete(oldest);
      break;
    }
  }

  /** Whether others wanted it lately: then whoever asks for it lines up at once. */
  expectsContention(line: string): boolean {
    return this.#contended.has(line);
  }

  /** The client closes, and its nodes with it. */
  close(): void {
    this.#closed = true;
    this.#subscribed = 0;
  }

  onSubscribed(nodeIndex: number): void {
    if (!this.#open || this.#closed) return;
    this.#subscribed |= 1 << nodeIndex;
    this.#unsubscribed &= ~(1 << nodeIndex);
    if (bitCount(this.#subscribed) === this.#nodeSet.quorum) this.#waitNoLongerThan(GRACE_MS);
    this.#announce();
  }

  onUnsubscribed(nodeIndex: number): void {
    if (!this.#open) return;
    this.#subscribed &= ~(1 << nodeIndex);
    this.#unsubscribed |= 1 << nodeIndex;
    this.#announce();
  }

  onUnsupported(nodeIndex: number, error: Error): void {
    const told = this.#unsupported & 1 << nodeIndex;
    this.#subscribed &= ~(1 << nodeIndex);
    this.#unsupported |= 1 << nodeIndex;
    const node = this.#nodeSet.nodes[nodeIndex].name;
    if (!told && this.#onEvent) emit(this.#onEvent, { type: "notify-refused", node, error });
    this.#announce();
  }

  onReleased(nodeIndex: number, entry: string, key: string): void {
    const [, number] = entry.split(":", 2);
    // Whoever has left since, or waits anew: those who stand behind its place must hear of it.
    const wanted = this.#handlers.get(number)?.onWake(nodeIndex, entry);
    if (!wanted) this.#nodeSet.nodes[nodeIndex].leaveQueue?.([key], entry);
  }

  #begin(): void {
    this.#open = true;
    this.#waitNoLongerThan(LISTEN_MS_MAX);
    this.#nodeSet.nodes.forEach((node, nodeIndex) => {
      if (!(this.#unsupported & 1 << nodeIndex)) node.subscribe!(this, nodeIndex);
    });
  }

  #waitNoLongerThan(delayMs: number): void {
    const { wheel } = this.#nodeSet;
    if (this.#graceOver) return;
    if (this.#grace) wheel.cancel(this.#grace);
    this.#grace = wheel.after(delayMs, () => {
      const { isReady } = this;
      this.#graceOver = true;
      if (!isReady) this.#announce();
    });
  }

  #end(): void {
    this.#open = this.#graceOver = false;
    this.#idle = undefined;
    this.#subscribed = this.#unsubscribed = 0;
    if (this.#grace) this.#nodeSet.wheel.cancel(this.#grace);
    this.#contended.clear();
    for (const node of this.#nodeSet.nodes) node.unsubscribe?.();
  }

  #announce(): void {
    for (const handler of [...this.#handlers.values()]) handler.onSubscriptionChange();
  }
}

/** How many bits of a set of seats are set. */
export function bitCount(bits: number): number {
  let count = 0;
  for (let rest = bits; rest !== 0; rest &= rest - 1) count++;
  return count;
}
