/**
 * Waiting to be notified: this client's ticket in the queues of all clients for one lock.
 *
 * **What it knows** is in three objects: where it stands ({@linkcode Ticket}), when a turn of
 * another is over ({@linkcode WatchedTurn}), and how clients of other libraries share the lock
 * ({@linkcode ContendedResource}). Whose turn it is, only the nodes know.
 *
 * **When it asks**: at the earliest of these times, because a notification is a hint and never
 * more.
 *
 * - `#notifiedMs`: a node has notified it, and the lock is not left to clients of other libraries
 *   for a moment.
 * - `#turn.endMs`: another's turn is over, and was not used; or a key expires that a lock which has
 *   ended kept ({@linkcode WatchedTurn}).
 * - `#news.expiryMs`: a key expires that another took.
 * - `#askMs`, for any other reason. So many of the keys in its way have expired that a quorum is
 *   possible; or nothing has happened, ever more rarely (`#noteVotes`). Too few nodes can notify
 *   it, or answered, so it polls (`#planUnnotified`). Other nodes can notify it than when it last
 *   asked (`#joinMs`).
 *
 * **Its life.** It is made for the first call of this client that must wait, and serves one call
 * after another. While the client has the lock it is parked, and the release takes the ticket out
 * of the queues of nodes that denied: if it left at once, they would notify the next client, which
 * could not win. Then the next call is `requeue`d with a new ticket. The waiter leaves when no
 * call waits. It is dropped (`LocalQueues.dropWaiter`) when the call has a lock that others may
 * have beside it or whose keys may live on, must wait for a cooldown, or polls.
 *
 * @module
 */
import type { ContendedResource } from "./contended_resource.ts";
import type { ReleaseNotifications, TicketListener } from "./release_notifications.ts";
import type { QueueMessage, QueuePosition, QueueTicket } from "../quorum/queue_ticket.ts";
import type { Settings } from "../options.ts";
import { bitCount, type NodeSet } from "../quorum/quorum_node.ts";
import type { Round } from "../quorum/round.ts";
import { backoffMs, BACKOFFS } from "../time/backoff.ts";
import { Pause } from "../time/pause.ts";
import type { Random } from "../time/random.ts";
import { sorted, Ticket, type Wanted } from "./ticket.ts";
import { WatchedTurn } from "./watched_turn.ts";

/** By how much longer each wait is than the one before if the vote was split. */
const SPLIT_FACTOR = 4;
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
/**
 * How many round trips pass between two polls while subscriptions are being made; doubled each
 * time.
 */
const POLL_FACTOR = 8;
/**
 * The longest round trip that counts for that, in milliseconds: a client that connects is busy, and
 * the nodes are not.
 */
const POLL_ROUND_TRIP_MS_MAX = 5;

/** What nodes have said since the last ask. */
class News {
  /** One bit a node: those that notified the ticket. */
  notifiedBy = 0;
  /** Whether one of them gave it its turn; else it may only enter beside readers. */
  hasTurn = false;
  /** The key that the first of them named, if the ticket is for a pool. */
  place: number | undefined;
  /** One bit a node: those that named that key, and where nobody has taken it since. */
  freeOn = 0;
  /** When the keys expire that another has taken. */
  expiryMs = Infinity;
}

/** How often in a row something has happened: the delays grow with it. */
class InARow {
  /** The vote was split. */
  splits = 0;
  /** It asked, and no node notified it. */
  idles = 0;
  /** It asked because more nodes can notify the ticket. */
  joins = 0;
  /** It was notified and asked, but one of its several keys was held: delays entries. */
  entries = 0;
}

/** Waits in the queues, for one caller after another. */
export class QueuedWaiter implements TicketListener {
  /** Whether a node notified the ticket during the last wait. */
  notified = false;
  /** The settings of the call that waits. */
  settings!: Settings;
  /** What is remembered of the lock that it waits for. */
  resource!: ContendedResource;
  /** What stands in the queues; a new one after each lock that this client had. */
  ticket: Ticket;
  readonly #notifications: ReleaseNotifications;
  readonly #nodeSet: NodeSet;
  /** What its tickets are for. */
  readonly #wanted: Wanted;
  // When to ask, by the monotonic clock: at the first of these times, and of `News.expiryMs`.
  /** Because of a notification. */
  #notifiedMs = Infinity;
  /** At the end of another's turn. */
  readonly #turn: WatchedTurn;
  /** For any other reason. */
  #askMs = Infinity;
  // What decides about it.
  #news = new News();
  #inARow = new InARow();
  /** The last attempt, while its answers do not say yet when a quorum is possible. */
  #unheard: Round | undefined;
  /** Whether the last attempt was {@linkcode Round.unanswered}. */
  #unanswered = false;
  /** Whether some of these nodes were in quarantine. */
  #young = false;
  /** How long the slowest node took to answer the last attempt, in milliseconds. */
  #roundTripMs = 0;
  /** How much later than the end of a key's TTL it asks, in milliseconds. */
  #staggerMs = 0;
  #pause: Pause | undefined;
  /** Whether this client has the lock. */
  #parked = false;

