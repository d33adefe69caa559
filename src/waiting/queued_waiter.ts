/**
 * Waiting to be notified: this client's ticket in the queues of all clients for one lock.
 *
 * **What it knows** is in three objects: where it stands ({@linkcode Ticket}), when a turn of
 * another is over ({@linkcode WatchedTurn}), and how clients of other libraries share the lock
 * ({@linkcode ContendedResource}). Whose turn it is, only the nodes know.
 *
 * **When it asks**: at the earliest of the times in {@linkcode Due}, because a notification is a
 * hint and never more.
 *
 * **In which order.** `nextTicket` begins an attempt: nodes answer it, and send messages, which
 * are kept as {@linkcode News}. If it fails, `wait` makes a new {@linkcode Due}. What nodes have
 * said by then sets times in it (`#planNotified`, `#hearVotes`), and so does what they say from
 * then on. The next attempt begins at the first of these times.
 *
 * **Its life.** It is made for the first call of this client that must wait. If that gives up, the
 * next call goes on with it. Once a call has the lock the waiter is parked, and the release takes
 * the ticket out of the queues of nodes that denied: if it left at once, they would notify the next
 * client, which could not win. It leaves with the lock, or when no call waits; and before, if the
 * call has a lock that others may have beside it or whose keys may live on, must wait for a
 * cooldown, or polls (`LocalQueues.dropWaiter`).
 *
 * @module
 */
import type { ContendedResource } from "./contended_resource.ts";
import type { ReleaseNotifications, TicketListener } from "./release_notifications.ts";
import type { QueueMessage, QueueTicket } from "../quorum/queue_ticket.ts";
import type { Settings } from "../options.ts";
import { bitCount, type NodeSet } from "../quorum/quorum_node.ts";
import type { Round } from "../quorum/round.ts";
import { backoffMs } from "../time/backoff.ts";
import { Pause } from "../time/pause.ts";
import type { Random } from "../time/random.ts";
import { sorted, Ticket, type Wanted } from "./ticket.ts";
import { WatchedTurn } from "./watched_turn.ts";

/** By how much longer each wait is than the one before if the vote was split. */
const SPLIT_FACTOR = 4;
/**
 * After so many split votes in a row it uses no turn at once either (see `Due.pacedUntilMs`).
 * Fewer may be by chance: others asked at the same time.
 */
const SPLITS_PACED = 3;
/**
 * After this, or `retryDelayMaxMs` if that is longer, the first in the queue asks at the latest
 * though nothing has happened, in milliseconds; doubled each time.
 */
const IDLE_MS_MIN = 500;
/** Longest wait without asking, in milliseconds: well below the life of a queue. */
const IDLE_MS_MAX = 60_000;
/**
 * By how much later each asks for each ticket ahead of it, in milliseconds, when a key expires or a
 * turn should be over: so few ask without success while those ahead use theirs.
 */
const STAGGER_MS = 20;
/**
 * For so many tickets ahead at most the last asks later when a turn should be over: any number of
 * those ahead may be stuck together.
 */
const LAST_STAGGERS_MAX = 15;
/**
 * With so many tickets ahead or fewer, it asks each time that a key in its way should have expired;
 * and so does the last, because those ahead may all be gone, or wait for other keys, too. The
 * others ask ever more rarely, because the holder may extend its key each time.
 */
const AHEAD_MAX = 2;
/** The least round trip for which it waits for other nodes' notifications, in milliseconds. */
const GRACE_MS_MIN = 2;
/** The longest round trip that is believed, in milliseconds: one that took longer was held up. */
const ROUND_TRIP_MS_MAX = 100;
/**
 * How much later it asks than when another's turn is over, in milliseconds: the nodes' messages
 * come one by one.
 */
const OVERTAKE_LATER_MS = 2;
// How long it waits at most before it asks because other nodes can notify it, in milliseconds.
/** A quorum can again. */
const RECOVERY_MS_MAX = 50;
/** More than a quorum can. */
const JOIN_MS_MAX = 1_000;
// For how long at most it follows no notification if that was of no use, in milliseconds (`Due`).
/** Nodes were in quarantine. */
const PACE_MS_MAX = 250;
/** A key was held: meanwhile others get the free one. */
const VAIN_MS_MAX = 100;

/** What nodes have sent the ticket since the last attempt began. */
class News {
  /** One bit a node: those that notified it, of a pool for the key that the first named. */
  notifiedBy = 0;
  /** That key. */
  place: number | undefined;
  /** Whether it is the ticket's turn on one of them; else it may only enter beside readers. */
  hasTurn = false;
}

