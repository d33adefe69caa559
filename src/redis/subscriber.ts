/**
 * A *connection* of its own that listens to one channel, for as long as it is wanted: subscribed again whenever it was
 * lost, and asked now and then whether it still stands.
 *
 * @module
 */
import type { TimerEntry, TimerWheel } from "../time/timer_wheel.ts";
import type { RedisAddress } from "./address.ts";
import type { ReplyReceiver } from "./command_queue.ts";
import { Connection, type ConnectionOptions } from "./connection.ts";
import { encodeCommand } from "./encoder.ts";
import { isRefusal, type RedisError, ReplyError } from "./errors.ts";
import type { RawReply } from "./reply.ts";

/** How often the server is asked for a sign of life, in milliseconds: a dead connection looks like a quiet one. */
const PING_MS = 10_000;
/** How long to wait before subscribing again, in milliseconds, where the server was busy. */
const RETRY_MS = 500;

/** Whose channel it is. */
export interface SubscriberOwner {
  /** The server says that it sends messages from now on. */
  onSubscribed(): void;
  /** They come no longer. */
  onUnsubscribed(): void;
  /** It will never send any. */
  onRefused(error: Error): void;
  /** A message came. */
  onMessage(message: Uint8Array): void;
}

/** Listens to one channel of one server. */
export class Subscriber implements ReplyReceiver {
  readonly #connection: Connection;
  readonly #wheel: TimerWheel;
  readonly #owner: SubscriberOwner;
  readonly #subscribe: Uint8Array;
  #subscribed = false;
  #asked = true;
  #closed = false;
  #timer: TimerEntry | undefined = undefined;

  /**
   * Begins at once.
   *
   * @param address The server.
   * @param options How to reach it.
   * @param wheel Where timers wait.
   * @param channel What to listen to.
   * @param owner Who is told.
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
    this.#subscribe = encodeCommand(["SUBSCRIBE", channel]);
    this.#connection = new Connection(address, {
      ...options,
      onConnected: () => {
        if (!this.#asked) this.#ask();
      },
      onDisconnected: () => this.#lose(),
      onMessage: (_channel, message) => {
        if (!this.#closed) owner.onMessage(message);
      },
    }, wheel);
    this.#ask();
  }

  /** Listens no longer, and says nothing more. */
  close(): Promise<void> {
    this.#closed = true;
    if (this.#timer) this.#wheel.cancel(this.#timer);
    return this.#connection.close();
  }

  onReply(reply: RawReply): void {
    if (this.#closed || this.#subscribed) return; // a sign of life, whatever it is
    if (!(reply instanceof ReplyError)) {
      this.#subscribed = true;
      this.#pingLater();
      this.#owner.onSubscribed();
    } else if (isRefusal(reply)) {
      this.close();
      this.#owner.onRefused(reply);
    } else {
      this.#asked = false;
      this.#timer = this.#wheel.after(RETRY_MS, () => {
        if (!this.#asked && this.#connection.open) this.#ask();
      });
    }
  }

  onFailure(_error: RedisError): void {
    this.#asked = false;
  }

  #ask(): void {
    this.#asked = true;
    this.#connection.submit(this.#subscribe, this, undefined, 0);
  }

  #lose(): void {
    if (this.#closed) return;
    this.#subscribed = this.#asked = false;
    if (this.#timer) this.#wheel.cancel(this.#timer);
    this.#owner.onUnsubscribed();
  }

  #pingLater(): void {
    this.#timer = this.#wheel.after(PING_MS, () => {
      this.#connection.submit(encodeCommand(["PING"]), this, undefined, 0);
      this.#pingLater();
    });
  }
}
