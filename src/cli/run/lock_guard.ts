/**
 * Ends a command before its lock can belong to somebody else.
 *
 * @module
 */
import type { Lock, Vote } from "../../../mod.ts";
import { lockName, reasonOf } from "../../messages.ts";
import { systemClock, type TimerHandle } from "../../time/clock.ts";
import { ContinuousClock } from "../../time/continuous_clock.ts";
import type { RunningCommand } from "./running_command.ts";
import { LEFT } from "./shell_scripts.ts";

/** What a {@linkcode LockGuard} needs to know. */
export interface LockGuardOptions {
  /** How long the command has between SIGTERM and SIGKILL, in milliseconds. */
  readonly graceMs: number;
  /**
   * Returns for how long the command may run from this moment on, in milliseconds; negative if that
   * is over.
   */
  readonly limitMs: () => number;
  /** The votes of the extension that has failed last, if one has failed since the last success. */
  readonly failedVotes: () => readonly Vote[];
  /** Called with a message when the guard ends the command, or cannot. */
  readonly report: (message: string) => void;
}

/**
 * Watches over a command and its lock. The command gets a SIGTERM if its lock is lost, if
 * extensions fail until only the grace period is left, or if its watcher has ended. What is left of
 * it after the grace period, or when the time of the lock is over, gets a SIGKILL, by the watcher
 * too.
 */
export class LockGuard {
  readonly #lock: Lock;
  readonly #command: RunningCommand;
  readonly #options: LockGuardOptions;
  #timer: TimerHandle = undefined;
  readonly #clock = new ContinuousClock(systemClock);
  #killAtMs = 0;
  #isEnding = false;
  #isStopped = false;

  /**
   * @param lock The lock; {@linkcode extended} must be called after each extension.
   * @param command The command.
   * @param options How and when it ends the command.
   */
  constructor(lock: Lock, command: RunningCommand, options: LockGuardOptions) {
    this.#lock = lock;
    this.#command = command;
    this.#options = options;
    lock.signal.addEventListener("abort", this.#onLost);
    void command.watcher?.ended.then(this.#onWatcherEnd);
    this.extended();
  }

  /** Whether the command was asked to end because of its lock, and in time. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /**
   * How long what is left of the command may still run, in milliseconds; negative if that is over.
   */
  get leftMs(): number {
    return this.#killAtMs - this.#clock.nowMs();
  }

  /** Counts the new validity of the lock from now on, unless the guard was stopped. */
  extended(): void {
    if (this.#isStopped || this.#isEnding) return;
    if (this.#lock.signal.aborted) return this.#onLost();
    this.#killAfter(this.#options.limitMs());
    this.#wait(this.leftMs - this.#options.graceMs, () => {
      const name = lockName(this.#lock.resources);
      const left = `${Math.ceil(this.#lock.remainingMs())} ms`;
      const why = reasonOf(this.#options.failedVotes());
      this.#end(`Cannot extend ${name}: ${left} are left${why}`);
    });
  }

  /** Stops watching, when the command itself has ended. */
  stop(): void {
    this.#isStopped = true;
    this.#lock.signal.removeEventListener("abort", this.#onLost);
    systemClock.clearTimer(this.#timer);
  }

  readonly #onLost = (): void => {
    this.#end((this.#lock.signal.reason as Error).message);
  };

  readonly #onWatcherEnd = (word: string | undefined): void => {
    if (word === undefined) this.#end("The process that watches over the command has ended");
    if (word === LEFT) {
      this.#options.report("Processes of the command run on: hasp may not end them");
    }
  };

  #end(why: string): void {
    if (this.#isStopped || this.#isEnding) return;
    // the watcher has killed it, and says if it had ended before
    if (this.leftMs <= 0) return this.#kill();
    this.#isEnding = true;
    const isAllowed = this.#command.signal("SIGTERM");
    this.#killAfter(Math.min(this.#options.graceMs, this.leftMs));
    this.#wait(this.leftMs, () => this.#kill());
    const then = isAllowed ? "is stopped" : "cannot be stopped, because it runs as another user";
    // last, because a pipe that nobody reads may block it
    this.#options.report(`${why}; the command ${then}`);
  }

  #kill(): void {
    this.#command.signal("SIGKILL");
  }

  #killAfter(limitMs: number): void {
    this.#killAtMs = this.#clock.nowMs() + limitMs;
    this.#command.watcher?.killAfter(limitMs);
  }

  #wait(delayMs: number, callback: () => void): void {
    systemClock.clearTimer(this.#timer);
    this.#timer = systemClock.setTimer(callback, delayMs);
  }
}
