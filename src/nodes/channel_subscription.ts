/**
 * A subscription through any client, renewed when it is lost.
 *
 * @module
 */
import type { SubscriberOwner } from "../redis/subscriber.ts";
import type { Subscription } from "../redis_node/command_sender.ts";
import { settledWithin } from "../time/settled_within.ts";
import type { TimerEntry, TimerWheel } from "../time/timer_wheel.ts";
import { replyErrorOf } from "./read_reply.ts";

/** How long to wait before subscribing again, in milliseconds; doubled for each further failure in a row. */
const RETRY_MS = 500;
/** The longest such wait, in milliseconds. */
const RETRY_MS_MAX = 30_000;
/** How often a subscription is tried by a message to itself, in milliseconds; the message may take as long. */
const PING_MS = 10_000;
/** Longest wait for a client to subscribe, in milliseconds, because some clients wait forever. */
const SUBSCRIBE_MS_MAX = 10_000;
/** Longest wait for the end of a subscription, in milliseconds. */
const CLOSE_MS_MAX = 250;

/** Receives what a subscription brings. */
export interface ChannelListener {
  /**
   * Must be called for each message of the channel.
   *
   * @param message The message, as text or as its bytes in UTF-8.
   */
  onMessage(message: string | Uint8Array): void;
  /** Should be called when the subscription is lost, so that the node subscribes again and callers ask meanwhile. */
  onLost(): void;
}

/** Subscribes to a channel. See {@linkcode CommandNodeOptions.subscribe}. */
export type SubscribeChannel = (
  channel: string,
  listener: ChannelListener,
) => Promise<() => unknown>;

/** What a subscription takes of a client. */
export interface ChannelClient {
  readonly subscribe: SubscribeChannel;
  /** Publishes an empty message; resolves to whether the server did so. */
  publish(channel: string): Promise<boolean>;
}

const encoder = new TextEncoder();

/** See the module. */
export class ChannelSubscription implements Subscription {
  readonly #client: ChannelClient;
  readonly #wheel: TimerWheel;
  readonly #channel: string;
  readonly #owner: SubscriberOwner;
  #failures = 0;
  /** What the client was asked for last; `undefined` if that is over. */
  #live: Promise<() => unknown> | undefined = undefined;
  /** Whether a message to itself is on its way. */
  #pinged = false;
  /** Waits for the client, or until it is asked again, or for the next message to itself. */
  #timer: TimerEntry | undefined = undefined;

  /**
   * Subscribes at once.
   *
   * @param client The client.
   * @param wheel Where delays wait.
   * @param channel The channel.
   * @param owner Whom to report to.
   */
  constructor(
    client: ChannelClient,
    wheel: TimerWheel,
    channel: string,
    owner: SubscriberOwner,
  ) {
    this.#client = client;
    this.#wheel = wheel;
    this.#channel = channel;
    this.#owner = owner;
    this.#open();
  }

  close(): Promise<void> {
    return settledWithin(this.#wheel, this.#end(), CLOSE_MS_MAX);
  }

  #open(): void {
    const isLive = () => this.#live === subscribed;
    const listener: ChannelListener = {
      onMessage: (message) => {
        if (!isLive()) return;
        this.#pinged = false;
        if (typeof message === "string") this.#owner.onMessage(encoder.encode(message));
        else if (ArrayBuffer.isView(message)) this.#owner.onMessage(message);
      },
      onLost: () => {
        if (!isLive()) return;
        this.#end().catch(() => {});
        const delayMs = Math.min(RETRY_MS * 2 ** this.#failures++, RETRY_MS_MAX);
        this.#timer = this.#wheel.after(delayMs, () => this.#open());
        this.#owner.onUnsubscribed();
      },
    };
    // Later, because the client may call the listener at once.
    const subscribed = Promise.resolve().then(() => {
      return this.#client.subscribe(this.#channel, listener);
    });
    this.#live = subscribed;
    this.#timer = this.#wheel.after(SUBSCRIBE_MS_MAX, listener.onLost);
    subscribed.then(() => {
      if (!isLive()) return;
      this.#cancelTimer();
      this.#failures = 0;
      this.#pinged = false;
      this.#pingLater(listener);
      this.#owner.onSubscribed();
    }, (error) => {
      const refusal = replyErrorOf(error);
      if (!isLive() || !refusal?.commandRefused) return listener.onLost();
      this.#end().catch(() => {});
      this.#owner.onRefused(refusal);
    });
  }

  /** Most clients do not notice that a connection has gone silent on which they only receive. */
  #pingLater(listener: ChannelListener): void {
    this.#timer = this.#wheel.after(PING_MS, () => {
      if (this.#pinged) return listener.onLost();
      this.#pinged = true;
      this.#client.publish(this.#channel).then((published) => {
        if (!published) this.#pinged = false;
      });
      this.#pingLater(listener);
    });
  }

  /** Ends what the client was asked for last, as soon as it has begun. */
  async #end(): Promise<void> {
    const live = this.#live;
    this.#live = undefined;
    this.#cancelTimer();
    const end = await live;
    await end?.();
  }

  #cancelTimer(): void {
    if (this.#timer) this.#wheel.cancel(this.#timer);
  }
}
