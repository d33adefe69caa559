/**
 * Finds out that a server is gone: it leaves commands without replies, or an idle connection leads
 * nowhere any more, which a `PING` shows.
 *
 * @module
 */
import type { TimerHandle } from "../time/clock.ts";
import type { TimerEntry, TimerWheel } from "../time/timer_wheel.ts";
import type { CommandQueue } from "./wire.ts";

/** Looks within the shorter of the two limits. */
const WATCH_TICKS = 2;
/**
 * Idle time of a connection, in milliseconds, before a PING: NATs and load balancers forget
 * connections that are idle for minutes, and neither end learns of it.
 */
const IDLE_MS = 30_000;

/** Limits of the time that a server may take, in milliseconds; `Infinity` turns one off. */
export interface ReplyLimits {
  /** Longest silence while replies are due. */
  readonly stallTimeoutMs: number;
  /**
   * Longest wait of a command for its whole reply, also while bytes arrive; no limit by default.
   */
  readonly replyTimeoutMs?: number;
}

/** A connection, as its watch needs it. */
export interface WatchedConnection {
  /** The arrival of the last bytes, by the monotonic clock. */
  readonly receivedAtMs: number;
  /** Sends a PING unless commands are sent anyway. */
  ask(): void;
  /** Called once with what took too long: `was silent for 2000 ms`. */
  onLate(what: string): void;
}

/**
 * The watch of one connection. While replies are due it looks a few times within its limits, and it
 * stays in the wheel between commands; while the connection is idle it waits for the earliest end
 * of an idle time. So a command costs nothing.
 */
export class SilenceWatch {
  readonly #wheel: TimerWheel;
  readonly #queue: CommandQueue;
  readonly #limits: Required<ReplyLimits>;
  readonly #connection: WatchedConnection;
  readonly #tickMs: number;
  #entry: TimerEntry | undefined;
  /** Not an entry of the wheel, which would wake up an idle client several times a second. */
  #idle: TimerHandle = undefined;
  /** Whether a look is due: a field, because it is read for each command. */
  watching = false;
  /** Looks since bytes arrived, or since a reply is due; and when they had arrived by the last. */
  #quietTicks = 0;
  #seenMs = 0;
  /** How many replies there are in all once those have come that were due at an earlier look. */
  #due = 0;
  /** How many looks ago that look was. */
  #dueTicks = 0;

  /**
   * @param wheel The wheel of its timer.
   * @param queue The commands of the connection.
   * @param limits The limits.
   * @param connection The connection.
   */
  constructor(
    wheel: TimerWheel,
    queue: CommandQueue,
    { stallTimeoutMs, replyTimeoutMs = Infinity }: ReplyLimits,
    connection: WatchedConnection,
  ) {
    this.#wheel = wheel;
    this.#queue = queue;
    this.#limits = { stallTimeoutMs, replyTimeoutMs };
    this.#connection = connection;
    this.#tickMs = Math.min(stallTimeoutMs, replyTimeoutMs) / WATCH_TICKS;
  }

  /** Called when a reply is due and no look is. */
  begin(): void {
    if (this.#tickMs === Infinity) return;
    this.watching = true;
    this.#quietTicks = 0;
    this.#seenMs = this.#connection.receivedAtMs;
    this.#lookLater();
  }

  #lookLater(): void {
    this.#entry = this.#wheel.deadline(this.#tickMs, () => {
      this.#entry = undefined;
      const late = this.#late();
      this.watching = late === undefined && this.#queue.length > 0;
      if (this.watching) this.#lookLater();
      else if (late !== undefined) this.#connection.onLate(late);
    });
  }

  /** Called when the connection is open, if it may be idle for long. */
  beginIdle(delayMs = IDLE_MS): void {
    const { clock } = this.#wheel;
    this.#idle = clock.setTimer(() => {
      const leftMs = this.#connection.receivedAtMs + IDLE_MS - clock.monotonicMs();
      this.beginIdle(leftMs > 0 ? Math.ceil(leftMs) : IDLE_MS);
      if (leftMs <= 0) this.#connection.ask();
    }, delayMs);
  }

  /** Called when the connection is lost. */
  end(): void {
    this.#wheel.cancel(this.#entry);
    if (this.#idle !== undefined) this.#wheel.clock.clearTimer(this.#idle);
    this.#entry = this.#idle = undefined;
    this.watching = false;
    this.#due = this.#dueTicks = 0;
  }

  /**
   * Returns what took too long, or `undefined`. A wait that began between two looks ends at the
   * look behind its end.
   */
  #late(): string | undefined {
    const queue = this.#queue;
    const { stallTimeoutMs, replyTimeoutMs } = this.#limits;
    if (queue.length === 0) return undefined;
    const { receivedAtMs } = this.#connection;
    this.#quietTicks = receivedAtMs === this.#seenMs ? this.#quietTicks + 1 : 1;
    this.#seenMs = receivedAtMs;
    // mutation: silent-connection-kept
    if (this.#quietTicks * this.#tickMs > stallTimeoutMs) {
      return `was silent for ${stallTimeoutMs} ms`;
    }
    if (queue.settled >= this.#due) {
      this.#due = queue.settled + queue.sent;
      this.#dueTicks = 0;
    } else if (++this.#dueTicks * this.#tickMs >= replyTimeoutMs) {
      return `left a command without a whole reply for ${replyTimeoutMs} ms`;
    }
    return undefined;
  }
}
