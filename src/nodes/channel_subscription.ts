/**
 * A subscription through any client, renewed when it is lost.
 *
 * @module
 */
import { toError } from "../errors.ts";
import type { SubscriberOwner } from "../redis/subscriber.ts";
import type { Subscription } from "../redis_node/command_sender.ts";
import { settledWithin } from "../time/settled_within.ts";
import type { TimerEntry, TimerWheel } from "../time/timer_wheel.ts";
import { replyErrorOf } from "./read_reply.ts";

/** How long to wait before subscribing again, in milliseconds; doubled for each further failure in a row. */
const RETRY_MS = 500;
/** The longest such wait, in milliseconds. */
const RETRY_MS_MAX = 30_000;
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

const encoder = new TextEncoder();

/** See the module. */
export class ChannelSubscription implements Subscription {
  readonly #subscribe: SubscribeChannel;
  readonly #wheel: TimerWheel;
  readonly #channel: string;
  readonly #owner: SubscriberOwner;
  #failures = 0;
  /** Ends what was begun last. */
  #end: () => Promise<unknown> = () => Promise.resolve();
  /** Waits for the client, or until it is asked again. */
  #timer: TimerEntry | undefined = undefined;
  #closed = false;

  /**
   * Subscribes at once.
   *
   * @param subscribe The client's function.
   * @param wheel Where delays wait.
   * @param channel The channel.
   * @param owner Whom to report to.
   */
  constructor(
    subscribe: SubscribeChannel,
    wheel: TimerWheel,
    channel: string,
    owner: SubscriberOwner,
  ) {
    this.#subscribe = subscribe;
    this.#wheel = wheel;
    this.#channel = channel;
    this.#owner = owner;
    this.#open();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelTimer();
    await settledWithin(this.#wheel, this.#end(), CLOSE_MS_MAX);
  }

  #open(): void {
    let over = false;
    const isOver = () => over || this.#closed;
    const listener: ChannelListener = {
      onMessage: (message) => {
        if (isOver()) return;
        this.#owner.onMessage(typeof message === "string" ? encoder.encode(message) : message);
      },
      onLost: () => {
        if (isOver()) return;
        this.#end().catch(() => {});
        this.#retryLater();
      },
    };
    // Later, because the client may call the listener at once.
    const subscribed = Promise.resolve().then(() => this.#subscribe(this.#channel, listener));
    this.#timer = this.#wheel.after(SUBSCRIBE_MS_MAX, listener.onLost);
    this.#end = async () => {
      if (over) return;
      over = true;
      const end = await subscribed;
      await end();
    };
    subscribed.then(() => {
      if (isOver()) return;
      this.#cancelTimer();
      this.#failures = 0;
      this.#owner.onSubscribed();
    }, (error) => {
      if (isOver()) return;
      over = true;
      if (!replyErrorOf([], error)?.commandRefused) return this.#retryLater();
      this.#cancelTimer();
      this.#closed = true;
      this.#owner.onRefused(toError(error));
    });
  }

  #cancelTimer(): void {
    if (this.#timer) this.#wheel.cancel(this.#timer);
  }

  #retryLater(): void {
    this.#cancelTimer();
    this.#owner.onUnsubscribed();
    const delayMs = Math.min(RETRY_MS * 2 ** this.#failures++, RETRY_MS_MAX);
    this.#timer = this.#wheel.after(delayMs, () => this.#open());
  }
}
