/**
 * When a call asks that waits in the queues of all clients with its client's ticket.
 *
 * **What it knows** is in three objects: where the ticket stands ({@linkcode Ticket}), what nodes
 * have sent it since it last asked ({@linkcode News}), and which clients of other libraries share
 * the lock ({@linkcode ForeignClients}). Whose turn it is, only the nodes know.
 *
 * **When it asks**: at the earliest of these times, as a notification is a hint and never more.
 *
 * | time               | why it asks then                                                  |
 * | ------------------ | ----------------------------------------------------------------- |
 * | `#followMs`        | nodes have notified it: it may have the key; not while it rests   |
 * | `News.watchEndMs`  | another's turn is over; or if it was used, the key expires        |
 * | `#askMs`           | neither has come; it is the earliest of these:                    |
 * | ... `#pollMs()`    | too few nodes have answered, or can notify it: it polls           |
 * | ... `#joinMs()`    | more nodes can notify it than when it last asked                  |
 * | ... `#splitMs()`   | the vote was split, so nobody may have the lock                   |
 * | ... `#foreignMs()` | a client of another library has it, whose release notifies nobody |
 * | ... `#freeMs()`    | the keys in the way expire: their holder may have crashed         |
 * | ... `#idleMs()`    | nothing has happened for long: a notification may be lost         |
 *
 * `nextTicket` begins an attempt, and new {@linkcode News}. If the attempt fails, `wait` begins, by
 * what nodes have sent (`#planByNews`) and answered (`#planByVotes`) so far. What they say later
 * may bring the next attempt forward.
 *
 * @module
 */
import type { ForeignClients } from "./foreign_clients.ts";
import type { TicketListener } from "./release_notifications.ts";
import type { QueueMessage, QueueTicket } from "../quorum/queue_ticket.ts";
import type { Settings } from "../options.ts";
import { bitCount, type NodeSet } from "../quorum/quorum_node.ts";
import type { Round } from "../quorum/round.ts";
import { backoffMs } from "../time/backoff.ts";
import { Pause } from "../time/pause.ts";
import type { Random } from "../time/random.ts";
import { News } from "./news.ts";
import type { Standing, Ticket, Wanted } from "./ticket.ts";

/** By how much longer each wait is than the one before if the vote was split. */
const SPLIT_FACTOR = 4;
/**
 * After so many split votes in a row it rests (`#restUntilMs`) even with the turn. Fewer may be
 * by chance, because others asked at the same time.
 */
const SPLITS_MAX = 3;
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
 * When a turn should be over, the last in the queue asks later for so many tickets ahead of it at
 * most: any number of those may be stuck together.
 */
const LAST_STAGGERS_MAX = 15;
/**
 * With so many tickets ahead or fewer, it asks each time that a key in its way should have expired.
 * The last does as if it had no more, because those ahead may all be gone, or wait for other keys,
 * too. The others ask ever more rarely, because the holder may extend its key each time.
 */
const AHEAD_MAX = 2;
/** The least round trip for which it waits for other nodes' notifications, in milliseconds. */
const GRACE_MS_MIN = 2;
/** The longest round trip that is believed, in milliseconds: one that took longer was held up. */
const ROUND_TRIP_MS_MAX = 100;
/** How soon it asks if a quorum of nodes can notify it again, in milliseconds. */
const RECOVERY_MS_MAX = 50;
/** How soon it asks if more than a quorum of nodes can notify it, in milliseconds. */
const JOIN_MS_MAX = 1_000;
/** The longest rest after an attempt that was of no use, in milliseconds. */
const REST_MS_MAX = 100;

/** A call that waits. */
export interface WaitingCall extends Wanted {
  /** The name of its local queue. */
  readonly localName: string;
  /** The name of the keys that it asks for now: of a pool, of one. */
  readonly name: string;
  readonly settings: Settings;
  /**
   * Whether a call in shared mode that it was behind has the lock now: its next attempt passes
   * those that wait.
   */
  entersAtOnce: boolean;
  /** Waits among other clients, once it must; with the ticket of its local queue. */
  waiter: QueuedWaiter | undefined;
}

