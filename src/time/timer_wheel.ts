/**
 * One timer for everything that waits: deadlines of rounds, ends of validity, reconnects.
 *
 * A timer of the runtime costs more than the rest of a lock's work. So entries are linked into the
 * slots of a wheel in constant time, and a single timer wakes up for the earliest of them.
 *
 * An entry is in its slot until it is called. `onDue` may therefore call anything, also
 * {@linkcode TimerWheel.close}: an entry that was not called yet can still be found, moved and
 * cancelled.
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
 * How many wake-ups that find a deadline due do not call it yet, so many ticks of the event loop. A
 * runtime may run timers before it reads its sockets, and after the loop was busy every reply may
 * be in a socket already. A reply passes through as many tasks on its way to a caller (the runtime
 * suite checks it).
 */
const DEADLINE_WAKES = 3;
/** The slot of an entry that is in none. */
const NOWHERE = -1;

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
  /** @internal */ slot = NOWHERE;
  /** @internal How many wake-ups that find it due do not call it yet. */ wakesLeft = 0;

  /** Whether it waits in a wheel: from its scheduling until it is called or cancelled. */
  get scheduled(): boolean {
    return this.slot !== NOWHERE;
  }

  /** Called once when it is due. An exception reaches the runtime. */
  abstract onDue(): void;

  /** Called after a step of {@linkcode TimerWheel.continuous}: it may have to be due earlier. */
  onStepped(): void {}

  /** Called when the lock client closes. */
  onClosed(): void {}
}

/** A callback as an entry, for waits that have no object of their own. */
class CallbackEntry extends TimerEntry {
  readonly #callback: () => void;

  constructor(callback: () => void) {
    super();
    this.#callback = callback;
  }

  override onDue(): void {
    this.#callback();
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
  /** The first entry of each slot. */
  readonly #slots: (TimerEntry | undefined)[] = new Array(SLOTS).fill(undefined);
  #size = 0;
  /** The tick of the last wake-up: a tick lasts as long as a slot. */
  #tick = 0;
  #refs = 0;
  /** The one timer, if it is set; what set it, and when it is due. */
  #timer: TimerHandle = undefined;
  #setBy: unknown;
  #wakeMs = 0;
  #waking = false;
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
    const isLate = this.#isSet && nowMs - this.#wakeMs >= STOPPED_MS;
    return isLate ? nowMs : this.#stoppedMs;
  }

