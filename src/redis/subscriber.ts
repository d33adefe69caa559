/**
 * A subscription to one channel, on a *connection* of its own: renewed each time that the connection is lost.
 *
 * @module
 */
import type { TimerEntry, TimerWheel } from "../time/timer_wheel.ts";
import type { RedisAddress } from "./address.ts";
import type { ReplyReceiver } from "./command_queue.ts";
import { Connection, type ConnectionOptions } from "./connection.ts";
import type { Command } from "./encoder.ts";
import { type ConnectionError, ReplyError } from "./errors.ts";
import { isMessage, type RawReply } from "./reply.ts";

/** Delay before subscribing again after an error, in milliseconds; doubled for each further error in a row. */
const RETRY_MS = 500;
/** Longest such delay, in milliseconds. */
const RETRY_MS_MAX = 30_000;

/** The owner of a {@linkcode Subscriber}. */
export interface SubscriberOwner {
  /** Called when the server has confirmed the subscription. */
  onSubscribed(): void;
  /** Called when the subscription ended, or the server replied with an error that may pass. */
  onUnsubscribed(): void;
  /** Called when the server has ended the connection, or left it silent, in place of a reply to the subscription. */
  onUnanswered?(error: Error): void;
  /** Called when the server does not allow the subscription, or does not know the command. */
  onRefused(error: Error): void;
  /** Called for each message. */
  onMessage(message: Uint8Array): void;
}

/** A subscription to one channel of one server. */
export class Subscriber implements ReplyReceiver {
  readonly #connection: Connection;
  readonly #wheel: TimerWheel;
  readonly #owner: SubscriberOwner;
  readonly #subscribe: Command;
  #asked = true;
  /** The number of errors in a row. */
  #errors = 0;
  #closed = false;
  #timer: TimerEntry | undefined = undefined;

  /**
   * Subscribes at once.
   *
   * @param address The server.
   * @param options How to reach the server.
   * @param wheel The wheel of its timers.
   * @param channel The channel.
   * @param owner Receives the messages.
   */
  constructor(
    address: RedisAddress,
    options: ConnectionOptions,
    wheel: TimerWheel,
    channel: string,
    owner: SubscriberOwner,
  ) {
    this.#wheel = wheel;
    this.#owner = owner;
    this.#subscribe = { args: ["SUBSCRIBE", channel] };
    this.#connection = new Connection(address, {
      ...options,
      onConnected: () => {
        if (!this.#asked) this.#ask();
      },
      onDisconnected: () => this.#lose(),
      takesMessage: (reply) => {
        if (!isMessage(reply)) return false;
        if (!this.#closed) owner.onMessage(reply[2]);
        return true;
      },
    }, wheel);
    this.#ask();
  }

  /** Finds out whether the server is still there. */
  ask(): void {
    this.#connection.ask();
  }

  /** Ends the subscription, and reports nothing more. */
  close(): Promise<void> {
    this.#closed = true;
    if (this.#timer) this.#wheel.cancel(this.#timer);
    return this.#connection.close();
  }

  onReply(reply: RawReply): void {
    if (this.#closed) return;
    if (!(reply instanceof ReplyError)) {
      this.#errors = 0;
      this.#owner.onSubscribed();
    } else if (reply.commandRefused) {
      this.close();
      this.#owner.onRefused(reply);
    } else {
      this.#asked = false;
      const delayMs = Math.min(RETRY_MS * 2 ** this.#errors++, RETRY_MS_MAX);
      if (this.#timer) this.#wheel.cancel(this.#timer);
      this.#timer = this.#wheel.after(delayMs, () => {
        if (!this.#asked && this.#connection.open) this.#ask();
      });
      this.#owner.onUnsubscribed();
    }
  }

  onFailure(error: ConnectionError): void {
    this.#asked = false;
    if (!this.#closed && error.outcome === "unknown") this.#owner.onUnanswered?.(error);
  }

  #ask(): void {
    this.#asked = true;
    this.#connection.submit(this.#subscribe, this, undefined, 0);
  }

  #lose(): void {
    if (this.#closed) return;
    this.#asked = false;
    if (this.#timer) this.#wheel.cancel(this.#timer);
    this.#owner.onUnsubscribed();
  }
}
