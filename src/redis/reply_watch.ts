/**
 * Watches a connection for a server that leaves commands without replies.
 *
 * @module
 */
import type { TimerEntry, TimerWheel } from "../time/timer_wheel.ts";
import type { CommandQueue } from "./command_queue.ts";

/** How often the watch looks within the shorter of its limits. */
const WATCH_TICKS = 2;

/** How long a server may take, in milliseconds; `Infinity` for no limit. */
export interface ReplyLimits {
  /** Longest silence while replies are due. */
  readonly stallTimeoutMs: number;
  /** Longest wait of a command for its whole reply, also while bytes come; no limit by default. */
  readonly replyTimeoutMs?: number;
}

/**
 * The watch of one connection. It looks a few times within its limits and is left in the wheel between commands, so
 * that a command costs nothing.
 */
export class ReplyWatch {
  readonly #wheel: TimerWheel;
  readonly #queue: CommandQueue;
  readonly #stallTimeoutMs: number;
  readonly #replyTimeoutMs: number;
  readonly #onLate: (what: string) => void;
  readonly #tickMs: number;
  #entry: TimerEntry | undefined = undefined;
  #quietTicks = 0;
  /** Replies that must have come for the commands that were written at a tick, and how many ticks ago that was. */
  #due = 0;
  #dueTicks = 0;

  /**
   * @param wheel Where it waits.
   * @param queue The connection's commands.
   * @param limits How long they may take.
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

  /** A reply is due where none was before. */
  begin(): void {
    this.#quietTicks = 0;
    if (!this.#entry && this.#tickMs !== Infinity) this.#wait();
  }

  /** Bytes came. */
  onBytes(): void {
    this.#quietTicks = 0;
  }

  /** The connection is gone, and with it what was due. */
  end(): void {
    if (this.#entry) this.#wheel.cancel(this.#entry);
    this.#entry = undefined;
    this.#due = this.#dueTicks = 0;
  }

  #wait(): void {
    this.#entry = this.#wheel.deadline(this.#tickMs, () => {
      this.#entry = undefined;
      const late = this.#late();
      if (late !== undefined) this.#onLate(late);
      else if (this.#queue.length > 0) this.#wait();
    });
  }

  /** What has taken too long. A time that began between two ticks is over at the tick behind its end. */
  #late(): string | undefined {
    const queue = this.#queue;
    if (queue.length === 0) return undefined;
    if (++this.#quietTicks * this.#tickMs > this.#stallTimeoutMs) {
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
