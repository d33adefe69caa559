/**
 * Waiting to be notified: this client's ticket in the queues of all clients for one lock.
 *
 * **What it knows** is in two objects: where it stands ({@linkcode Ticket}), and how clients of
 * other libraries share the lock ({@linkcode ContendedResource}). Whose turn it is, and until when,
 * is what the nodes know: it only knows when to look.
 *
 * **When it asks**: at the earliest of these times, because a notification is a hint and never
 * more.
 *
 * - A node has notified it (`#planNotified`), unless the lock is left to clients of other libraries
 *   for a moment.
 * - Another's turn is over, and that client has not used it; or a key expires that a lock which has
 *   ended kept ({@linkcode WatchedTurn}).
 * - So many of the keys in its way have expired that a quorum is possible; or, ever more rarely,
 *   nothing has happened (`#planUnnotified`).
 * - Too few nodes can notify it, so it polls (`#planAsk`); or one more can than when it last asked
 *   (`#joinMs`).
 *
 * **Its life.** It is made for the first call of this client that must wait, and serves one call
 * after another. While the client has the lock it is parked, and the release takes the ticket out
 * of the queues of nodes that denied: if it left at once, they would notify the next client, which
 * could not win. Then the next call is `requeue`d with a new ticket. The waiter leaves when no
 * call waits. It is dropped (`LocalQueues.dropWaiter`) when the call has a lock that others may
 * have beside it or whose keys may live on, or must wait for a cooldown.
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
import { Ticket, type WaitingCall } from "./ticket.ts";
import { WatchedTurn } from "./watched_turn.ts";

/** By how much longer each wait is than the one before if the vote was split. */
const SPLIT_FACTOR = 4;
/**
 * The least limit of the delay before the first in the queue asks though nothing has happened, in
 * milliseconds.
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
  notifiedOn = 0;
  /** The same for those that said so of that key, and where nobody has taken it since. */
  freeOn = 0;
  /** Which key of a pool the first of them said is free. */
  place: number | undefined = undefined;
  /** Whether one said that it is the ticket's turn for a free key, and not only beside readers. */
  hasTurn = false;
  /** When the keys expire that another has taken. */
  expiryMs = Infinity;
}

/** How often in a row something has happened. */
class InARow {
  /** The vote was split. */
  splits = 0;
  /** It asked though no node had notified it. */
  idles = 0;
  /** It asked because more nodes can notify the ticket. */
  joins = 0;
  /** It asked to enter beside readers, and another of its keys was in the way. */
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
  readonly #wanted: Pick<WaitingCall, "keys" | "pool" | "mode">;
  #news = new News();
  /** When to ask because of a notification, by the monotonic clock, as all times here. */
  #notifiedMs = Infinity;
  /** The turn of another. */
  readonly #turn: WatchedTurn;
  /** When to ask for any other reason. */
  #askMs = Infinity;
  /** The last attempt, while too few nodes have answered it to say when to ask. */
  #unheard: Round | undefined = undefined;
  /** How long the slowest node took to answer last, in milliseconds. */
  #roundTripMs = 0;
  /**
   * How much later than the end of a key's TTL it asks, in milliseconds: the later, the more
   * tickets are ahead. But the last does not wait for them: all may be gone.
   */
  #staggerMs = 0;
  /** Whether too few nodes answered the last ask. */
  #unanswered = false;
  /** Whether that was because some are in quarantine. */
  #young = false;
  #inARow = new InARow();
  #pause: Pause | undefined = undefined;
  /** Whether this client has the lock. */
  #parked = false;

