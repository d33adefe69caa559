/** A simulated process: whatever runs in it runs by its clocks, and only while it runs at all. */
import type { EventLoop, SimEvent, Turn } from "./event_loop.ts";
import type { Clock } from "./library.ts";
import type { ClockChange, MachineClock } from "./machine_clock.ts";
import { enterProcess } from "./mutant.ts";
import type { SeededRandom } from "./seeded_random.ts";

/**
 * How long a turn of a process's event loop takes at the least, in milliseconds: no timer fires in
 * its own.
 */
const TURN_MS = 0.01;

/** How unsteady a process is. */
export interface ProcessManners {
  /** How late its timers fire at the most, in milliseconds. */
  readonly timerLateMs: number;
  /** How early they fire at the most: some runtimes round down. */
  readonly timerEarlyMs: number;
  /**
   * How likely it stops between two statements when it looks at a clock (garbage collection,
   * scheduling).
   */
  readonly stallChance: number;
  /** For how long at the most, in milliseconds. */
  readonly stallMaxMs: number;
  /** Whether timers go before what came from the network after it was stopped. */
  readonly timersFirst: boolean;
  /**
   * Whether its client leaves idle connections alone, and asks none by `PING` whether it is alive,
   * as in a worker.
   */
  readonly asksNone?: boolean;
}

interface ProcessTimer {
  readonly callback: () => void;
  readonly dueMs: number;
  readonly lateMs: number;
  event: SimEvent | undefined;
}

interface Waiting {
  readonly action: () => void;
  readonly isTimer: boolean;
}

/** A process with its clocks and timers. */
export class SimProcess implements Clock, Turn {
  readonly name: string;
  /** Whether it has not died. */
  alive = true;
  /** How often its code has run, or something has become of its clocks. */
  changes = 0;
  readonly #loop: EventLoop;
  readonly #clock: MachineClock;
  readonly #random: SeededRandom;
  readonly #manners: ProcessManners;
  readonly #timers = new Set<ProcessTimer>();
  #stops = 0;
  #backlog: Waiting[] = [];
  /**
   * How far this turn has got beyond the loop's time, and until when the process is busy with it.
   */
  #lagMs = 0;
  #running = false;
  #busyUntilMs = 0;
  #stoppedAtMs = 0;
  #stoppedMs = 0;
  #suspended = false;
  /**
   * Whether it slept, and whether its wall clock was set back, since code looked at its clocks
   * last.
   */
  #sleptUnseen = false;
  #setBackUnseen = false;
  /** Whether both were so once: then neither clock showed the sleep. */
  hidSleep = false;

  constructor(
    name: string,
    loop: EventLoop,
    clock: MachineClock,
    random: SeededRandom,
    manners: ProcessManners,
  ) {
    this.name = name;
    this.#loop = loop;
    this.#clock = clock;
    this.#random = random;
    this.#manners = manners;
  }

  /** Whether its client asks idle connections by `PING` whether they are alive. */
  get asksIdle(): boolean {
    return !this.#manners.asksNone;
  }

  /**
   * The true time at which the code that runs now runs: a turn that was held up is ahead of the
   * loop.
   */
  get trueMs(): number {
    return this.#loop.nowMs + (this.#running ? this.#lagMs : 0);
  }

  /** For how long it was not stopped since the beginning, in milliseconds of true time. */
  get awakeMs(): number {
    const stoppedMs = this.#stops > 0 ? this.#loop.nowMs - this.#stoppedAtMs : 0;
    return this.#loop.nowMs - this.#stoppedMs - stoppedMs;
  }

  /** Whether it is paused, suspended, busy or dead. */
  get stopped(): boolean {
    return !this.alive || this.#stops > 0 || this.#loop.nowMs < this.#busyUntilMs;
  }

  /**
   * Until when, in true time, it is busy with a turn that was held up. What it read from its clocks
   * in that turn was read ahead of the loop, so its clocks may not be touched before.
   */
  get busyUntilMs(): number {
    return this.#busyUntilMs;
  }

  /** Whether it was ever held up: then its timers begin to count again, late. */
  get wasStopped(): boolean {
    return this.#stoppedMs > 0;
  }

  /** How many timers are set. */
  get timers(): number {
    return this.#timers.size;
  }

  /** What its monotonic clock shows, for the checkers: to look at it stalls nothing. */
  get uptimeMs(): number {
    return this.#clock.monotonicAt(this.trueMs);
  }