  /**
   * By how much the process was delayed since `sinceMs` of the continuous clock, as far as late
   * wake-ups show.
   */
  delayedSince(sinceMs: number): Delay {
    const now = this.#isSet ? [this.#delayAt(this.continuous.look())] : [];
    const delays = [...this.#delays.filter(({ endMs }) => endMs > sinceMs), ...now];
    const sum = (name: keyof Delay) => delays.reduce((ms, delay) => ms + delay[name], 0);
    // the first may have begun before
    const stoodMs = Math.min(sum("stoodMs"), this.continuous.nowMs() - sinceMs);
    return { stoodMs, steppedMs: sum("steppedMs") };
  }

  /** By how much the process was delayed since the timer was set. */
  #delayAt(nowMs: number): Delay {
    const lateMs = nowMs - this.#wakeMs;
    const stoodMs = lateMs >= LATE_MS_MIN ? lateMs : 0;
    return { stoodMs, steppedMs: this.continuous.steppedMs - this.#steppedMs };
  }

  /**
   * Makes `entry` due at `dueMs` of the monotonic clock; moves it if it is in the wheel.
   *
   * @param isDeadline Whether its call ends a wait for bytes. Then the runtime gets ticks to read
   * its sockets before the call.
   */
  schedule(entry: TimerEntry, dueMs: number, isDeadline = false): void {
    entry.dueMs = dueMs;
    entry.wakesLeft = isDeadline ? DEADLINE_WAKES : 0;
    this.#link(entry, dueMs);
    if (this.#waking) return; // armed at its end, for the earliest of all
    if (!this.#isSet || this.#isLost || dueMs < this.#wakeMs) this.#arm(dueMs);
  }

  /** Removes `entry`; does nothing if it is not in the wheel, or `undefined`. */
  cancel(entry: TimerEntry | undefined): void {
    if (!entry?.scheduled) return;
    const { previous, next } = entry;
    if (previous) previous.next = next;
    else this.#slots[entry.slot] = next;
    if (next) next.previous = previous;
    entry.slot = NOWHERE;
    entry.next = entry.previous = undefined;
    if (--this.#size === 0 && this.closed) this.#disarm();
  }

  /** Calls `callback` once after `delayMs`, unless the returned entry is cancelled. */
  after(delayMs: number, callback: () => void, isDeadline = false): TimerEntry {
    const entry = new CallbackEntry(callback);
    this.schedule(entry, this.clock.monotonicMs() + delayMs, isDeadline);
    return entry;
  }

  /** The same for the end of a wait for bytes. */
  deadline(delayMs: number, callback: () => void): TimerEntry {
    return this.after(delayMs, callback, true);
  }

  /** Keeps the process alive until {@linkcode unref}, because a caller waits for an entry. */
  ref(): void {
    if (this.#refs++ > 0) return;
    if (this.#isSet) this.clock.keepAlive(this.#timer, true);
    else if (!this.closed && !this.#waking) this.#arm(Infinity);
  }

  /** The counterpart of {@linkcode ref}. */
  unref(): void {
    if (--this.#refs === 0 && this.#isSet) this.clock.keepAlive(this.#timer, false);
  }

  /** Calls `onClosed` of every entry. */
  announceClose(): void {
    this.#forEach((entry) => entry.onClosed());
  }

  /** Removes every entry, calls its `onClosed`, and clears the timer. */
  close(): void {
    this.closed = true;
    this.#disarm();
    this.#forEach((entry) => {
      this.cancel(entry);
      entry.onClosed();
    });
  }

  /** Calls `act` with each entry that is there now, unless a call before has cancelled it. */
  #forEach(act: (entry: TimerEntry) => void): void {
    const entries: TimerEntry[] = [];
    for (const first of this.#slots) {
      for (let entry = first; entry; entry = entry.next) entries.push(entry);
    }
    for (const entry of entries) if (entry.scheduled) act(entry);
  }

  /** Puts an entry in the slot of its time, or, if that is over, in the slot of now. */
  #link(entry: TimerEntry, dueMs: number): void {
    this.cancel(entry);
    const slot = Math.max(Math.floor(dueMs / SLOT_MS), this.#tick) & (SLOTS - 1);
    const first = this.#slots[slot];
    if (first) first.previous = entry;
    this.#slots[slot] = entry;
    entry.slot = slot;
    entry.next = first;
    this.#size++;
  }

  get #isSet(): boolean {
    return this.#timer !== undefined;
  }

  /**
   * Whether a test has replaced or restored the runtime's timers since the timer was set: it may
   * never fire then, and what clears timers now does not know it.
   */
  get #isLost(): boolean {
    return this.#setBy !== this.clock.timerSetter?.();
  }

  #disarm(): void {
    if (this.#isSet && !this.#isLost) this.clock.clearTimer(this.#timer);
    this.#timer = undefined; // it may hold the async context in which it was set
  }

  /**
   * Sets the timer.
   *
   * @param dueMs When the earliest entry is due.
   * @param fromMs From when on it counts as late if that is over: by default from now on, and after
   * a wake-up, whose calls may have blocked, from that on.
   */
  #arm(dueMs: number, fromMs?: number): void {
    const nowMs = this.clock.monotonicMs();
    if (this.#isSet && !this.#isLost && this.#wakeMs <= nowMs) return; // another would be later
    this.#disarm();
    this.#wakeMs = Math.max(Math.min(dueMs, nowMs + HEARTBEAT_MS), fromMs ?? nowMs);
    this.#timer = this.clock.setTimer(this.#wake, Math.max(Math.ceil(this.#wakeMs - nowMs), 0));
    this.#setBy = this.clock.timerSetter?.();
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
    const due = this.#dueAt(nowMs);
    try {
      if (stepped) this.#forEach((entry) => entry.onStepped());
      for (const entry of due) {
        if (!entry.scheduled || entry.dueMs > nowMs) continue; // by the call of one before
        // mutation: late-deadline-judged-at-once
        if (entry.wakesLeft-- > 0) continue;
        this.cancel(entry);
        entry.onDue();
      }
    } finally {
      // The next wake-up calls those that have some left, and those behind one that threw.
      for (const entry of due) if (entry.scheduled) this.#link(entry, entry.dueMs);
      if (this.#size > 0 || this.#refs > 0 && !this.closed) {
        this.#arm(this.#earliestMs(nowMs), nowMs);
      }
      this.#waking = false;
    }
  };

  /** What is due, the earliest first; of what is due at one time, what was scheduled first. */
  #dueAt(nowMs: number): TimerEntry[] {
    const tick = Math.floor(nowMs / SLOT_MS);
    const before = this.#tick;
    this.#tick = tick;
    // The monotonic clock runs backwards when a test's fake timers begin or end.
    if (tick < before) this.#forEach((entry) => this.#link(entry, entry.dueMs));
    const due: TimerEntry[] = [];
    for (let passed = Math.max(before, tick - SLOTS + 1); passed <= tick; passed++) {
      for (let entry = this.#slots[passed & (SLOTS - 1)]; entry; entry = entry.next) {
        if (entry.dueMs <= nowMs) due.push(entry);
      }
    }
    return due.reverse().sort((one, other) => one.dueMs - other.dueMs);
  }

  /** The earliest due time within a heartbeat from `nowMs`, or the heartbeat's end. */
  #earliestMs(nowMs: number): number {
    const endMs = nowMs + HEARTBEAT_MS;
    for (let tick = this.#tick; tick * SLOT_MS < endMs; tick++) {
      let earliestMs = Infinity;
      let entry = this.#slots[tick & (SLOTS - 1)];
      for (; entry; entry = entry.next) earliestMs = Math.min(earliestMs, entry.dueMs);
      if (earliestMs < (tick + 1) * SLOT_MS) return earliestMs;
    }
    return endMs;
  }
}
