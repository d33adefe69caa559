/**
 * Finds out by `PING` that an idle connection leads to no server any more. The watch for replies ends it then.
 *
 * @module
 */
import type { TimerEntry, TimerWheel } from "../time/timer_wheel.ts";

/**
 * Idle time of a connection, in milliseconds, before a PING: NATs and load balancers forget connections that are idle
 * for minutes, and neither end learns of it.
 */
const IDLE_MS = 30_000;
/** Idle time of a reopened connection, in milliseconds, before a PING asks whether the server is back. */
const PROBE_DELAY_MS = 1_000;

/** A connection, as far as its idleness matters. */
export interface IdleConnection {
  /** The arrival of the last bytes, by the monotonic clock. */
  readonly receivedAtMs: number;
  /** Sends a PING unless commands are sent anyway. */
  ask(): void;
}

/** The watch of one connection. It shares one timer with all connections of the client, so a command costs nothing. */
export class IdleWatch {
  readonly #wheel: TimerWheel;
  readonly #connection: IdleConnection;
  #probe: TimerEntry | undefined = undefined;

  /**
   * @param wheel The wheel of the client.
   * @param connection The connection.
   */
  constructor(wheel: TimerWheel, connection: IdleConnection) {
    this.#wheel = wheel;
    this.#connection = connection;
  }

  /** Called when the connection is open. */
  begin(): void {
    this.#wheel.idle.add(this.#look);
  }

  /** Asks within a second, unless {@linkcode answered} is called before. */
  askSoon(): void {
    this.#probe = this.#wheel.after(PROBE_DELAY_MS, () => this.#connection.ask());
  }

  /** Called when the server has answered. */
  answered(): void {
    if (this.#probe) this.#wheel.cancel(this.#probe);
  }

  /** Called when the connection is lost. */
  end(): void {
    this.answered();
    this.#wheel.idle.delete(this.#look);
  }

  readonly #look = (nowMs: number): number => {
    const dueMs = this.#connection.receivedAtMs + IDLE_MS;
    if (nowMs < dueMs) return dueMs;
    this.#connection.ask();
    return nowMs + IDLE_MS;
  };
}
