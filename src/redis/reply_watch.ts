/**
 * Finds out that a server leaves commands without replies.
 *
 * @module
 */
import type { TimerEntry, TimerWheel } from "../time/timer_wheel.ts";
import type { CommandQueue } from "./command_queue.ts";

/** Looks within the shorter of the two limits. */
const WATCH_TICKS = 2;

/** Limits of the time that a server may take, in milliseconds; `Infinity` turns one off. */
export interface ReplyLimits {
  /** Longest silence while replies are due. */
  readonly stallTimeoutMs: number;
  /**
   * Longest wait of a command for its whole reply, also while bytes arrive; no limit by default.
   */
  readonly replyTimeoutMs?: number;
}

/**
 * The watch of one connection. It looks a few times within its limits, and stays in the wheel
 * between commands, so a command costs nothing.
 */
export class ReplyWatch {
  readonly #wheel: TimerWheel;
  readonly #queue: CommandQueue;
  readonly #stallTimeoutMs: number;
  readonly #replyTimeoutMs: number;
  readonly #onLate: (what: string) => void;
  readonly #tickMs: number;
  #entry: TimerEntry | undefined = undefined;
  /**
   * Looks since bytes arrived, or since a reply is due: a field, because both set it to 0 for each
   * command.
   */
  quietTicks = 0;
  /** Whether a look is due. */
  watching = false;
  /**
   * The number of replies that answers every command that was written at an earlier look, and how
   * many looks ago.
   */
  #due = 0;
  #dueTicks = 0;

  /**
   * @param wheel The wheel of its timer.
   * @param queue The commands of the connection.
   * @param limits The limits.
   * @param onLate Called once with what happened: `was silent for 2000 ms`.
   */
  constructor(
    wheel: TimerWheel,
    queue: CommandQueue,
    limits: ReplyLimits,
    onLate: (what: string) => void,
  ) {
    this.#wheel = wheel;
    this.#queue = queue;
    this.#stallTimeoutMs = limits.stallTimeoutMs;
    this.#replyTimeoutMs = limits.replyTimeoutMs ?? Infinity;
    this.#onLate = onLate;
    this.#tickMs = Math.min(this.#stallTimeoutMs, this.#replyTimeoutMs) / WATCH_TICKS;
  }

  /** Called when a reply is due and no look is. */
  begin(): void {
    if (this.#tickMs !== Infinity) this.#wait();
  }

  /** Called when the connection is lost. */
  end(): void {
    if (this.#entry) this.#wheel.cancel(this.#entry);
    this.#entry = undefined;
    this.watching = false;
    this.#due = this.#dueTicks = 0;
  }

  #wait(): void {
    this.watching = true;
    this.#entry = this.#wheel.deadline(this.#tickMs, () => {
      this.#entry = undefined;
      this.watching = false;
      const late = this.#late();
      if (late !== undefined) this.#onLate(late);
      else if (this.#queue.length > 0) this.#wait();
    });
  }

  /**
   * Returns what took too long, or `undefined`. A wait that began between two looks ends at the
   * look behind its end.
   */
  #late(): string | undefined {
    const queue = this.#queue;
    if (queue.length === 0) return undefined;
    // mutation: silent-connection-kept
    if (++this.quietTicks * this.#tickMs > this.#stallTimeoutMs) {
      return `was silent for ${this.#stallTimeoutMs} ms`;
    }
    if (queue.settled >= this.#due) {
      this.#due = queue.settled + queue.sent;
      this.#dueTicks = 0;
    } else if (++this.#dueTicks * this.#tickMs >= this.#replyTimeoutMs) {
      return `left a command without a whole reply for ${this.#replyTimeoutMs} ms`;
    }
    return undefined;
  }
}