/** Waits in the queues, for one call. */
export class QueuedWaiter implements TicketListener {
  /** Those of what its call asked for last; set before each wait. */
  foreign!: ForeignClients;
  /** Those of its call, which need not live as long as its lock. */
  readonly #settings: Settings;
  /** What stands in the queues. */
  readonly #ticket: Ticket;
  readonly #nodeSet: NodeSet;
  // From the beginning of an attempt, until that of the next.
  #news: News;
  // From the beginning of a wait, until that of the next: times of the monotonic clock.
  /** When it follows what nodes have sent; `Infinity`: too few have notified it. */
  #followMs = Infinity;
  /** When it asks though nothing comes. */
  #askMs = Infinity;
  /**
   * Until when it rests: it follows no notification, unless it has the turn. The last one was of no
   * use, because too few nodes answered or nodes were in quarantine, or because one of several keys
   * was held: meanwhile others get the free ones.
   */
  #restUntilMs = 0;
  /** The last attempt, until the wait after it is over. */
  #last: Round | undefined;
  /**
   * Whether it was {@linkcode Round.failedByMajority} when the wait began. Answers that come
   * later do not count: else clients would follow each other's notifications in an outage.
   */
  #failedByMajority = false;
  /** The wait itself, until it is over, and when that is. */
  #pause: Pause | undefined;
  #pauseEndMs = Infinity;
  // As long as its call waits.
  /** Whether a node had notified it when the last wait was over. */
  #wasNotified = false;
  /**
   * How often in a row it was to poll, because too few nodes had answered, or could notify it. 0:
   * so many have and can that it misses no release; or it asks soon because some granted.
   */
  #polls = 0;
  /** How often in a row it asked and no node notified it. */
  #idles = 0;
  /** How often in a row the vote was split. */
  #splits = 0;
  /**
   * How much later than the end of a key's TTL it asks, in milliseconds, by where the ticket stood
   * when nodes last answered.
   */
  #staggerMs = 0;

  constructor(settings: Settings, ticket: Ticket) {
    this.#settings = settings;
    this.#ticket = ticket;
    this.#nodeSet = ticket.nodeSet;
    this.#news = new News(this.#nodeSet.quorum);
  }

  /**
   * Begins an attempt; returns the ticket that the nodes are to put in their queues, if a quorum of
   * them can notify it.
   *
   * @param leftMs How long the call waits yet, in milliseconds.
   */
  nextTicket(leftMs: number): QueueTicket | undefined {
    this.#news = new News(this.#nodeSet.quorum);
    return this.#ticket.prepare(this.#nowMs, leftMs) ? this.#ticket : undefined;
  }

  /** Resolves when a first attempt with a ticket can be made, in `limitMs` at the latest. */
  ready(limitMs: number): Promise<void> {
    const { notifications } = this.#ticket;
    const dueMs = () => notifications.isSubscribing ? Infinity : this.foreign.concededUntilMs;
    return this.#sleepUntil(dueMs, limitMs);
  }

