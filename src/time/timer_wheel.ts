/**
 * One timer for everything that waits: deadlines of rounds, ends of validity, reconnects.
 *
 * A runtime's timer costs more than a lock's own bookkeeping, so entries hang in a wheel of slots, linked
 * in and out in constant time, and a single timer wakes up for the earliest of them.
 *
 * @module
 */
import { type Clock, systemClock, type TimerHandle } from "./clock.ts";
import { type Random, systemRandom } from "./random.ts";

/** Slots of the wheel, a power of two. */
const SLOTS = 256;
/** Milliseconds that one slot stands for. */
const SLOT_MS = 8;
/**
 * Longest sleep of the one timer, in milliseconds, while there is any entry. It bounds how late a wheel
 * notices that the machine was suspended or that the wall clock was stepped ahead.
 */
const HEARTBEAT_MS = 250;
/** A lead of the wall clock over the monotonic one, in milliseconds, that has entries look at the time anew. */
const JUMP_MS = 2;
/** The slot of an entry that waits nowhere. */
const NOWHERE = -1;
/** The slot of an entry that was taken out because it is due, and was neither called nor cancelled yet. */
const TAKEN = -2;

/** Something that is due at a time. Its owner extends it, so that waiting allocates nothing. */
export abstract class TimerEntry {
  /** When it is due, in milliseconds of the monotonic clock. Meaningful while `scheduled`. */
  dueMs = 0;
  /** @internal */ next: TimerEntry | undefined = undefined;
  /** @internal */ previous: TimerEntry | undefined = undefined;
  /** @internal The slot it hangs in, or one of the two marks above. */ slot = NOWHERE;

  /** Whether it waits in a wheel. */
  get scheduled(): boolean {
    return this.slot >= 0;
  }

  /**
   * Called once when it is due, and also when the clocks disagree about how much time has passed: then it
   * may be early, and schedules itself anew.
   */
  abstract onDue(): void;

  /** Called when the lock client closes; says whether somebody waited for this entry, and was told. */
  onClosed(): boolean {
    return false;
  }
}

/** A callback as an entry, for the rare waits that no object stands for. */
class CallbackEntry extends TimerEntry {
  readonly #callback: () => void;
  readonly #closed: (() => void) | undefined;
  readonly #wheel: TimerWheel;

  constructor(wheel: TimerWheel, callback: () => void, dueMs: number, closed?: () => void) {
    super();
    this.#wheel = wheel;
    this.#callback = callback;
    this.#closed = closed;
    this.dueMs = dueMs;
  }

  override onDue(): void {
    if (this.#wheel.clock.monotonicMs() < this.dueMs) this.#wheel.schedule(this, this.dueMs);
    else this.#callback();
  }

  override onClosed(): boolean {
    this.#closed?.();
    return this.#closed !== undefined;
  }
}

/** The wheel, and with it what every part needs to know of its surroundings: clock and randomness. */
export class TimerWheel {
  /** Where time comes from. */
  readonly clock: Clock;
  /** Where randomness comes from. */
  readonly random: Random;
  readonly #slots: (TimerEntry | undefined)[] = new Array(SLOTS).fill(undefined);
  #size = 0;
  #refs = 0;
  #timer: TimerHandle = undefined;
  #armed = false;
  #closed = false;
  #waking = false;
  /** What a wake-up took out and has not called yet. */
  #due: TimerEntry[] = [];
  #wakeMs = 0;
  #visitedTick = 0;
  #leadMs = 0;

  constructor(clock: Clock = systemClock, random: Random = systemRandom) {
    this.clock = clock;
    this.random = random;
  }

  /** How many entries wait. */
  get size(): number {
    return this.#size;
  }