  /**
   * The code that runs now computes for so long, in milliseconds of true time, before it goes on.
   */
  block(forMs: number): void {
    if (this.#running) this.#lagMs += forMs;
  }

  monotonicMs(): number {
    this.#stall();
    return this.#clock.monotonicAt(this.trueMs);
  }

  wallMs(): number {
    this.#stall();
    return Math.floor(this.#clock.wallAt(this.trueMs));
  }

  /** Its code has compared its clocks: what became of them before does not hide what comes. */
  noteLook(): void {
    this.#sleptUnseen = this.#suspended;
    this.#setBackUnseen = false;
  }

  setTimer(callback: () => void, delayMs: number): ProcessTimer {
    const { timerLateMs, timerEarlyMs } = this.#manners;
    const lateMs = this.#random.between(-timerEarlyMs, timerLateMs);
    const dueMs = this.#clock.monotonicAt(this.trueMs) + delayMs;
    const timer = { callback, dueMs, lateMs, event: undefined };
    this.#timers.add(timer);
    this.#arm(timer);
    return timer;
  }

  clearTimer(timer: unknown): void {
    const { event } = timer as ProcessTimer;
    if (event) event.action = undefined;
    this.#timers.delete(timer as ProcessTimer);
  }

  keepAlive(): void {}

  /** Resolves after `delayMs` of the monotonic clock. */
  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => void this.setTimer(resolve, delayMs));
  }

  /**
   * Runs `action` in this process at the true time `atMs`, or later if the process is stopped then.
   */
  post(atMs: number, action: () => void): void {
    this.#loop.at(atMs, () => this.enter(action));
  }

  /**
   * Runs `action` in this process now, in the turn that it returns, or later if the process is
   * stopped.
   */
  enter(action: () => void, isTimer = false): Turn | void {
    if (!this.alive) return;
    if (this.stopped || this.#backlog.length > 0) {
      this.#backlog.push({ action, isTimer });
      return;
    }
    this.#running = true;
    this.changes++;
    enterProcess(this);
    action();
    return this;
  }

  /** Stops the process; its monotonic clock goes on. Stops add up. */
  stop(): void {
    if (this.#stops++ === 0) this.#stoppedAtMs = this.#loop.nowMs;
  }

  /** Lets it go on. */
  resume(): void {
    if (this.#stops === 0 || --this.#stops > 0) return;
    this.#stoppedMs += this.#loop.nowMs - this.#stoppedAtMs;
    this.#workOff();
  }

  /** Ends it for good, in the middle of whatever it does. */
  die(): void {
    this.alive = false;
    this.#backlog = [];
    for (const timer of [...this.#timers]) this.clearTimer(timer);
  }

  /** Changes its clocks. */
  changeClock(change: ClockChange): void {
    this.changes++;
    this.#clock.change(change, this.#loop.nowMs);
    this.#suspended = change.suspended ?? this.#suspended;
    this.#sleptUnseen ||= this.#suspended;
    this.#setBackUnseen ||= (change.wallStepMs ?? 0) < 0;
    this.hidSleep ||= this.#sleptUnseen && this.#setBackUnseen;
    for (const timer of this.#timers) {
      if (!timer.event) continue;
      timer.event.action = undefined;
      this.#arm(timer);
    }
  }

  endTurn(): void {
    this.#busyUntilMs = this.trueMs;
    this.#running = false;
    if (this.#lagMs === 0) return;
    this.#stoppedMs += this.#lagMs;
    this.#lagMs = 0;
    this.#loop.at(this.#busyUntilMs, () => this.#workOff());
  }

  #arm(timer: ProcessTimer): void {
    const atMs = this.#clock.trueAt(timer.dueMs) + timer.lateMs;
    if (atMs === Infinity) return void (timer.event = this.#loop.at(Infinity, () => {}));
    timer.event = this.#loop.at(Math.max(atMs, this.trueMs + TURN_MS), () => {
      timer.event = undefined;
      return this.enter(() => {
        if (this.#timers.delete(timer)) timer.callback();
      }, true);
    });
  }

  /** Does what has come in the meantime, each in a turn of its own. */
  #workOff(): void {
    if (this.stopped) return;
    const backlog = this.#backlog;
    this.#backlog = [];
    if (this.#manners.timersFirst) {
      backlog.sort((one, other) => Number(other.isTimer) - Number(one.isTimer));
    }
    for (const { action, isTimer } of backlog) {
      this.#loop.at(this.#loop.nowMs, () => this.enter(action, isTimer));
    }
  }

  #stall(): void {
    const { stallChance, stallMaxMs } = this.#manners;
    if (!this.#running || stallChance === 0 || !this.#random.chance(stallChance)) return;
    this.#lagMs += this.#random.between(0, stallMaxMs);
  }
}