  /**
   * Resolves when the next attempt is due.
   *
   * @param limitMs The longest wait, in milliseconds.
   * @param last The last attempt.
   * @returns What nodes have sent since that attempt began.
   */
  async wait(limitMs: number, last: Round): Promise<News> {
    this.#last = last;
    this.#failedByMajority = last.failedByMajority;
    this.#restUntilMs = last.failedByMajority ? this.#within(REST_MS_MAX) : 0;
    this.#followMs = Infinity;
    this.#askMs = Math.min(this.#pollMs(), this.#joinMs());
    if (this.#news.notifiedBy !== 0) this.#planByNews();
    last.onDenied = () => this.#planByVotes(last);
    this.#planByVotes(last);
    await this.#sleepUntil(() => this.#dueMs(), limitMs);
    last.onDenied = this.#last = undefined;
    this.#wasNotified = this.#news.notifiedBy !== 0;
    return this.#news;
  }

  /** When the first reason of all ends the wait. */
  #dueMs(): number {
    const { hasTurn, watchEndMs } = this.#news;
    // A turn it uses at once, because the others wait for it: unless too few nodes answered; or
    // the vote is split again and again, as it takes a free key from others where one is held.
    // mutation: several-keys-split-the-vote
    const usesTurn = hasTurn && !this.#failedByMajority && this.#splits < SPLITS_MAX;
    const restUntilMs = Math.max(this.foreign.concededUntilMs, usesTurn ? 0 : this.#restUntilMs);
    const followMs = Math.max(this.#followMs, restUntilMs);
    // mutation: unnotified-waiter-never-asks
    return Math.min(followMs, watchEndMs, this.#askMs);
  }

  /**
   * Sleeps until a time that may change each time that something happens; at most until the call's
   * signal aborts or the client closes. If a majority failed, it sleeps for a tick of the event
   * loop even if the time is over: nodes without a connection fail within a tick, and no connection
   * can be made before the next.
   */
  async #sleepUntil(dueMs: () => number, limitMs: number): Promise<void> {
    const { signal } = this.#settings;
    const endMs = this.#nowMs + limitMs;
    for (let ticked = !this.#failedByMajority;; ticked = true) {
      this.#pauseEndMs = Math.min(dueMs(), endMs);
      const leftMs = this.#pauseEndMs - this.#nowMs;
      if (leftMs <= 0 && ticked || signal?.aborted || this.#nodeSet.closed) return;
      this.#pause = new Pause(this.#nodeSet.wheel, Math.max(0, leftMs), signal);
      await this.#pause.over;
      this.#pause = undefined;
    }
  }

  onQueueMessage(nodeIndex: number, { notice, waitMs = 0, place }: QueueMessage): void {
    const news = this.#news;
    if (notice === "turn" || notice === "beside") {
      if (news.notifiedBy === 0) this.foreign.concede(this.#nowMs, this.#random);
      news.onNotified(nodeIndex, place, notice === "turn");
      this.#idles = 0;
      if (this.#last) this.#planByNews();
    } else if (this.#failedByMajority) {
      return;
    } else if (notice === "taken") {
      news.onTaken(nodeIndex, place, this.#nowMs + waitMs + this.#staggerMs);
    } else {
      news.onWatch(nodeIndex, place, this.#overMs(waitMs));
    }
    // a later time it finds when the pause is over
    if (this.#dueMs() < this.#pauseEndMs) this.#pause?.end();
  }

  onSubscriptionChange(): void {
    this.#ticket.onSubscriptionChange();
    if (this.#last) {
      // without a quorum of nodes it polls, and leaves the queues
      const polls = this.#polls === 0 && !this.#ticket.notifications.hasQuorum;
      this.#askMs = Math.min(this.#askMs, polls ? this.#pollMs() : this.#joinMs());
    }
    this.#pause?.end();
  }

  /**
   * Plans to ask because of a notification: at once at the first, because the other nodes were
   * asked to release at the same time, and have done so before this client's request reaches them.
   */
  #planByNews(): void {
    const { quorum } = this.#nodeSet;
    const nodes = bitCount(this.#news.notifiedBy);
    let graceMs = 0;
    if (this.#failedByMajority) {
      // What undoes an attempt notifies the next client. So while too few nodes answer, all would
      // notify each other.
      if (nodes < quorum) return;
    } else if (this.#wasNotified && nodes < quorum) {
      // The last ask followed a notification, too, so several clients asked at once: it waits for
      // more nodes, or for a time that differs from client to client. If the vote was split again,
      // that is longer, so that another may win; but it asks while it has its turn, because when
      // that is over others ask, and the vote is split again.
      graceMs = this.#splits > 1 ? this.#around(this.#ticket.patienceMs / 2) : this.#graceMs();
    }
    this.#followMs = Math.min(this.#followMs, this.#nowMs + graceMs);
  }

  /**
   * Once so many nodes have answered the last attempt that they show where the ticket stands, plans
   * by that, once, when to ask though no node notifies it.
   */
  #planByVotes(last: Round): void {
    const standing = this.#ticket.learn(last);
    if (!standing) return;
    last.onDenied = undefined;
    const { ahead, isLast, foreign, freeInMs, turn } = standing;
    this.#staggerMs = STAGGER_MS * (isLast ? Math.min(ahead, AHEAD_MAX) : ahead);
    const askedInVain = this.#wasNotified && this.#ticket.keys.length > 1;
    if (askedInVain) this.#restUntilMs = this.#within(REST_MS_MAX);
    // Contenders may have split the vote, so that nobody has the lock; or somebody has it by a bare
    // quorum.
    const split = last.granted > 0 || freeInMs === 0 && ahead === 0;
    this.#splits = split ? this.#splits + 1 : 0;
    if (foreign) this.foreign.note(this.#nowMs);
    if (turn) {
      // one of those ahead has the turn
      const staggers = isLast ? Math.min(ahead - 1, LAST_STAGGERS_MAX) : ahead - 1;
      this.#news.endAt(turn.turnPlace, this.#overMs(turn.turnMs + STAGGER_MS * staggers));
    }
    this.#askMs = Math.min(
      this.#joinMs(),
      this.#splitMs(),
      this.#foreignMs(standing),
      this.#idleMs(standing),
      this.#freeMs(standing),
    );
    this.#idles++;
    this.#polls = 0;
    this.#pause?.end();
  }

  /** When to ask again because the vote was split: ever later, until one of the contenders wins. */
  #splitMs(): number {
    return this.#splits === 0 ? Infinity : this.#nowMs + this.#graceMs(this.#splits);
  }

  /**
   * When the first polls because the holder is of another library, and will notify nobody; not if
   * it would take a free key from others again and again, where another key is held.
   */
  #foreignMs({ foreign, ahead, freeInMs }: Standing): number {
    const takesFreeKey = this.#splits >= SPLITS_MAX && this.#ticket.keys.length > 1;
    if (!foreign || ahead > 0 || takesFreeKey) return Infinity;
    const { retryDelayMs } = this.#settings;
    return this.#within(this.foreign.nextPollMsMax(this.#nowMs, freeInMs, retryDelayMs));
  }

  /** When to ask though nothing has happened: the rarer, the more often that was so before. */
  #idleMs({ ahead }: Standing): number {
    const longestMs = Math.min(this.#longestDelayMs * 2 ** this.#idles * (1 + ahead), IDLE_MS_MAX);
    return this.#nowMs + longestMs * (1 + this.#random.fraction()) / 2;
  }

  /** When to ask because the keys in the way should have expired. */
  #freeMs({ ahead, isLast, freeInMs }: Standing): number {
    if (freeInMs === 0) return Infinity;
    const times = isLast || ahead <= AHEAD_MAX ? 1 : 2 ** this.#idles;
    return this.#nowMs + freeInMs * times + this.#staggerMs;
  }

  /** When to ask because a turn is over, which lasts for so many milliseconds yet. */
  #overMs(leftMs: number): number {
    // mutation: stuck-first-never-overtaken
    return this.#nowMs + leftMs + this.foreign.concedeMsMax(this.#nowMs);
  }

  /**
   * When to ask because more nodes can notify the ticket than when it last asked; `Infinity` if
   * that is no reason. With a quorum of them, it misses no release. But every node should have it:
   * one that has not would notify another in its place, who could not win.
   */
  #joinMs(): number {
    const { canJoin, score, isQueued } = this.#ticket;
    if (!canJoin) return Infinity;
    if (score === 0) return this.#nowMs; // it was never sent
    return this.#within(isQueued ? JOIN_MS_MAX : RECOVERY_MS_MAX);
  }

  /**
   * Half a round trip to one and a half, in milliseconds: a notification is on its way, or will not
   * come. Longer after split votes, but about `#longestDelayMs` at most: votes are split without
   * contenders, too, if keys in the way expire on one node after another.
   */
  #graceMs(splits = 0): number {
    const roundTripMs = Math.min(this.#last!.slowestMs, ROUND_TRIP_MS_MAX);
    const graceMs = Math.max(GRACE_MS_MIN, roundTripMs) * SPLIT_FACTOR ** splits;
    return this.#around(Math.min(graceMs, this.#longestDelayMs));
  }

  /** The longest delay of a call that polls, or that of one that is idle, in milliseconds. */
  get #longestDelayMs(): number {
    return Math.max(this.#settings.retryDelayMaxMs, IDLE_MS_MIN);
  }

  /** When to ask if it polls: the rarer, the more often it did before. */
  #pollMs(): number {
    return this.#nowMs + backoffMs(this.#random, this.#settings, this.#polls++);
  }

  /** Half to one and a half times so many milliseconds, at random. */
  #around(ms: number): number {
    return ms * (0.5 + this.#random.fraction());
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
