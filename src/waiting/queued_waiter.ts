/**
 * Waiting to be woken: this client's stand in the line of all clients for one lock.
 *
 * A wake-up is a hint and never more. Whoever waits asks again, too, when so many of the keys in its way have run out
 * that a quorum is possible, when the nodes no longer tell, and when its own time is over.
 *
 * @module
 */
import {
  bitCount,
  type NotificationHandler,
  type ReleaseNotifications,
} from "./release_notifications.ts";
import type { QueuePosition, QueuePriority, QueueTicket } from "../quorum/queue_ticket.ts";
import type { Settings } from "../options.ts";
import type { NodeSet, Round } from "../quorum/round.ts";
import { Pause } from "../time/pause.ts";
import { pollingDelayMs } from "./polling.ts";
import type { Waiter } from "./waiter.ts";

/** By how much longer each wait is than the one before where contenders split the vote. */
const SPLIT_FACTOR = 4;
/** Shortest time, in milliseconds, for which the first in line trusts that it is woken. */
const TRUST_MS_MIN = 500;
/** Longest time without asking, in milliseconds: well below that for which a list of waiters lives. */
const ASK_MS_MAX = 60_000;
/** By how much later each asks who stands one place further back, in milliseconds, when a key runs out unreleased. */
const STAGGER_MS = 20;
/** Shortest wait for the other nodes to tell once one has, in milliseconds. */
const GRACE_MS_MIN = 2;
/** How many of its own round trips one waits for those before it, who were told that the key is free. */
const PATIENCE_FACTOR = 10;
/** The least of that, in milliseconds. */
const PATIENCE_MS_MIN = 50;
/** What a round trip is held to take at the most, in milliseconds: one that took longer was held up. */
const ROUND_TRIP_MS_MAX = 200;
/** Within what time all ask once after a node tells again, in milliseconds. */
const RECOVERY_MS = 50;

/** Waits in line, for one caller after another. */
export class QueuedWaiter implements QueueTicket, Waiter, NotificationHandler {
  ticketId = "";
  priority: QueuePriority = "last";
  readonly #notifications: ReleaseNotifications;
  readonly #number: string;
  readonly #nodeSet: NodeSet;
  /** The settings of the call that asks. */
  settings!: Settings;
  readonly #keys: readonly string[];
  /** Where it stands, seat by seat, as far as it was told. */
  readonly #places: (QueuePosition | undefined)[] = [];
  /** One bit a seat: which nodes have put it in line since it last left. */
  #queued = 0;
  /** Whether it may stand in line anywhere. */
  #stands = false;
  /** One bit a seat: which nodes have woken it since it last asked. */
  #woken = 0;
  /** Whether it was woken when it last asked, and whether it was denied all the same. */
  #askedWoken = false;
  #inVain = false;
  /** How often in a row some nodes granted, but too few. */
  #splits = 0;
  /** Whether a node told anew while it asked. */
  #changed = false;
  /** How many stood before it at the least when it found the key free in vain. */
  #stuckBehind: number | undefined = undefined;
  /** How long the slowest node took to answer last, in milliseconds. */
  #slowestMs = 0;
  #pause: Pause | undefined = undefined;
  /** Whether it waits for nodes to begin to tell. */
  #listens = false;
  #parked = false;

  constructor(notifications: ReleaseNotifications, nodeSet: NodeSet, keys: readonly string[]) {
    this.#notifications = notifications;
    this.#nodeSet = nodeSet;
    this.#keys = keys;
    this.#number = notifications.enter(this);
    this.requeue();
  }