  /** Makes `entry` due at `dueMs` of the monotonic clock; one that waits already is moved. */
  schedule(entry: TimerEntry, dueMs: number): void {
    if (entry.slot >= 0) this.#unlink(entry);
    entry.dueMs = dueMs;
    this.#link(entry);
    if (this.#waking) return; // armed at its end, for the earliest of all
    if (!this.#armed || dueMs < this.#wakeMs) this.#arm(dueMs);
  }

  /** Takes `entry` out; one that does not wait is ignored. */
  cancel(entry: TimerEntry): void {
    if (entry.slot >= 0) this.#unlink(entry);
    else entry.slot = NOWHERE;
  }

  /**
   * Calls `callback` once after `delayMs`, or `closed` if the client closes before; neither if the returned
   * entry is cancelled.
   */
  after(delayMs: number, callback: () => void, closed?: () => void): TimerEntry {
    const dueMs = this.clock.monotonicMs() + delayMs;
    const entry = new CallbackEntry(this, callback, dueMs, closed);
    this.schedule(entry, dueMs);
    return entry;
  }

  /** A caller waits for something that has an entry here: until {@linkcode unref}, stay alive. */
  ref(): void {
    if (this.#refs++ > 0) return;
    if (this.#armed) this.clock.keepAlive(this.#timer, true);
    else if (!this.#closed && !this.#waking) this.#arm(Infinity);
  }

  /** The counterpart of {@linkcode ref}. */
  unref(): void {
    if (--this.#refs === 0 && this.#armed) this.clock.keepAlive(this.#timer, false);
  }

  /** Tells every entry that the client closes; says whether anybody waited for one of them. */
  announceClose(): boolean {
    let waited = false;
    for (const entry of this.#entries()) waited = entry.onClosed() || waited;
    return waited;
  }

  /** Forgets every entry and the timer. */
  close(): void {
    this.#closed = true;
    this.#disarm();
    for (const entry of this.#entries()) this.#unlink(entry);
    for (const entry of this.#due) this.cancel(entry);
  }

  #entries(): TimerEntry[] {
    const entries: TimerEntry[] = [];
    for (const first of this.#slots) {
      for (let entry = first; entry; entry = entry.next) entries.push(entry);
    }
    return entries;
  }

  #link(entry: TimerEntry): void {
    // An entry in the past hangs where the next visit begins, never in a slot that was just passed.
    const tick = Math.max(Math.floor(entry.dueMs / SLOT_MS), this.#visitedTick);
    const slot = tick & (SLOTS - 1);
    const first = this.#slots[slot];
    entry.slot = slot;
    entry.previous = undefined;
    entry.next = first;
    if (first) first.previous = entry;
    this.#slots[slot] = entry;
    this.#size++;
  }

  #unlink(entry: TimerEntry): void {
    if (entry.previous) entry.previous.next = entry.next;
    else this.#slots[entry.slot] = entry.next;
    if (entry.next) entry.next.previous = entry.previous;
    entry.slot = NOWHERE;
    entry.next = entry.previous = undefined;
    if (--this.#size === 0 && this.#closed) this.#disarm();
  }

  #disarm(): void {
    if (this.#armed) this.clock.clearTimer(this.#timer);
    this.#armed = false;
  }

  #arm(dueMs: number): void {
    const nowMs = this.clock.monotonicMs();
    if (this.#armed) {
      if (this.#wakeMs <= nowMs) return; // late already: another timer would not come before it
      this.clock.clearTimer(this.#timer);
    } else if (!this.#waking) {
      this.#leadMs = this.clock.wallMs() - nowMs;
    }
    this.#wakeMs = Math.min(dueMs, nowMs + HEARTBEAT_MS);
    this.#timer = this.clock.setTimer(this.#wake, Math.max(Math.ceil(this.#wakeMs - nowMs), 0));
    this.#armed = true;
    if (this.#refs > 0) this.clock.keepAlive(this.#timer, true);
  }

  readonly #wake = (): void => {
    this.#armed = false;
    const nowMs = this.clock.monotonicMs();
    const leadMs = this.clock.wallMs() - nowMs;
    const jumped = leadMs - this.#leadMs > JUMP_MS;
    // A slow lead adds up until it counts; a wall clock that falls back only starts the count anew.
    if (jumped || leadMs < this.#leadMs) this.#leadMs = leadMs;
    this.#waking = true;
    this.#due = this.#takeDue(nowMs, jumped);
    for (const entry of this.#due) {
      if (entry.slot !== TAKEN) continue; // cancelled or moved by one before it
      entry.slot = NOWHERE;
      entry.onDue();
    }
    this.#due = [];
    if (this.#size > 0 || this.#refs > 0 && !this.#closed) this.#arm(this.#earliestMs(nowMs));
    this.#waking = false;
  };

  /** Unlinks and returns what is due at `nowMs`, or everything after a jump of the wall clock. */
  #takeDue(nowMs: number, jumped: boolean): TimerEntry[] {
    const due: TimerEntry[] = [];
    const tick = Math.floor(nowMs / SLOT_MS);
    const first = jumped ? tick - SLOTS + 1 : Math.max(this.#visitedTick, tick - SLOTS + 1);
    for (let visited = first; visited <= tick; visited++) {
      let entry = this.#slots[visited & (SLOTS - 1)];
      while (entry) {
        const next: TimerEntry | undefined = entry.next;
        if (jumped || entry.dueMs <= nowMs) {
          this.#unlink(entry);
          entry.slot = TAKEN;
          due.push(entry);
        }
        entry = next;
      }
    }
    this.#visitedTick = tick;
    return due;
  }

  /** The earliest due time within a heartbeat from `nowMs`, or the heartbeat's end. */
  #earliestMs(nowMs: number): number {
    const tick = Math.floor(nowMs / SLOT_MS);
    const heartbeatMs = nowMs + HEARTBEAT_MS;
    for (let ahead = 0; ahead <= Math.ceil(HEARTBEAT_MS / SLOT_MS); ahead++) {
      let earliestMs = Infinity;
      let entry = this.#slots[(tick + ahead) & (SLOTS - 1)];
      for (; entry; entry = entry.next) earliestMs = Math.min(earliestMs, entry.dueMs);
      if (earliestMs < (tick + ahead + 1) * SLOT_MS) return earliestMs;
    }
    return heartbeatMs;
  }
}