/**
 * For each reason to ask, when, by the monotonic clock; `Infinity`: it is no reason now. One more
 * is in {@linkcode WatchedTurn}.
 */
class Due {
  /** Enough nodes have notified it (`#planNotified`); not before {@linkcode pacedUntilMs}. */
  notifiedMs = Infinity;
  /** A quorum of nodes should have nothing in the way, by what they answered. */
  freeMs = Infinity;
  /** The vote was split, so perhaps nobody has the lock. */
  splitMs = Infinity;
  /** A client of another library has the lock, and will notify nobody. */
  foreignMs = Infinity;
  /** Nothing has happened: the more often, the later. */
  idleMs = Infinity;
  /** Too few nodes have answered. */
  pollMs = Infinity;
  /** Other nodes can notify it than when it last asked, or too few can (`#joinMs`). */
  joinMs = Infinity;
  /**
   * Until when it follows no notification, because that was of no use: nodes were in quarantine; or
   * it asked for several keys, of which one was held.
   */
  pacedUntilMs = 0;
}

/** Waits in the queues, for one call after another until one has the lock. */
export class QueuedWaiter implements TicketListener {
  /** Whether a node had notified the ticket when the last wait was over. */
  notified = false;
  /** The settings of the call that waits. */
  settings!: Settings;
  /** What is remembered of the lock that it waits for. */
  resource!: ContendedResource;
  /** Whether this client has the lock, until the waiter leaves. */
  parked = false;
  /** What stands in the queues. */
  readonly ticket: Ticket;
  readonly #notifications: ReleaseNotifications;
  readonly #nodeSet: NodeSet;
  readonly #keys: readonly string[];
  // From the beginning of an attempt, until that of the next.
  #news = new News();
  // From the beginning of a wait, until that of the next.
  #due = new Due();
  /** The attempt before it, while its answers do not say yet where the ticket stands. */
  #unheard: Round | undefined;
  /** Whether that was {@linkcode Round.unanswered}. */
  #unanswered = false;
  /** How long the slowest node took to answer it, in milliseconds. */
  #roundTripMs = 0;
  /** The wait itself, until it is over. */
  #pause: Pause | undefined;
  // As long as the waiter lives.
  readonly #turn: WatchedTurn;
  /** How often in a row it asked and no node notified it. */
  #idles = 0;
  /** How often in a row the vote was split. */
  #splits = 0;
  /** How much later than the end of a key's TTL it asks, in milliseconds. */
  #staggerMs = 0;

