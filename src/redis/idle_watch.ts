/**
 * Finds out by `PING` that an idle connection leads to no server any more. The watch for replies
 * ends it then.
 *
 * @module
 */
import type { TimerHandle } from "../time/clock.ts";
import type { TimerWheel } from "../time/timer_wheel.ts";

/**
 * Idle time of a connection, in milliseconds, before a PING: NATs and load balancers forget
 * connections that are idle for minutes, and neither end learns of it.
 */
const IDLE_MS = 30_000;

/** A connection, as far as its idleness matters. */
export interface IdleConnection {
  /** The arrival of the last bytes, by the monotonic clock. */
  readonly receivedAtMs: number;
  /** Sends a PING unless commands are sent anyway. */
  ask(): void;
}

/**
 * The watch of one connection. Its timer is set for the earliest end of an idle time, so a command
 * costs nothing. It is not an entry of the wheel, because the wheel would wake up an idle client
 * several times a second for it.
 */
export class IdleWatch {
  readonly #wheel: TimerWheel;
  readonly #connection: IdleConnection;
  #timer: TimerHandle = undefined;

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
    this.#wait(IDLE_MS);
  }

  /** Called when the connection is lost. */
  end(): void {
    if (this.#timer !== undefined) this.#wheel.clock.clearTimer(this.#timer);
    this.#timer = undefined;
  }

  #wait(delayMs: number): void {
    this.#timer = this.#wheel.clock.setTimer(() => {
      const { clock } = this.#wheel;
      const leftMs = this.#connection.receivedAtMs + IDLE_MS - clock.monotonicMs();
      this.#wait(leftMs > 0 ? Math.ceil(leftMs) : IDLE_MS);
      if (leftMs <= 0) this.#connection.ask();
    }, delayMs);
  }
}
