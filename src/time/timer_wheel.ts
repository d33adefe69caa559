/**
 * One timer for everything that waits: deadlines of rounds, ends of validity, reconnects.
 *
 * A timer of the runtime costs more than the rest of a lock's work. So entries are linked into the
 * slots of a wheel in constant time, and a single timer wakes up for the earliest of them.
 *
 * An entry is always in one list: a slot of the wheel, the list of entries that this wake-up calls,
 * or one of the lists of deadlines that are due and wait until the runtime has read its sockets.
 * `onDue` may therefore call anything, also {@linkcode TimerWheel.close}: an entry that was not
 * called yet can still be found, moved and cancelled.
 *
 * @module
 */
import { type Clock, clockIn, type TimerHandle } from "./clock.ts";
import { ContinuousClock } from "./continuous_clock.ts";
import { OwnContext } from "./own_context.ts";
import { type Random, systemRandom } from "./random.ts";

/** Slots of the wheel, a power of two. */
const SLOTS = 256;
/** Milliseconds of one slot. */
const SLOT_MS = 8;
/**
 * Longest sleep of the one timer, in milliseconds, while there is any entry. Each wake-up looks at
 * the clocks, so this bounds how late a wheel notices that the machine was suspended or that the
 * wall clock was stepped.
 */
const HEARTBEAT_MS = 250;
/** How late a wake-up must be to show that the process was stopped, in milliseconds. */
const STOPPED_MS = 1_000;
/**
 * How late a wake-up must be to be remembered, in milliseconds: timers are that late if a machine
 * is busy.
 */
const LATE_MS_MIN = 20;
/** Most late wake-ups that are remembered; the oldest is forgotten for one more. */
const DELAYS_MAX = 16;
/**
 * Ticks of the event loop between the time of a deadline and its call. A runtime may run timers
 * before it reads its sockets, and after the loop was busy every reply may be in a socket already.
 * A reply passes through as many tasks on its way to a caller (the runtime suite checks it).
 */
const DEADLINE_TURNS = 3;
/** The list of an entry that is in no wheel. */
const NOWHERE = -1;
/** The list of entries that this wake-up has to call. */
const DUE = SLOTS;
/**
 * The list of deadlines that are due. Each wake-up moves them one list on, until they are in
 * {@linkcode DUE}.
 */
const LATE = DUE + DEADLINE_TURNS;

/** Why the time of a process passed without it, in milliseconds. */
export interface Delay {
  /** How long it stood still, by the monotonic clock. */
  readonly stoodMs: number;
  /** How far the wall clock was stepped ahead. A machine that slept looks the same. */
  readonly steppedMs: number;
}

/** Something that is due at a time. Its owner extends it, so that waiting allocates nothing. */
export abstract class TimerEntry {
  /** When it is due, in milliseconds of the monotonic clock. Meaningful while `scheduled`. */
  dueMs = 0;
  /** @internal */ next: TimerEntry | undefined;
  /** @internal */ previous: TimerEntry | undefined;
  /** @internal The list that it is in. */ slot = NOWHERE;

  /** Whether it waits in a wheel: from its scheduling until it is called or cancelled. */
  get scheduled(): boolean {
    return this.slot !== NOWHERE;
  }

  /**
   * Whether its call ends a wait for bytes. Then the runtime gets ticks to read its sockets before
   * the call.
   */
  get isDeadline(): boolean {
    return false;
  }

  /**
   * Called once when it is due. Also called after a step of {@linkcode TimerWheel.continuous}: then
   * it may be early, and schedules itself again. An exception reaches the runtime as one of any
   * timer does.
   */
  abstract onDue(): void;

  /** Called when the lock client closes. */
  onClosed(): void {}
}

/** A callback as an entry, for waits that have no object of their own. */
class CallbackEntry extends TimerEntry {
  readonly #callback: () => void;
  readonly #closed: (() => void) | undefined;
  readonly #wheel: TimerWheel;

  constructor(wheel: TimerWheel, callback: () => void, closed?: () => void) {
    super();
    this.#wheel = wheel;
    this.#callback = callback;
    this.#closed = closed;
  }

  override onDue(): void {
    if (this.#wheel.clock.monotonicMs() < this.dueMs) this.#wheel.schedule(this, this.dueMs);
    else this.#callback();
  }

  override onClosed(): void {
    this.#closed?.();
  }
}

/** A callback that ends a wait for bytes. */
class DeadlineEntry extends CallbackEntry {
  override get isDeadline(): boolean {
    return true;
  }
}

/**
 * The wheel. It also carries the clock, the randomness and the async context of the client, which
 * the same parts need.
 */
export class TimerWheel {
  /** The async context in which it was made. */
  readonly context: OwnContext = new OwnContext();
  /** The clock. Entries are due by its monotonic milliseconds. */
  readonly clock: Clock;
  /** The clock by which a lock's validity passes. */
  readonly continuous: ContinuousClock;
  /** The source of randomness. */
  readonly random: Random;
  /** Whether it was closed; set by {@linkcode close}. */
  closed = false;
  /** The first entry of each list. */
  readonly #lists: (TimerEntry | undefined)[] = new Array(LATE + 1).fill(undefined);
  #size = 0;
  #refs = 0;
  #timer: TimerHandle = undefined;
  #armed = false;
  #waking = false;
  #wakeMs = 0;
  #visitedTick = 0;
  #steppedMs = 0;
  #stoppedMs = -Infinity;
  /** The last delays, and when each was over, by the continuous clock. */
  readonly #delays: (Delay & { readonly endMs: number })[] = [];

