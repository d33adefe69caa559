/**
 * Waiting to be notified: this client's ticket in the queues of all clients for one lock.
 *
 * A notification is a hint and never more. The waiter also asks again when so many of the keys in its way have expired
 * that a quorum is possible, when the first in the queue was notified and does not use its turn, when too few nodes can
 * notify it, and, ever more rarely, when nothing happens.
 *
 * @module
 */
import type { ContendedResource } from "./contended_resource.ts";
import {
  bitCount,
  type NotificationHandler,
  type ReleaseNotifications,
} from "./release_notifications.ts";
import {
  type NotifiedFirst,
  POOL_SUFFIX,
  type QueueNotice,
  type QueuePosition,
  type QueuePriority,
  type QueueTicket,
} from "../quorum/queue_ticket.ts";
import type { Settings } from "../options.ts";
import type { NodeSet, Round } from "../quorum/round.ts";
import { Pause } from "../time/pause.ts";
import type { Random } from "../time/random.ts";
import { pollingDelayMs } from "./polling.ts";
import * as queues from "./queue_positions.ts";
import type { Waiter } from "./waiter.ts";
import { WatchedFirsts } from "./watched_firsts.ts";

/** For how many round trips others wait for this client when it is the first, beside the least patience. */
const PATIENCE_FACTOR = 4;
/** The least and the greatest patience, in milliseconds. */
const PATIENCE_MS_MIN = 50;
const PATIENCE_MS_MAX = 1_000;
/** By how much longer each wait is than the one before if the vote was split. */
const SPLIT_FACTOR = 4;
/** How long at least the first in the queue waits before it asks though nothing has happened, in milliseconds. */
const IDLE_MS_MIN = 500;
/** Longest wait without asking, in milliseconds: well below the life of a queue. */
const IDLE_MS_MAX = 60_000;
/** By how much later each asks for each ticket ahead of it, in milliseconds, when a key expires. */
const STAGGER_MS = 20;
/** By how much later at most it overtakes because of that, in milliseconds. */
const STAGGER_MS_MAX = 200;
/** Shortest wait for the other nodes' notifications, in milliseconds. */
const GRACE_MS_MIN = 2;
/** The longest round trip that is believed, in milliseconds: one that took longer was held up. */
const ROUND_TRIP_MS_MAX = 100;
/** How many round trips pass between two polls while subscriptions are being made; doubled each time. */
const POLL_FACTOR = 8;
/** The longest round trip that counts for that, in milliseconds: a client that connects is busy, and the nodes are not. */
const POLL_ROUND_TRIP_MS_MAX = 5;
/** Within what time all waiters ask once after a quorum of nodes can notify them again, in milliseconds; doubled each time. */
const RECOVERY_MS = 50;

/** Waits in the queues, for one caller after another. */
export class QueuedWaiter implements QueueTicket, Waiter, NotificationHandler {
  ticketId = "";
  stuck: readonly string[] = [];
  priority: QueuePriority = "in-order";
  /** See {@linkcode QueueTicket}; 0 until the ticket is first sent. */
  score = 0;
  notified = false;
  /** Only with a pool: see {@linkcode Waiter}; and the keys that are free for the ticket, and for the first alone. */
  place: number | undefined = undefined;
  #notifiedPlace: number | undefined = undefined;
  /** The settings of the call that waits. */
  settings!: Settings;
  readonly #notifications: ReleaseNotifications;
  readonly #nodeSet: NodeSet;
  readonly #keys: readonly string[];
  readonly #resource: ContendedResource;
  readonly #pooled: boolean;
  /** Where the ticket stands, node by node, as far as is known. */
  readonly #positions: (QueuePosition | undefined)[] = [];
  /** When a node last answered where it stands, by the monotonic clock. */
  #positionsMs = 0;
  /** One bit a node: those that have the ticket in their queues and can notify it. */
  #queuedOn = 0;
  /** One bit a node: those that could notify the ticket when it last asked. */
  #askedOn = 0;
  /** One bit a node: those that notified the ticket since it last asked. */
  #notifiedOn = 0;
  /** When to ask, by the monotonic clock: because of a notification, and otherwise. */
  #notifiedMs = Infinity;
  #askMs = Infinity;
  readonly #firsts: WatchedFirsts;
  /** Plans the next ask again, while too few nodes have answered the last one. */
  #planAgain: (() => void) | undefined = undefined;
  /** Whether the last ask followed a notification, and was denied. */
  #notifiedAndDenied = false;
  /** How long the slowest node took to answer last, in milliseconds. */
  #roundTripMs = 0;
  /** How often in a row: the vote was split; nothing happened; a quorum of nodes could notify again. */
  #splits = 0;
  #idles = 0;
  #recoveries = 0;
  #pause: Pause | undefined = undefined;
  /** The ticket's id without the patience. */
  #name = "";
  /** Whether the ticket may be in a queue, whether its client has the lock, and whether it has one key of a pool. */
  #stands = false;
  #parked = true;
  #left = false;

