/**
 * Whether one server answers.
 *
 * @module
 */
import type { ConnectionError, ReplyError } from "./errors.ts";

/** Callbacks of the owner of a connection. */
export interface AvailabilityEvents {
  /**
   * Called when the server has accepted the login, or has replied to a command if there is no
   * login: the first time, and after each {@linkcode onUnavailable}.
   */
  onAvailable?(): void;
  /**
   * Called when the connection to an available server is lost, or the first connection is lost or
   * could not be made.
   */
  onUnavailable?(error: ConnectionError): void;
}

/** See the module. */
export class Availability {
  /** Whether the server has replied to a command on this connection without an error. */
  served = false;
  /**
   * The last error reply, if all replies on this connection were errors: probably the reason why
   * the server closes it.
   */
  refusal: ReplyError | undefined = undefined;
  readonly #events: AvailabilityEvents;
  /** Whether the last call was `onAvailable` or `onUnavailable`. */
  #available: boolean | undefined = undefined;

  /** @param events The callbacks. */
  constructor(events: AvailabilityEvents) {
    this.#events = events;
  }

  /** The server answers. */
  begin(): void {
    if (this.#available) return;
    this.#available = true;
    this.#events.onAvailable?.();
  }

  /** The server does not answer. */
  end(error: ConnectionError): void {
    if (this.#available === false) return;
    this.#available = false;
    this.#events.onUnavailable?.(error);
  }
}