  /**
   * @param clock The clock; by default the runtime's, whose timers fire in the async context in
   * which the wheel was made.
   * @param random The source of randomness.
   */
  constructor(clock?: Clock, random: Random = systemRandom) {
    this.clock = clock ?? clockIn(this.context);
    this.continuous = new ContinuousClock(this.clock);
    this.random = random;
  }

  /** The number of entries. */
  get size(): number {
    return this.#size;
  }

  /**
   * Until when the process was stopped for a second or more, as far as late wake-ups show, by the
   * monotonic clock.
   */
  stoppedUntilMs(nowMs: number): number {
    // sockets may be read before the timer
    const isLate = this.#armed && nowMs - this.#wakeMs >= STOPPED_MS;
    return isLate ? nowMs : this.#stoppedMs;
  }

  /**
   * By how much the process was delayed since `sinceMs` of the continuous clock, as far as late
   * wake-ups show.
   */
  delayedSince(sinceMs: number): Delay {
    const now = this.#armed ? [this.#delayAt(this.continuous.look())] : [];
    const delays = [...this.#delays.filter(({ endMs }) => endMs > sinceMs), ...now];
    const sum = (name: keyof Delay) => delays.reduce((ms, delay) => ms + delay[name], 0);
    // the first may have begun before
    const stoodMs = Math.min(sum("stoodMs"), this.continuous.nowMs() - sinceMs);
    return { stoodMs, steppedMs: sum("steppedMs") };
  }

  /**
   * By how much the process was delayed since the timer was set. If the timer is late, that began
   * at the last look at the clocks before it was due.
   */
  #delayAt(nowMs: number): Delay {
    const { gapFromMs, gapToMs, steppedMs } = this.continuous;
    const late = nowMs - this.#wakeMs >= LATE_MS_MIN;
    const fromMs = gapToMs >= this.#wakeMs ? Math.min(gapFromMs, this.#wakeMs) : this.#wakeMs;
    return { stoodMs: late ? nowMs - fromMs : 0, steppedMs: steppedMs - this.#steppedMs };
  }

  /** Makes `entry` due at `dueMs` of the monotonic clock; moves it if it is in the wheel. */
  schedule(entry: TimerEntry, dueMs: number): void {
    if (entry.scheduled) this.#unlink(entry);
    entry.dueMs = dueMs;
    // An entry in the past goes where the next visit begins, never into a slot that was just
    // passed.
    this.#link(entry, Math.max(Math.floor(dueMs / SLOT_MS), this.#visitedTick) & (SLOTS - 1));
    if (this.#waking) return; // armed at its end, for the earliest of all
    const isSet = this.#armed && !this.clock.isLost?.(this.#timer);
    if (!isSet || dueMs < this.#wakeMs) this.#arm(dueMs);
  }

  /** Removes `entry`; does nothing if it is not in the wheel, or `undefined`. */
  cancel(entry: TimerEntry | undefined): void {
    if (entry?.scheduled) this.#unlink(entry);
  }

  /** Calls `callback` once after `delayMs`, unless the returned entry is cancelled. */
  after(delayMs: number, callback: () => void): TimerEntry {
    return this.#callAfter(delayMs, new CallbackEntry(this, callback));
  }

  /**
   * The same for the end of a wait for bytes: the runtime gets ticks to read its sockets before. If
   * the client closes before, calls `closed`.
   */
  deadline(delayMs: number, callback: () => void, closed?: () => void): TimerEntry {
    return this.#callAfter(delayMs, new DeadlineEntry(this, callback, closed));
  }

  /** Keeps the process alive until {@linkcode unref}, because a caller waits for an entry. */
  ref(): void {
    if (this.#refs++ > 0) return;
    if (this.#armed) this.clock.keepAlive(this.#timer, true);
    else if (!this.closed && !this.#waking) this.#arm(Infinity);
  }

  /** The counterpart of {@linkcode ref}. */
  unref(): void {
    if (--this.#refs === 0 && this.#armed) this.clock.keepAlive(this.#timer, false);
  }

  /** Calls `onClosed` of every entry. */
  announceClose(): void {
    for (const entry of this.#entries()) {
      if (entry.scheduled) entry.onClosed(); // the one before may have cancelled it
    }
  }

  /** Removes every entry, calls its `onClosed`, and clears the timer. */
  close(): void {
    this.closed = true;
    this.#disarm();
    for (const entry of this.#entries()) {
      if (!entry.scheduled) continue;
      this.#unlink(entry);
      entry.onClosed();
    }
  }

  #entries(): TimerEntry[] {
    const entries: TimerEntry[] = [];
    for (const first of this.#lists) {
      for (let entry = first; entry; entry = entry.next) entries.push(entry);
    }
    return entries;
  }

  #callAfter(delayMs: number, entry: CallbackEntry): TimerEntry {
    this.schedule(entry, this.clock.monotonicMs() + delayMs);
    return entry;
  }

  #link(entry: TimerEntry, list: number): void {
    const first = this.#lists[list];
    entry.slot = list;
    entry.previous = undefined;
    entry.next = first;
    if (first) first.previous = entry;
    this.#lists[list] = entry;
    this.#size++;
  }

  #unlink(entry: TimerEntry): void {
    if (entry.previous) entry.previous.next = entry.next;
    else this.#lists[entry.slot] = entry.next;
    if (entry.next) entry.next.previous = entry.previous;
    entry.slot = NOWHERE;
    entry.next = entry.previous = undefined;
    if (--this.#size === 0 && this.closed) this.#disarm();
  }

  #disarm(): void {
    if (this.#armed && !this.clock.isLost?.(this.#timer)) this.clock.clearTimer(this.#timer);
    this.#armed = false;
  }

  #arm(dueMs: number): void {
    const nowMs = this.clock.monotonicMs();
    this.#disarm();
    this.#wakeMs = Math.min(dueMs, nowMs + HEARTBEAT_MS);
    this.#timer = this.clock.setTimer(this.#wake, Math.max(Math.ceil(this.#wakeMs - nowMs), 0));
    this.#armed = true;
    if (this.#refs > 0) this.clock.keepAlive(this.#timer, true);
  }

  readonly #wake = (): void => {
    this.#disarm(); // this may be a timer of before, next to the one that was set instead
    const nowMs = this.continuous.look();
    const { steppedMs } = this.continuous;
    // mutation: steps-unnoticed
    const stepped = steppedMs > this.#steppedMs;
    const lateMs = nowMs - this.#wakeMs + steppedMs - this.#steppedMs;
    if (lateMs >= STOPPED_MS) this.#stoppedMs = nowMs;
    if (lateMs >= LATE_MS_MIN) {
      this.#delays.push({ ...this.#delayAt(nowMs), endMs: nowMs + steppedMs });
      if (this.#delays.length > DELAYS_MAX) this.#delays.shift();
    }
    this.#steppedMs = steppedMs;
    this.#waking = true;
    this.#moveLate();
    this.#collectDue(nowMs, stepped);
    try {
      for (let entry = this.#lists[DUE]; entry; entry = this.#lists[DUE]) {
        this.#unlink(entry);
        entry.onDue();
      }
    } finally {
      // If an entry threw, the next wake-up calls the others.
      if (this.#size > 0 || this.#refs > 0 && !this.closed) this.#arm(this.#earliestMs(nowMs));
      this.#waking = false;
    }
  };

  /** One more tick of the event loop is over for the deadlines that are due. */
  #moveLate(): void {
    for (let list = DUE + 1; list <= LATE; list++) {
      for (let entry = this.#lists[list]; entry; entry = this.#lists[list]) {
        this.#unlink(entry);
        this.#link(entry, list - 1);
      }
    }
  }

  /**
   * Moves what is due at `nowMs`, or everything after a step of the clocks, to the list of what has
   * to be called: the latest first, so that the earliest ends up at its head. Deadlines go to the
   * last list instead. The monotonic clock runs backwards when a test's fake timers begin or end,
   * and what was linked meanwhile is in slots that come later. An entry that was linked before
   * keeps the time at which it was due.
   */
  #collectDue(nowMs: number, everything: boolean): void {
    const tick = Math.floor(nowMs / SLOT_MS);
    everything ||= tick < this.#visitedTick;
    const first = everything ? tick - SLOTS + 1 : Math.max(this.#visitedTick, tick - SLOTS + 1);
    for (let visited = tick; visited >= first; visited--) {
      let entry = this.#lists[visited & (SLOTS - 1)];
      while (entry) {
        const next: TimerEntry | undefined = entry.next;
        if (everything || entry.dueMs <= nowMs) {
          this.#unlink(entry);
          // mutation: late-deadline-judged-at-once
          this.#link(entry, entry.isDeadline ? LATE : DUE);
        }
        entry = next;
      }
    }
    this.#visitedTick = tick;
  }

  /** The earliest due time within a heartbeat from `nowMs`, or the heartbeat's end. */
  #earliestMs(nowMs: number): number {
    for (let list = DUE; list <= LATE; list++) if (this.#lists[list]) return nowMs;
    const tick = Math.floor(nowMs / SLOT_MS);
    const heartbeatMs = nowMs + HEARTBEAT_MS;
    for (let ahead = 0; ahead <= Math.ceil(HEARTBEAT_MS / SLOT_MS); ahead++) {
      let earliestMs = Infinity;
      let entry = this.#lists[(tick + ahead) & (SLOTS - 1)];
      for (; entry; entry = entry.next) earliestMs = Math.min(earliestMs, entry.dueMs);
      if (earliestMs < (tick + ahead + 1) * SLOT_MS) return earliestMs;
    }
    return heartbeatMs;
  }
}