  constructor(
    notifications: ReleaseNotifications,
    nodeSet: NodeSet,
    { keys, pool, mode }: Wanted,
  ) {
    this.#wanted = { keys, pool: pool !== undefined, mode };
    this.#notifications = notifications;
    this.#nodeSet = nodeSet;
    this.#turn = new WatchedTurn(nodeSet.quorum);
    this.ticket = this.#newTicket();
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
    const joins = this.ticket.score !== 0 && this.ticket.canJoin;
    if (!this.ticket.prepare(this.#nowMs, leftMs)) return undefined;
    if (joins) this.#inARow.joins++;
    return this.ticket;
  }

  /**
   * Resolves when a first attempt with a ticket can be made; `signal` and the end of `limitMs` cut
   * it short.
   */
  async ready(limitMs: number, signal: AbortSignal | undefined): Promise<void> {
    const dueMs = () =>
      this.#notifications.isSubscribing ? Infinity : this.resource.concededUntilMs;
    await this.#sleepUntil(dueMs, limitMs, signal);
  }

  /**
   * Resolves when the next attempt is due, when `signal` aborts, or when the client closes,
   * whichever is first.
   *
   * @param attempt How many attempts failed before the last, from 0.
   * @param limitMs The longest wait, in milliseconds.
   * @param signal Ends the wait.
   * @param denied The last attempt.
   */
  async wait(
    attempt: number,
    limitMs: number,
    signal: AbortSignal | undefined,
    denied: Round,
  ): Promise<void> {
    this.#roundTripMs = Math.min(denied.slowestMs, ROUND_TRIP_MS_MAX);
    this.#unanswered = denied.unanswered;
    this.#young = denied.unanswered &&
      denied.votes.some(({ outcome }) => outcome === "quarantined");
    // the one whose turn it is could not take these keys: its turn counts for longer
    if (denied.granted > 0) this.#turn.endMs += denied.elapsedMs;
    this.#notifiedMs = Infinity;
    if (this.#news.notifiedBy !== 0) this.#planNotified();
    this.#planUnnotified(attempt, denied);
    const dueMs = () => {
      const notifiedMs = Math.max(this.#notifiedMs, this.resource.concededUntilMs);
      return Math.min(notifiedMs, this.#askMs, this.#turn.endMs, this.#news.expiryMs);
    };
    await this.#sleepUntil(dueMs, limitMs, signal);
    this.#hearVotes(); // that came meanwhile
    this.#unheard = undefined;
    this.notified = this.#news.notifiedBy !== 0;
    if (this.#turn.endMs <= this.#nowMs) this.#turn.endMs = Infinity;
  }

  /**
   * Sleeps until a time that may change each time that something happens. Nodes without a
   * connection fail within one tick of the event loop, and no connection can be made before the
   * next one: so that comes first, even if the time is over.
   */
  async #sleepUntil(
    dueMs: () => number,
    limitMs: number,
    signal: AbortSignal | undefined,
  ): Promise<void> {
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
    // the lock is this client's: its release takes the ticket out and notifies the next
    if (this.#parked) return;
    const news = this.#news;
    const bit = 1 << nodeIndex;
    if (notice === "taken" && place === news.place) news.freeOn &= ~bit;
    if (notice === "turn" || notice === "beside") {
      if (news.notifiedBy === 0) {
        this.resource.concede(this.#nowMs, this.#random);
        news.place = place;
      }
      news.notifiedBy |= bit;
      if (place === news.place) news.freeOn |= bit;
      if (notice === "turn") news.hasTurn = true;
      this.#inARow.idles = this.#inARow.joins = 0;
      if (this.#pause) this.#planNotified();
    } else if (this.#unanswered || !this.#turn.watch(place)) {
      return;
    } else if (notice === "taken") {
      if (this.#turn.onTaken(nodeIndex)) {
        news.expiryMs = this.#nowMs + waitMs! + this.#staggerMs;
      }
    } else {
      const laterMs = OVERTAKE_LATER_MS * (0.5 + this.#random.fraction());
      this.#turn.onBegun(nodeIndex, this.#overMs(waitMs! + laterMs));
    }
    this.#pause?.end();
  }

  onSubscriptionChange(): void {
    this.ticket.onSubscriptionChange();
    if (!this.#pause) return;
    this.#askMs = Math.min(this.#askMs, this.#joinMs());
    this.#pause.end();
  }

  /** The lock is this client's, until {@linkcode requeue}. */
  park(): void {
    this.#parked = true;
    this.#turn.endMs = Infinity;
    this.resource.noteWon(this.#nowMs);
  }

  /**
   * Another caller waits now: in the place of one that gave up, or behind all who wait if the
   * client had the lock.
   */
  requeue(): void {
    if (this.#parked) {
      const { name } = this.ticket;
      this.ticket = this.#newTicket();
      this.#notifications.register(this.ticket.name, this);
      this.#notifications.unregister(name, this.#wanted.keys);
      this.resource.noteEnded(this.#nowMs, this.#random);
    }
    this.#parked = this.notified = false;
    this.#inARow = new InARow();
  }

  /**
   * Nobody here waits any more.
   *
   * @param won See {@linkcode Ticket.leave}.
   */
  leave(won?: Round): void {
    this.#notifications.unregister(this.ticket.name, this.#wanted.keys);
    if (this.#parked) this.resource.noteEnded(this.#nowMs, this.#random);
    else this.ticket.leave(won);
  }

  #newTicket(): Ticket {
    return new Ticket(this.#notifications, this.#nodeSet, this.#wanted, () => this.#hearVotes());
  }

  /**
   * Plans to ask because of a notification: at once at the first, because the other nodes were
   * asked to release at the same time, and have done so before this client's request reaches them.
   */
  #planNotified(): void {
    const { quorum } = this.#nodeSet;
    const { notifiedBy, hasTurn, freeOn } = this.#news;
    const count = bitCount(notifiedBy);
    // What undoes an attempt notifies the next client. So while too few nodes answer, or some are
    // in quarantine, all would notify each other until a quorum is back.
    if (this.#unanswered && count < quorum) return;
    const entries = this.#young ? Infinity : hasTurn ? 0 : this.#inARow.entries;
    if (entries > 0) {
      if (this.#notifiedMs !== Infinity) return;
      this.#notifiedMs = this.#nowMs + backoffMs(this.#random, BACKOFFS.entry, entries);
      return;
    }
    // If the last ask followed a notification, too, several clients asked at once: it waits for
    // more nodes, or for a time that differs from client to client.
    const enough = this.notified ? Math.min(quorum, this.ticket.queuedCount) : 1;
    // If the vote was split again, it waits longer, so that another may win. But not if a quorum
    // keeps the key for the ticket: a longer wait would give the turn to another.
    const splitAgain = this.notified && this.#inARow.splits > 1 && bitCount(freeOn) < quorum;
    const graces = splitAgain ? SPLIT_FACTOR ** 2 : Number(count < enough);
    this.#notifiedMs = Math.min(this.#notifiedMs, this.#nowMs + graces * this.#graceMs());
  }

  /** Plans when to ask though nothing happens. */
  #planUnnotified(attempt: number, denied: Round): void {
    // A release between the first denial and the subscription notifies nobody.
    const isEarly = this.#notifications.isSubscribing && !this.ticket.isQueued;
    const pollMs = isEarly
      ? this.#graceMs(POLL_ROUND_TRIP_MS_MAX) * POLL_FACTOR * 2 ** attempt
      : backoffMs(this.#random, this.settings, attempt);
    this.#unheard = isEarly || denied.unanswered ? undefined : denied;
    // If the round was decided early, the other nodes' answers are on their way.
    const laterMs = this.#unheard ? this.#graceMs() : 0;
    this.#askMs = Math.min(this.#nowMs + pollMs + laterMs, this.#joinMs());
    this.#hearVotes();
  }

  /**
   * Once so many nodes have answered the last attempt that they show when a quorum is possible:
   * notes what they say, and plans again.
   */
  #hearVotes(): void {
    const { quorum } = this.#nodeSet;
    const denied = this.#unheard;
    if (!denied) return;
    const positions = this.ticket.positionsIn(denied);
    const remainingMs = positions.map((position) => position.remainingMs);
    const freeInMs = sorted(remainingMs, Array(denied.granted).fill(0));
    if (freeInMs.length < quorum) return;
    this.#unheard = undefined;
    // those that have not answered may have nothing in the way
    const quorumInMs = freeInMs[Math.max(0, quorum - 1 - denied.pending)];
    const askMs = this.#nowMs + this.#noteVotes(positions, denied.granted, quorumInMs);
    // while a quorum can notify it, no poll is necessary
    const otherwiseMs = this.#notifications.hasQuorum ? this.#joinMs() : this.#askMs;
    this.#askMs = Math.min(askMs, otherwiseMs);
    this.#pause?.end();
  }

  /**
   * Notes what the votes of an attempt show, and returns how long to wait if no notification comes,
   * in milliseconds.
   *
   * @param positions Where the ticket stands on the nodes that denied.
   * @param granted How many granted.
   * @param freeInMs When a quorum of nodes should have nothing in the way, from now, in
   * milliseconds.
   */
  #noteVotes(positions: readonly QueuePosition[], granted: number, freeInMs: number): number {
    const { settings: { retryDelayMs, retryDelayMaxMs }, resource } = this;
    const inARow = this.#inARow;
    const ahead = Math.max(0, ...positions.map((position) => position.ahead));
    // mutation: last-asks-ever-more-rarely
    const isLast = positions.some((position) => position.ahead === position.length - 1);
    const foreign = positions.some((position) => position.foreign);
    // Contenders may have split the vote, so that nobody has the lock; or somebody has it by a bare
    // quorum.
    const split = granted > 0 || freeInMs === 0 && ahead === 0;
    const entered = this.notified && this.#wanted.keys.length > 1 &&
      positions.some(({ value }) => value);
    this.ticket.agree(positions, granted);
    resource.noteHolder(foreign, this.#nowMs);
    inARow.entries = entered ? inARow.entries + 1 : 0;
    inARow.splits = split ? inARow.splits + 1 : 0;
    const idleTimes = 2 ** inARow.idles++;
    // the longer, the more often nothing has happened
    const idleMs = Math.max(retryDelayMaxMs, IDLE_MS_MIN) * idleTimes * (1 + ahead);
    const delaysMs = [Math.min(idleMs, IDLE_MS_MAX) * (1 + this.#random.fraction()) / 2];
    if (split) delaysMs.push(this.#graceMs() * SPLIT_FACTOR ** inARow.splits);
    if (foreign && ahead === 0) { // its holder will notify nobody
      const pollMsMax = resource.nextPollMsMax(this.#nowMs, freeInMs, retryDelayMs);
      delaysMs.push(pollMsMax * this.#random.fraction());
    }
    const times = ahead <= AHEAD_MAX || isLast ? 1 : idleTimes;
    this.#staggerMs = STAGGER_MS * (isLast ? Math.min(ahead, AHEAD_MAX) : ahead);
    if (freeInMs > 0) delaysMs.push(freeInMs * times + this.#staggerMs);
    if (ahead > 0) this.#planOvertaking(positions, ahead, granted);
    // mutation: unnotified-waiter-never-asks
    return Math.min(...delaysMs);
  }

  /**
   * Plans to ask when the turns of those ahead are over on so many nodes that it can get a quorum.
   *
   * @param granted How many nodes granted the last attempt.
   */
  #planOvertaking(positions: readonly QueuePosition[], ahead: number, granted: number): void {
    const turns = sorted(positions.flatMap(({ turnMs, reserved }) => {
      return turnMs > 0 && this.#turn.watch(reserved) ? turnMs : [];
    }));
    const needed = Math.min(this.#nodeSet.quorum - granted, turns.length);
    if (needed > 0) this.#turn.endAt(this.#overMs(turns[needed - 1] + STAGGER_MS * (ahead - 1)));
  }

  /** When to ask because a turn is over, which lasts for so many milliseconds yet. */
  #overMs(leftMs: number): number {
    // mutation: stuck-first-never-overtaken
    return this.#nowMs + leftMs + this.resource.concedeMsMax(this.#nowMs);
  }

  /**
   * When to ask because other nodes can notify the ticket than when it last asked; `Infinity` if
   * that is no reason. Without a quorum of them, it asks soon, to leave the queues. With one, it
   * misses no release. But every node should have it: one that has not would notify another in its
   * place, who could not win.
   */
  #joinMs(): number {
    const { ticket } = this;
    const { hasQuorum, isSubscribing } = this.#notifications;
    if (!hasQuorum && ticket.isSent) return this.#nowMs + backoffMs(this.#random, this.settings, 0);
    if (!hasQuorum || isSubscribing || !ticket.canJoin) return Infinity;
    if (ticket.score === 0) return this.#nowMs; // it was never sent
    const limits = ticket.isQueued ? BACKOFFS.join : BACKOFFS.recovery;
    return this.#nowMs + backoffMs(this.#random, limits, this.#inARow.joins);
  }

  /**
   * Half a round trip to one and a half, in milliseconds: a notification is on its way, or will not
   * come.
   */
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
