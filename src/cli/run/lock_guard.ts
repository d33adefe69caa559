/**
 * Ends a command before its lock can belong to somebody else.
 *
 * @module
 */
import type { Lock } from "../../../mod.ts";
import { systemClock, type TimerHandle } from "../../time/clock.ts";
import { ContinuousClock } from "../../time/continuous_clock.ts";
import type { RunningCommand } from "./running_command.ts";

/** How often a guard looks whether processes are gone, in milliseconds. */
const LOOK_EVERY_MS = 20;
/** Most looks after a SIGKILL, because a killed process stays visible until its parent has read its exit status. */
const LOOKS_AFTER_KILL_MAX = 50;

/**
 * Watches over a command and its lock. If the validity of the lock falls to the grace period, because extensions fail,
 * or if the lock is lost, the command gets a SIGTERM, and what is left of it when the grace period or the validity is
 * over gets a SIGKILL.
 */
export class LockGuard {
  readonly #lock: Lock;
  readonly #command: RunningCommand;
  readonly #graceMs: number;
  readonly #report: (message: string) => void;
  #timer: TimerHandle = undefined;
  readonly #clock = new ContinuousClock(systemClock);
  #validUntilMs = 0;
  #isEnding = false;
  #isKilled = false;
  #isStopped = false;

  /**
   * @param lock The lock; {@linkcode extended} must be called after each extension.
   * @param command The command.
   * @param graceMs How long the command has between the two signals, in milliseconds.
   * @param report Called with a message when the guard ends the command.
   */
  constructor(
    lock: Lock,
    command: RunningCommand,
    graceMs: number,
    report: (message: string) => void,
  ) {
    this.#lock = lock;
    this.#command = command;
    this.#graceMs = graceMs;
    this.#report = report;
    lock.signal.addEventListener("abort", this.#onLost);
    this.extended();
    if (lock.signal.aborted) this.#onLost();
  }

  /** Whether the command was ended because of its lock. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** Counts the new validity of the lock from now on, unless the guard was stopped. */
  extended(): void {
    const remainingMs = this.#lock.remainingMs();
    if (this.#isStopped || this.#isEnding || remainingMs === 0) return;
    this.#validUntilMs = this.#clock.nowMs() + remainingMs;
    this.#command.validFor(remainingMs);
    this.#wait(remainingMs - this.#graceMs, () => {
      const left = `${Math.ceil(this.#lock.remainingMs())} ms`;
      this.#end(`Cannot extend the lock, which is certain for another ${left}`);
    });
  }

  /**
   * Stops watching, when the command itself has ended. If it was made to end, so is everything that it has started,
   * before this resolves.
   */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#lock.signal.removeEventListener("abort", this.#onLost);
    let looks = 0;
    while (this.#isEnding && this.#command.isRunning && looks < LOOKS_AFTER_KILL_MAX) {
      await pause(LOOK_EVERY_MS);
      if (this.#isKilled) looks++;
    }
    systemClock.clearTimer(this.#timer);
  }

  readonly #onLost = (): void => {
    this.#end((this.#lock.signal.reason as Error).message);
  };

  #end(why: string): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#report(`${why}; the command is stopped`);
    this.#command.signal("SIGTERM");
    const leftMs = this.#validUntilMs - this.#clock.nowMs();
    this.#wait(Math.min(this.#graceMs, leftMs), () => {
      this.#isKilled = true;
      this.#command.signal("SIGKILL");
    });
  }

  #wait(delayMs: number, callback: () => void): void {
    systemClock.clearTimer(this.#timer);
    this.#timer = systemClock.setTimer(callback, Math.max(delayMs, 0));
  }
}

/** Waits, and keeps the process alive meanwhile. */
function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    systemClock.keepAlive(systemClock.setTimer(resolve, delayMs), true);
  });
}