  constructor(
    notifications: ReleaseNotifications,
    nodeSet: NodeSet,
    keys: readonly string[],
    resource: ContendedResource,
    pooled: boolean,
  ) {
    this.#resource = resource;
    this.#pooled = pooled;
    this.#notifications = notifications;
    this.#nodeSet = nodeSet;
    this.#firsts = new WatchedFirsts(nodeSet.quorum);
    this.#keys = keys;
    this.requeue();
  }

  /** How many clients are in the queue, this one included; `undefined` if no node has reported it. */
  get queueLength(): number | undefined {
    return queues.lengthOf(this.#positions);
  }

  /** How long the keys live that are in the way, in milliseconds, as the last answers said; `undefined` if they did not. */
  get remainingMs(): number | undefined {
    return queues.remainingMsOf(this.#positions, this.#nowMs - this.#positionsMs);
  }

  /** The value of the keys in the way, if a node has reported it. */
  get holderValue(): string | undefined {
    return this.#positions.find((position) => position?.value)?.value;
  }

  nextTicket(): QueueTicket | undefined {
    this.#notifiedOn = 0;
    const { subscribed, clock } = this.#notifications;
    this.#askedOn = subscribed;
    if (subscribed !== 0) this.#stands = true;
    if (!this.#stands) return undefined;
    if (this.score === 0) {
      this.score = Math.round(clock.at(this.#nowMs) * 1_000);
      const patienceMs = Math.round(PATIENCE_MS_MIN + PATIENCE_FACTOR * clock.distanceMs);
      this.#nameTicket(`:${Math.min(patienceMs, PATIENCE_MS_MAX)}`);
    }
    return this;
  }

  async ready(limitMs: number, signal: AbortSignal | undefined): Promise<void> {
    const dueMs = () => this.#notifications.isReady ? this.#resource.sharedUntilMs : Infinity;
    await this.#sleepUntil(dueMs, limitMs, signal);
  }

  async wait(
    attempt: number,
    limitMs: number,
    signal: AbortSignal | undefined,
    denied: Round,
  ): Promise<void> {
    this.#roundTripMs = Math.min(denied.slowestMs, ROUND_TRIP_MS_MAX);
    this.#notifiedAndDenied = this.notified;
    this.priority = "in-order";
    this.notified = false;
    this.#notifiedMs = Infinity;
    if (this.#notifiedOn !== 0) this.#planNotified();
    this.#askMs = this.#planAsk(attempt, denied);
    const dueMs = () => {
      const notifiedMs = Math.max(this.#notifiedMs, this.#resource.sharedUntilMs);
      return Math.min(notifiedMs, this.#askMs, this.#firsts.dueMs);
    };
    await this.#sleepUntil(dueMs, limitMs, signal);
    this.#planAgain?.(); // grants may have come since, of which no node reports to the ticket
    this.#planAgain = undefined;
    this.notified = this.#notifiedOn !== 0;
    if (!this.notified) this.#overtake();
    this.place = this.notified ? this.#notifiedPlace : this.#firsts.place;
  }

  onEnqueued(nodeIndex: number, position: QueuePosition, sentMs: number, receivedMs: number): void {
    if (this.#left) return this.#leaveNode(nodeIndex); // it had won another node's key by then
    const { clock, subscribed } = this.#notifications;
    const { timeMs } = position;
    if (timeMs !== undefined) clock.read(nodeIndex, { timeMs, sentMs, receivedMs });
    this.#queuedOn |= subscribed & 1 << nodeIndex;
    this.#positions[nodeIndex] = position;
    this.#positionsMs = receivedMs;
    this.#planAgain?.();
  }

  onReleased(nodeIndex: number, notice: QueueNotice, first?: NotifiedFirst, place?: number): void {
    if (this.#parked) return; // the lock is this client's: its release takes the ticket out and notifies the next
    const bit = 1 << nodeIndex;
    if (notice === "first") {
      if (this.#notifiedOn === 0) {
        this.#resource.share(this.#nowMs, this.#random);
        this.#notifiedPlace = place;
      }
      this.#notifiedOn |= bit;
      this.#idles = this.#recoveries = 0;
      if (this.#pause) this.#planNotified();
    } else if (!this.#firsts.watches(place)) {
      return;
    } else if (notice === "taken") {
      this.#firsts.onTaken(nodeIndex);
    } else if (first) {
      const shareMs = this.#resource.shareMsMax(this.#nowMs);
      this.#firsts.onNotified(nodeIndex, first, this.#nowMs, shareMs);
    }
    this.#pause?.end();
  }

  onSubscriptionChange(): void {
    const { subscribed, hasQuorum, isReady } = this.#notifications;
    this.#queuedOn &= subscribed;
    // Who is in the queues of a quorum of nodes misses no release: whatever else changes is no reason to ask.
    if (!this.#pause || bitCount(this.#queuedOn) >= this.#nodeSet.quorum) return;
    if (hasQuorum && isReady) {
      const withinMs = this.#stands ? RECOVERY_MS * 2 ** this.#recoveries++ : 0;
      this.#askMs = Math.min(this.#askMs, this.#nowMs + this.#random.fraction() * withinMs);
    } else if (this.#stands) {
      const delayMs = pollingDelayMs(this.#nodeSet.wheel, this.settings, 0);
      this.#askMs = Math.min(this.#askMs, this.#nowMs + delayMs);
    }
    this.#pause.end();
  }

  /** The lock is this client's, until {@linkcode requeue}. */
  park(): void {
    this.#parked = true;
    this.#firsts.clear();
    this.#resource.noteWon(this.#nowMs);
    this.#stands = false;
    this.#queuedOn = 0;
  }

  /** Another caller waits now: in the place of one that gave up, or behind all who wait if the client had the lock. */
  requeue(): void {
    if (this.#parked) {
      const last = this.#name;
      this.#name = this.#notifications.enter(this);
      this.#nameTicket("");
      if (last !== "") {
        this.#notifications.leave(last, this.#keys);
        this.#resource.noteEnded(this.#nowMs, this.#random);
      }
      this.score = 0;
    }
    this.#parked = this.notified = false;
    this.#splits = this.#idles = this.#recoveries = 0;
    this.priority = "in-order";
  }

  /**
   * Nobody here waits any more.
   *
   * @param won The round that won a key of the pool, if it did: nodes that granted took the ticket out, and those that
   *   have not answered yet do so, or report it.
   */
  leave(won?: Round): void {
    if (this.#parked) this.#resource.noteEnded(this.#nowMs, this.#random);
    this.#notifications.leave(this.#name, this.#keys);
    this.#left = won !== undefined;
    if (!this.#stands) return;
    this.#nodeSet.nodes.forEach((_, nodeIndex) => {
      if (!won?.grantedBy(nodeIndex) && !won?.pendingOn(nodeIndex)) this.#leaveNode(nodeIndex);
    });
  }

  #leaveNode(nodeIndex: number): void {
    this.#nodeSet.nodes[nodeIndex].leaveQueue?.(this.#keys, this.ticketId);
  }

  #nameTicket(patience: string): void {
    this.ticketId = this.#name + patience + (this.#pooled ? POOL_SUFFIX : "");
  }

  /** Sleeps until a time that may change each time that something happens. */
  async #sleepUntil(
    dueMs: () => number,
    limitMs: number,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const endMs = this.#nowMs + limitMs;
    for (;;) {
      const leftMs = Math.min(dueMs(), endMs) - this.#nowMs;
      if (leftMs <= 0 || signal?.aborted || this.#notifications.closed) return;
      this.#pause = new Pause(this.#nodeSet.wheel, leftMs, signal);
      await this.#pause.over;
      this.#pause = undefined;
    }
  }

  /**
   * Asks at the first notification: the other nodes were asked to release at the same time, and have done so before
   * this client's request reaches them. If that did not win the lock, several clients asked at once: then it waits for
   * more of the other nodes, or for a time that differs from client to client.
   */
  #planNotified(): void {
    const { quorum } = this.#nodeSet;
    const enough = this.#notifiedAndDenied ? Math.min(quorum, bitCount(this.#queuedOn)) : 1;
    const delayMs = bitCount(this.#notifiedOn) >= enough ? 0 : this.#graceMs();
    this.#notifiedMs = Math.min(this.#notifiedMs, this.#nowMs + delayMs);
  }

  /** When to ask after an attempt though nothing happens, by the monotonic clock. May plan to overtake the first, too. */
  #planAsk(attempt: number, denied: Round): number {
    const { hasQuorum, isReady } = this.#notifications;
    const { quorum } = this.#nodeSet;
    const isQueued = bitCount(this.#queuedOn) >= quorum;
    // A release between the first denial and the subscription notifies nobody.
    if (!isReady && !isQueued) {
      return this.#nowMs + this.#graceMs(POLL_ROUND_TRIP_MS_MAX) * POLL_FACTOR * 2 ** attempt;
    }
    const pollMs = this.#nowMs + pollingDelayMs(this.#nodeSet.wheel, this.settings, attempt);
    if (denied.unanswered) return pollMs;
    if (hasQuorum && !isQueued && bitCount(this.#askedOn) < quorum) return this.#nowMs;
    const livesMs = queues.livesMsOf(this.#positions, denied);
    if (livesMs.length >= quorum) {
      const askMs = this.#planUnnotified(denied, livesMs[quorum - 1]);
      return hasQuorum ? askMs : Math.min(askMs, pollMs);
    }
    // If the round was decided early, the other nodes' answers are on their way.
    this.#planAgain = () => {
      this.#planAgain = undefined;
      this.#askMs = this.#planAsk(attempt, denied);
      this.#pause?.end();
    };
    return pollMs + this.#graceMs();
  }

  /**
   * @param denied The attempt, which put the ticket in queues.
   * @param freeInMs When a quorum of nodes should have nothing in the way, from now, in milliseconds.
   */
  #planUnnotified(denied: Round, freeInMs: number): number {
    const positions = queues.answersTo(denied, this.#positions);
    const ahead = Math.max(0, ...positions.map((position) => position.ahead));
    // mutation: scores-stay-apart
    this.score = queues.agreedScore(positions, this.score, denied.granted, this.#nodeSet.quorum);
    const { retryDelayMaxMs } = this.settings;
    const idleMs = Math.max(retryDelayMaxMs, IDLE_MS_MIN) * 2 ** this.#idles++ * (1 + ahead);
    let delayMs = Math.min(idleMs, IDLE_MS_MAX) * (1 + this.#random.fraction()) / 2;
    // Contenders may have split the vote, so that nobody has the lock; or somebody has it by a bare quorum.
    const split = denied.granted > 0 || freeInMs === 0 && ahead === 0;
    this.#splits = split ? this.#splits + 1 : 0;
    if (split) delayMs = Math.min(delayMs, this.#graceMs() * SPLIT_FACTOR ** this.#splits);
    const foreign = positions.some((position) => position.foreign);
    this.#resource.noteHolder(foreign, this.#nowMs);
    if (foreign && ahead === 0) {
      delayMs = Math.min(delayMs, this.#foreignDelayMs(freeInMs));
    }
    if (freeInMs > 0) {
      delayMs = Math.min(delayMs, freeInMs + STAGGER_MS * ahead);
    } else if (ahead > 0) {
      const moreMs = Math.min(STAGGER_MS * (ahead - 1), STAGGER_MS_MAX) +
        this.#resource.shareMsMax(this.#nowMs);
      for (const { first, kept } of positions) {
        if (first && this.#firsts.watches(kept)) this.#firsts.watch(first, this.#nowMs, moreMs);
      }
    }
    // mutation: unnotified-waiter-never-asks
    return this.#nowMs + delayMs;
  }

  /** Has the next ask overtake the firsts that have not used their turn in time. */
  #overtake(): void {
    this.stuck = this.#firsts.overdue(this.#nowMs);
    if (this.stuck.length > 0) this.priority = "overdue";
  }

  /** A client of another library has the lock, and will notify nobody. */
  #foreignDelayMs(freeInMs: number): number {
    const { retryDelayMs } = this.settings;
    return this.#resource.pollMsMax(this.#nowMs, freeInMs, retryDelayMs) * this.#random.fraction();
  }

  /** Half a round trip to one and a half, in milliseconds: a notification is on its way, or will not come. */
  #graceMs(maxMs = Infinity): number {
    const roundTripMs = Math.min(this.#roundTripMs, maxMs);
    return Math.max(GRACE_MS_MIN, roundTripMs) * (0.5 + this.#random.fraction());
  }

  get #nowMs(): number {
    return this.#nodeSet.wheel.clock.monotonicMs();
  }

  get #random(): Random {
    return this.#nodeSet.wheel.random;
  }
}