  constructor(
    notifications: ReleaseNotifications,
    nodeSet: NodeSet,
    { keys, pool, mode }: Pick<WaitingCall, "keys" | "pool" | "mode">,
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
    if (this.#news.notifiedOn !== 0) this.#planNotified();
    this.#planUnnotified(attempt, denied);
    const dueMs = () => {
      const notifiedMs = Math.max(this.#notifiedMs, this.resource.concededUntilMs);
      return Math.min(notifiedMs, this.#askMs, this.#turn.endMs, this.#news.expiryMs);
    };
    await this.#sleepUntil(dueMs, limitMs, signal);
    this.#hearVotes(); // that came meanwhile
    this.#unheard = undefined;
    this.notified = this.#news.notifiedOn !== 0;
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
    const bit = 1 << nodeIndex;
    if (notice === "taken" && place === this.#news.place) this.#news.freeOn &= ~bit;
    if (notice === "turn" || notice === "beside") {
      if (this.#news.notifiedOn === 0) {
        this.resource.concede(this.#nowMs, this.#random);
        this.#news.place = place;
      }
      this.#news.notifiedOn |= bit;
      if (place === this.#news.place) this.#news.freeOn |= bit;
      if (notice === "turn") this.#news.hasTurn = true;
      this.#inARow.idles = this.#inARow.joins = 0;
      if (this.#pause) this.#planNotified();
    } else if (this.#unanswered || !this.#turn.watch(place)) {
      return;
    } else if (notice === "taken") {
      if (this.#turn.onTaken(nodeIndex)) {
        this.#news.expiryMs = this.#nowMs + waitMs! + this.#staggerMs;
      }
    } else {
      const laterMs = OVERTAKE_LATER_MS * (0.5 + this.#random.fraction());
      this.#turn.onBegun(nodeIndex, this.#askAtEnd(waitMs! + laterMs));
    }
    this.#pause?.end();
  }

  onSubscriptionChange(): void {
    this.ticket.onSubscriptionChange();
    if (!this.#pause) return;
    this.#askMs = Math.min(this.#askMs, this.#joinMs());
    if (this.ticket.stands && !this.#notifications.hasQuorum) {
      const delayMs = backoffMs(this.#random, this.settings, 0);
      this.#askMs = Math.min(this.#askMs, this.#nowMs + delayMs);
    }
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
   * Asks at the first notification: the other nodes were asked to release at the same time, and
   * have done so before this client's request reaches them. If that did not win the lock, several
   * clients asked at once: then it waits for more of the other nodes, or for a time that differs
   * from client to client. If too few nodes answered, fewer than a quorum count for nothing, and it
   * asks later if some are in quarantine: what undoes an attempt notifies the next client, so all
   * would notify each other until a quorum is back.
   */
  #planNotified(): void {
    const { quorum } = this.#nodeSet;
    const { notifiedOn, hasTurn } = this.#news;
    if (this.#unanswered && bitCount(notifiedOn) < quorum) return;
    const entries = this.#young ? Infinity : hasTurn ? 0 : this.#inARow.entries;
    if (entries > 0) {
      if (this.#notifiedMs !== Infinity) return;
      this.#notifiedMs = this.#nowMs + backoffMs(this.#random, BACKOFFS.entry, entries);
      return;
    }
    // If the last ask followed a notification, too, that was not enough.
    const enough = this.notified ? Math.min(quorum, this.ticket.queuedCount) : 1;
    // If the vote is split again and again, what undoes each attempt notifies the next client,
    // which splits it again. But a quorum that keeps the key for the ticket is not kept waiting:
    // it would give the turn to another.
    const splitAgain = this.notified && this.#inARow.splits > 1 &&
      bitCount(this.#news.freeOn) < quorum;
    const graces = splitAgain ? SPLIT_FACTOR ** 2 : Number(bitCount(notifiedOn) < enough);
    this.#notifiedMs = Math.min(this.#notifiedMs, this.#nowMs + graces * this.#graceMs());
  }

  /** Plans to poll; and if so many nodes have answered that it is not necessary, not to. */
  #planUnnotified(attempt: number, denied: Round): void {
    // A release between the first denial and the subscription notifies nobody.
    const isEarly = this.#notifications.isSubscribing && !this.ticket.isQueued;
    this.#unheard = isEarly || denied.unanswered ? undefined : denied;
    const pollMs = isEarly
      ? this.#graceMs(POLL_ROUND_TRIP_MS_MAX) * POLL_FACTOR * 2 ** attempt
      : backoffMs(this.#random, this.settings, attempt);
    // If the round was decided early, the other nodes' answers are on their way.
    const laterMs = this.#unheard ? this.#graceMs() : 0;
    this.#askMs = Math.min(this.#nowMs + pollMs + laterMs, this.#joinMs());
    this.#hearVotes();
  }

  /** Plans again once so many nodes have answered that they show when a quorum may be possible. */
  #hearVotes(): void {
    const { quorum } = this.#nodeSet;
    const denied = this.#unheard;
    const freeInMs = denied ? this.ticket.freeInMs(denied) : [];
    if (!denied || freeInMs.length < quorum) return;
    this.#unheard = undefined;
    // those that have not answered may have nothing in the way
    const askMs = this.#askAfter(denied, freeInMs[Math.max(0, quorum - 1 - denied.pending)]);
    // no poll is necessary while a quorum can notify it
    const otherwiseMs = this.#notifications.hasQuorum ? this.#joinMs() : this.#askMs;
    this.#askMs = Math.min(askMs, otherwiseMs);
    this.#pause?.end();
  }

  /**
   * Notes what the votes of an attempt show, and returns when to ask if no notification comes.
   *
   * @param denied The attempt, which put the ticket in queues.
   * @param freeInMs When a quorum of nodes should have nothing in the way, from now, in
   * milliseconds.
   */
  #askAfter(denied: Round, freeInMs: number): number {
    const positions = this.ticket.positionsIn(denied);
    const ahead = Math.max(0, ...positions.map((position) => position.ahead));
    // Contenders may have split the vote, so that nobody has the lock; or somebody has it by a bare
    // quorum.
    const split = denied.granted > 0 || freeInMs === 0 && ahead === 0;
    const foreign = positions.some((position) => position.foreign);
    this.ticket.agree(positions, denied.granted);
    this.resource.noteHolder(foreign, this.#nowMs);
    this.#noteEntry(positions);
    this.#inARow.splits = split ? this.#inARow.splits + 1 : 0;
    const idleTimes = 2 ** this.#inARow.idles++;
    const delaysMs = [this.#idleMs(ahead, idleTimes)];
    if (split) delaysMs.push(this.#graceMs() * SPLIT_FACTOR ** this.#inARow.splits);
    if (foreign && ahead === 0) { // its holder will notify nobody
      const pollMsMax = this.resource.nextPollMsMax(
        this.#nowMs,
        freeInMs,
        this.settings.retryDelayMs,
      );
      delaysMs.push(pollMsMax * this.#random.fraction());
    }
    // mutation: last-asks-ever-more-rarely
    const isLast = positions.some((position) => position.ahead === position.length - 1);
    const times = ahead <= AHEAD_MAX || isLast ? 1 : idleTimes;
    this.#staggerMs = STAGGER_MS * (isLast ? Math.min(ahead, AHEAD_MAX) : ahead);
    if (freeInMs > 0) delaysMs.push(freeInMs * times + this.#staggerMs);
    if (ahead > 0) this.#planOvertaking(positions, ahead, denied.granted);
    // mutation: unnotified-waiter-never-asks
    return this.#nowMs + Math.min(...delaysMs);
  }

  /** Counts how often in a row it was notified and one of several keys was in the way. */
  #noteEntry(positions: readonly QueuePosition[]): void {
    const isHeld = positions.some(({ value }) => value);
    if (!this.notified || !isHeld || this.#wanted.keys.length === 1) this.#inARow.entries = 0;
    else this.#inARow.entries++;
  }

  /**
   * How long to wait if nothing else is expected, in milliseconds: the longer, the more often
   * nothing has happened.
   */
  #idleMs(ahead: number, times: number): number {
    const { retryDelayMaxMs } = this.settings;
    const idleMs = Math.max(retryDelayMaxMs, IDLE_MS_MIN) * times * (1 + ahead);
    return Math.min(idleMs, IDLE_MS_MAX) * (1 + this.#random.fraction()) / 2;
  }

  /**
   * Plans to ask when the turns of those ahead are over on so many nodes that it can get a quorum.
   *
   * @param granted How many nodes granted the last attempt.
   */
  #planOvertaking(positions: readonly QueuePosition[], ahead: number, granted: number): void {
    const turns = positions.filter(({ turnMs, reserved }) =>
      turnMs > 0 && this.#turn.watch(reserved)
    )
      .map(({ turnMs }) => turnMs).sort((one, other) => one - other);
    const needed = Math.min(this.#nodeSet.quorum - granted, turns.length);
    if (needed > 0) this.#turn.endAt(this.#askAtEnd(turns[needed - 1] + STAGGER_MS * (ahead - 1)));
  }

  /** When to ask because a turn is over that lasts for so many milliseconds. */
  #askAtEnd(leftMs: number): number {
    // mutation: stuck-first-never-overtaken
    return this.#nowMs + leftMs + this.resource.concedeMsMax(this.#nowMs);
  }

  /**
   * When to ask because a node can notify the ticket that could not before. If a quorum of nodes
   * has it, it misses no release. But all nodes should have it: those that do not notify others in
   * its place, who ask for nothing.
   */
  #joinMs(): number {
    const { hasQuorum, isSubscribing } = this.#notifications;
    if (!hasQuorum || isSubscribing || !this.ticket.canJoin) return Infinity;
    if (this.ticket.score === 0) return this.#nowMs; // it was never sent
    const limits = this.ticket.isQueued ? BACKOFFS.join : BACKOFFS.recovery;
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