  constructor(notifications: ReleaseNotifications, nodeSet: NodeSet, wanted: Wanted) {
    this.#keys = wanted.keys;
    this.#notifications = notifications;
    this.#nodeSet = nodeSet;
    this.#turn = new WatchedTurn(nodeSet.quorum);
    this.ticket = new Ticket(notifications, nodeSet, wanted, () => this.#hearVotes());
    notifications.register(this.ticket.name, this);
  }

  /**
   * Only with a pool: a key that is free for the ticket, or for another whose turn should be over.
   */
  get place(): number | undefined {
    return this.notified ? this.#news.place : this.#turn.place;
  }

  /**
   * Begins an attempt; returns the ticket that the nodes are to put in their queues, if a quorum of
   * them can notify it.
   *
   * @param leftMs How long the call waits yet, in milliseconds.
   */
  nextTicket(leftMs: number): QueueTicket | undefined {
    this.#news = new News();
    return this.ticket.prepare(this.#nowMs, leftMs) ? this.ticket : undefined;
  }

  /** Resolves when a first attempt with a ticket can be made, in `limitMs` at the latest. */
  ready(limitMs: number): Promise<void> {
    const dueMs = () =>
      this.#notifications.isSubscribing ? Infinity : this.resource.concededUntilMs;
    return this.#sleepUntil(dueMs, limitMs);
  }

  /**
   * Resolves when the next attempt is due.
   *
   * @param attempt How many attempts failed before the last, from 0.
   * @param limitMs The longest wait, in milliseconds.
   * @param denied The last attempt.
   */
  async wait(attempt: number, limitMs: number, denied: Round): Promise<void> {
    const due = this.#due = new Due();
    this.#unheard = denied;
    this.#unanswered = denied.unanswered;
    this.#roundTripMs = Math.min(denied.slowestMs, ROUND_TRIP_MS_MAX);
    const inQuarantine = denied.votes.some(({ outcome }) => outcome === "quarantined");
    if (denied.unanswered && inQuarantine) due.pacedUntilMs = this.#within(PACE_MS_MAX);
    if (this.#news.notifiedBy !== 0) this.#planNotified();
    due.pollMs = this.#nowMs + backoffMs(this.#random, this.settings, attempt);
    due.joinMs = this.#joinMs();
    this.#hearVotes();
    await this.#sleepUntil(() => this.#dueMs(), limitMs);
    this.#hearVotes(); // that came meanwhile
    this.#unheard = undefined;
    this.notified = this.#news.notifiedBy !== 0;
    this.#turn.endMs = Infinity;
  }

  /** When the first reason of all ends the wait. */
  #dueMs(): number {
    const { notifiedMs, pacedUntilMs, ...others } = this.#due;
    // A turn it uses at once, because the others wait for it: unless too few nodes answered; or
    // the vote is split again and again, as it takes a free key from others where one is held.
    // mutation: several-keys-split-the-vote
    const usesTurn = this.#news.hasTurn && !this.#unanswered && this.#splits < SPLITS_PACED;
    const { concededUntilMs } = this.resource;
    const followsMs = Math.max(notifiedMs, concededUntilMs, usesTurn ? 0 : pacedUntilMs);
    // mutation: unnotified-waiter-never-asks
    return Math.min(followsMs, this.#turn.endMs, ...Object.values(others));
  }

  /**
   * Sleeps until a time that may change each time that something happens; at most until the call's
   * signal aborts or the client closes. Nodes without a connection fail within one tick of the
   * event loop, and no connection can be made before the next one: so that comes first, even if the
   * time is over.
   */
  async #sleepUntil(dueMs: () => number, limitMs: number): Promise<void> {
    const { signal } = this.settings;
    const endMs = this.#nowMs + limitMs;
    for (let ticked = !this.#unanswered;; ticked = true) {
      const leftMs = Math.min(dueMs(), endMs) - this.#nowMs;
      if (leftMs <= 0 && ticked || signal?.aborted || this.#nodeSet.closed) return;
      this.#pause = new Pause(this.#nodeSet.wheel, Math.max(0, leftMs), signal);
      await this.#pause.over;
      this.#pause = undefined;
    }
  }

  onQueueMessage(nodeIndex: number, { notice, waitMs, place }: QueueMessage): void {
    const news = this.#news;
    if (notice === "turn" || notice === "beside") {
      if (news.notifiedBy === 0) {
        this.resource.concede(this.#nowMs, this.#random);
        news.place = place;
      }
      if (place === news.place) news.notifiedBy |= 1 << nodeIndex;
      if (notice === "turn") news.hasTurn = true;
      this.#idles = 0;
      if (this.#pause) this.#planNotified();
    } else if (this.#unanswered || !this.#turn.watch(place)) {
      return;
    } else if (notice === "taken") {
      this.#turn.onTaken(nodeIndex, this.#nowMs + waitMs! + this.#staggerMs);
    } else {
      this.#turn.onBegun(nodeIndex, this.#overMs(waitMs! + OVERTAKE_LATER_MS));
    }
    this.#pause?.end();
  }

  onSubscriptionChange(): void {
    this.ticket.onSubscriptionChange();
    if (!this.#pause) return;
    this.#due.joinMs = Math.min(this.#due.joinMs, this.#joinMs());
    this.#pause.end();
  }

  /**
   * It waits no more.
   *
   * @param won See {@linkcode Ticket.leave}.
   */
  leave(won?: Round): void {
    this.#notifications.unregister(this.ticket.name, this.#keys);
    if (this.parked) this.resource.concede(this.#nowMs, this.#random);
    else this.ticket.leave(won);
  }

  /**
   * Plans to ask because of a notification: at once at the first, because the other nodes were
   * asked to release at the same time, and have done so before this client's request reaches them.
   */
  #planNotified(): void {
    const { quorum } = this.#nodeSet;
    // If the last ask followed a notification, too, several clients asked at once: it waits for
    // more nodes, or for a time that differs from client to client.
    const wanted = this.notified ? Math.min(quorum, this.ticket.queuedCount) : 1;
    const few = bitCount(this.#news.notifiedBy) < (this.#unanswered ? quorum : wanted);
    // What undoes an attempt notifies the next client. So while too few nodes answer, all would
    // notify each other.
    if (few && this.#unanswered) return;
    // If the vote was split again, it waits longer, so that another may win.
    const graces = this.#splits > 1 ? SPLIT_FACTOR ** 2 : 1;
    const plannedMs = this.#nowMs + (few ? graces * this.#graceMs() : 0);
    this.#due.notifiedMs = Math.min(this.#due.notifiedMs, plannedMs);
  }

  /**
   * Once so many nodes have answered the last attempt that they show where the ticket stands, plans
   * by that when to ask though no node notifies it.
   */
  #hearVotes(): void {
    const standing = this.#unheard && this.ticket.standingAfter(this.#unheard);
    if (!standing) return;
    this.#unheard = undefined;
    const { positions, needed, ahead, isLast, isHeld, foreign, split, freeInMs } = standing;
    const { retryDelayMs, retryDelayMaxMs } = this.settings;
    const due = this.#due;
    const nowMs = this.#nowMs;
    if (foreign) this.resource.noteForeign(nowMs);
    this.#splits = split ? this.#splits + 1 : 0;
    const askedInVain = this.notified && this.#keys.length > 1 && isHeld;
    if (askedInVain) due.pacedUntilMs = this.#within(VAIN_MS_MAX);
    // When the turns of those ahead are over on so many nodes that it can win.
    const turns = sorted(positions.flatMap(({ turnMs, reserved }) => {
      return turnMs > 0 && this.#turn.watch(reserved) ? turnMs : [];
    }));
    const turnMs = turns[Math.min(needed, turns.length) - 1];
    const staggers = isLast ? Math.min(ahead - 1, LAST_STAGGERS_MAX) : ahead - 1;
    if (turnMs) this.#turn.endAt(this.#overMs(turnMs + STAGGER_MS * staggers));
    const times = 2 ** this.#idles++;
    const idleMs = Math.max(retryDelayMaxMs, IDLE_MS_MIN) * times * (1 + ahead);
    due.idleMs = nowMs + Math.min(idleMs, IDLE_MS_MAX) * (1 + this.#random.fraction()) / 2;
    if (split) due.splitMs = nowMs + this.#graceMs() * SPLIT_FACTOR ** this.#splits;
    if (foreign && ahead === 0) {
      due.foreignMs = this.#within(this.resource.nextPollMsMax(nowMs, freeInMs, retryDelayMs));
    }
    const often = isLast || ahead <= AHEAD_MAX;
    this.#staggerMs = STAGGER_MS * (isLast ? Math.min(ahead, AHEAD_MAX) : ahead);
    if (freeInMs > 0) due.freeMs = nowMs + freeInMs * (often ? 1 : times) + this.#staggerMs;
    if (this.#notifications.hasQuorum) { // no release is missed, so no poll is necessary
      due.pollMs = Infinity;
      due.joinMs = this.#joinMs();
    }
    this.#pause?.end();
  }

  /** When to ask because a turn is over, which lasts for so many milliseconds yet. */
  #overMs(leftMs: number): number {
    // mutation: stuck-first-never-overtaken
    return this.#nowMs + leftMs + this.resource.concedeMsMax(this.#nowMs);
  }

  /**
   * When to ask because other nodes can notify the ticket than when it last asked; `Infinity` if
   * that is no reason. Without a quorum of them, it polls, and leaves the queues. With one, it
   * misses no release. But every node should have it: one that has not would notify another in its
   * place, who could not win.
   */
  #joinMs(): number {
    const { hasQuorum, isSubscribing } = this.#notifications;
    const { isSent, canJoin, score, isQueued } = this.ticket;
    if (!hasQuorum) {
      return isSent ? this.#nowMs + backoffMs(this.#random, this.settings, 0) : Infinity;
    }
    if (isSubscribing || !canJoin) return Infinity;
    if (score === 0) return this.#nowMs; // it was never sent
    return this.#within(isQueued ? JOIN_MS_MAX : RECOVERY_MS_MAX);
  }

  /**
   * Half a round trip to one and a half, in milliseconds: a notification is on its way, or will not
   * come.
   */
  #graceMs(): number {
    return Math.max(GRACE_MS_MIN, this.#roundTripMs) * (0.5 + this.#random.fraction());
  }

  /** A random time, at most so many milliseconds from now, so that a crowd does not ask at once. */
  #within(limitMs: number): number {
    return this.#nowMs + limitMs * this.#random.fraction();
  }

  get #nowMs(): number {
    return this.#nodeSet.wheel.clock.monotonicMs();
  }

  get #random(): Random {
    return this.#nodeSet.wheel.random;
  }
}