  next(): QueueTicket | undefined {
    const nodes = bitCount(this.#woken);
    this.#woken = 0;
    this.#changed = false;
    this.#askedWoken = this.woken;
    // One node that tells may be alone in taking it for the next: where it is, the line decides.
    if (this.woken && !this.#inVain && nodes < this.#nodeSet.quorum) this.priority = "last";
    if (!this.#notifications.hasQuorum) return undefined;
    this.#stands = true;
    return this;
  }

  get woken(): boolean {
    return this.priority === "woken";
  }

  /** How many clients stand in line, itself included; `undefined` where no node has told. */
  get queueLength(): number | undefined {
    let longest: number | undefined;
    for (const place of this.#places) {
      if (place) longest = Math.max(longest ?? 0, place.length);
    }
    return longest;
  }

  onEnqueued(nodeIndex: number, place: QueuePosition): void {
    this.#queued |= 1 << nodeIndex;
    this.#places[nodeIndex] = place;
  }

  /** Resolves once the nodes tell of releases, or will not for the time being. */
  async ready(limitMs: number, signal: AbortSignal | undefined): Promise<void> {
    if (this.#notifications.isReady) return;
    this.#listens = true;
    await this.#sleep(limitMs, signal);
  }

  async wait(
    attempt: number,
    limitMs: number,
    signal: AbortSignal | undefined,
    denied: Round,
  ): Promise<void> {
    this.#listens = !this.#notifications.isReady;
    const delayMs = this.#delayMs(denied);
    if (delayMs !== undefined) return await this.#sleep(Math.min(delayMs, limitMs), signal);
    // Too few have said how it stands. Where that was because the round was decided without them, they soon will.
    const graceMs = Math.min(this.#graceMs(), limitMs);
    await this.#sleep(graceMs, signal);
    if (this.woken || this.#notifications.closed) return;
    const laterMs = this.#delayMs(denied) ??
      pollingDelayMs(this.#nodeSet.wheel, this.settings, attempt);
    await this.#sleep(Math.min(laterMs, limitMs - graceMs), signal);
  }

  onWake(nodeIndex: number, entry: string): boolean {
    if (this.#parked || entry !== this.ticketId) return false;
    this.#woken |= 1 << nodeIndex;
    const pause = this.#pause;
    if (!pause) return true; // it asks just now, and will look when it is denied
    this.priority = "woken";
    if (this.#wokenUp) pause.end();
    else pause.shorten(this.#graceMs());
    return true;
  }

  onSubscriptionChange(): void {
    const pause = this.#pause;
    if (!pause) {
      this.#changed = true;
      return;
    }
    if (this.#listens) {
      if (this.#notifications.isReady) pause.end();
    } else if (this.#queued !== 0) {
      // Where too few tell it has to poll; where one tells anew it may have missed something.
      pause.shorten(this.#notifications.hasQuorum ? this.#fraction() * RECOVERY_MS : 0);
    }
  }

  /** The lock is this client's: until {@linkcode requeue}, whatever wakes it is for others. */
  park(): void {
    this.#parked = true;
    this.#stands = false;
    this.#queued = this.#woken = 0;
  }

  /** Another caller wants it now: in the place of one that gave up, or behind all who wait by now. */
  requeue(): void {
    if (this.#parked || this.ticketId === "") {
      this.ticketId =
        `${this.#notifications.id}:${this.#number}:${this.#nodeSet.wheel.clock.wallMs()}`;
    }
    this.#parked = false;
    this.priority = "last";
    this.#stuckBehind = undefined;
  }

  /** Nobody here waits any more. */
  leave(): void {
    this.#notifications.leave(this.#number);
    if (!this.#stands) return;
    this.#nodeSet.nodes.forEach((node) => {
      node.leaveQueue?.(this.#keys, this.ticketId);
    });
  }

  async #sleep(limitMs: number, signal: AbortSignal | undefined): Promise<void> {
    if (limitMs <= 0) return;
    this.#pause = new Pause(this.#nodeSet.wheel, limitMs, signal);
    await this.#pause.over;
    this.#pause = undefined;
  }

  /**
   * For how long it waits after it was denied, in milliseconds, and with what claim it asks then; `undefined` where
   * nothing is known that it could wait for.
   */
  #delayMs(denied: Round): number | undefined {
    this.#inVain = this.#askedWoken && denied.ticket !== undefined;
    this.priority = "last";
    this.#slowestMs = Math.min(denied.slowestMs, ROUND_TRIP_MS_MAX);
    const notifications = this.#notifications;
    if (denied.unanswered) return undefined;
    if (!notifications.isReady) return Infinity; // which it is soon
    if (!notifications.hasQuorum) return undefined;
    if (!denied.ticket) return 0;
    if (this.#woken !== 0) {
      this.priority = "woken";
      return this.#wokenUp ? 0 : this.#graceMs();
    }
    const freeInMs = this.#untilFreeMs(denied);
    return this.#changed && freeInMs !== undefined
      ? Math.min(freeInMs, this.#fraction() * RECOVERY_MS)
      : freeInMs;
  }

  /** Until a quorum of the nodes should have nothing in its way; `undefined` where too few have told. */
  #untilFreeMs(denied: Round): number | undefined {
    const { nodes, quorum } = this.#nodeSet;
    let ahead = 0;
    const livesMs = nodes.map((_, nodeIndex) => {
      if (denied.grantedBy(nodeIndex)) return 0;
      const place = denied.enqueuedOn & 1 << nodeIndex ? this.#places[nodeIndex] : undefined;
      if (place) ahead = Math.max(ahead, place.ahead);
      return place?.remainingMs;
    }).filter((lifeMs) => lifeMs !== undefined).sort((one, other) => one - other);
    if (livesMs.length < quorum) return undefined;
    const freeInMs = livesMs[quorum - 1];
    if (freeInMs > 0) {
      this.#stuckBehind = undefined;
      return Math.min(freeInMs + STAGGER_MS * ahead, this.#unwokenMs(denied, ahead));
    }
    // Where somebody before it had taken the key and released it, fewer would stand there now.
    if (this.#stuckBehind !== undefined && ahead >= this.#stuckBehind) {
      this.#stuckBehind = undefined;
      this.priority = "overdue";
      return 0;
    }
    this.#stuckBehind = ahead;
    return Math.max(PATIENCE_MS_MIN, PATIENCE_FACTOR * this.#slowestMs) * (1 + ahead);
  }

  /**
   * How long it trusts that it is woken, in milliseconds: whoever releases may not know of waiters, and whoever was
   * woken may be dead. The first in line asks most often, so that many who wait ask hardly more often than one.
   *
   * Where some nodes granted contenders may have split the vote, and nobody holds the lock; or somebody holds it by a
   * bare quorum, and then asking is in vain, ever more rarely.
   */
  #unwokenMs(denied: Round, ahead: number): number {
    const { retryDelayMaxMs } = this.settings;
    const trustMs = Math.max(retryDelayMaxMs, TRUST_MS_MIN) * (1 + this.#fraction()) / 2;
    this.#splits = denied.granted > 0 ? this.#splits + 1 : 0;
    const splitMs = denied.granted > 0 ? this.#graceMs() * SPLIT_FACTOR ** this.#splits : Infinity;
    return Math.min(splitMs, trustMs * (1 + ahead), ASK_MS_MAX);
  }

  /**
   * Whether it is worth asking at once. The first node to tell is enough: the others were told to let go at the same
   * time, and hear of it before they hear from here. Where that was in vain, contenders have met: then the others are
   * waited for, or a time that differs from contender to contender.
   */
  get #wokenUp(): boolean {
    const enough = this.#inVain ? Math.min(this.#nodeSet.quorum, bitCount(this.#queued)) : 1;
    return bitCount(this.#woken) >= enough;
  }

  /** Some node's wake-up is under way, or will not come: half of its own round trip, give or take. */
  #graceMs(): number {
    return Math.max(GRACE_MS_MIN, this.#slowestMs) * (0.5 + this.#fraction());
  }

  #fraction(): number {
    return this.#nodeSet.wheel.random.fraction();
  }
}
