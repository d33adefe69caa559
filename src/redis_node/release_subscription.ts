/**
 * How a Redis node tells its client of releases: by messages on a channel of the client's own.
 *
 * @module
 */
import type { ReleaseListener } from "../quorum/queue_ticket.ts";
import type { RedisAddress } from "../redis/address.ts";
import type { ReplyReceiver } from "../redis/command_queue.ts";
import type { Connection, ConnectionOptions } from "../redis/connection.ts";
import { encodeCommand } from "../redis/encoder.ts";
import { isRefusal, ReplyError } from "../redis/errors.ts";
import type { RawReply } from "../redis/reply.ts";
import { Subscriber, type SubscriberOwner } from "../redis/subscriber.ts";
import { WAKE_CHANNEL } from "./scripts/queue.ts";
import type { TimerEntry, TimerWheel } from "../time/timer_wheel.ts";

/** How often a message to oneself may reach nobody before the server is held to pass none on. */
const UNHEARD_MAX = 3;
/** How long to wait before the next, in milliseconds. */
const UNHEARD_DELAY_MS = 100;
/** The same where the server was busy. */
const BUSY_DELAY_MS = 500;

/** A message: the entry of whoever is next, which has two colons of its own, and the key. */
const ENTRY_AND_KEY = /^([^:]*:[^:]*:[^:]*):(.*)$/su;

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Hears of releases on one node. */
export class ReleaseSubscription implements SubscriberOwner, ReplyReceiver {
  readonly #address: RedisAddress;
  readonly #options: ConnectionOptions;
  readonly #wheel: TimerWheel;
  readonly #commands: Connection;
  #subscriber: Subscriber | undefined = undefined;
  #listener: ReleaseListener | undefined = undefined;
  #seat = 0;
  #subscribed = false;
  #probing = false;
  #unheard = 0;
  /** Whether the subscription was made anew as nothing had been heard. */
  #renewed = false;
  #retry: TimerEntry | undefined = undefined;
  #listening = false;
  #refused = false;
  #closing: Promise<unknown> = Promise.resolve();

  /**
   * @param address The node.
   * @param options How to reach it.
   * @param wheel Where timers wait.
   * @param commands The connection for all other commands.
   */
  constructor(
    address: RedisAddress,
    options: ConnectionOptions,
    wheel: TimerWheel,
    commands: Connection,
  ) {
    this.#address = address;
    this.#options = options;
    this.#wheel = wheel;
    this.#commands = commands;
  }

  /** Whether the node tells of releases: only then is it worth standing in line there. */
  get listening(): boolean {
    return this.#listening;
  }

  /** Begins to listen; does nothing where it does already. */
  open(listener: ReleaseListener, nodeIndex: number): void {
    if (this.#subscriber || this.#refused) return;
    this.#listener = listener;
    this.#seat = nodeIndex;
    const channel = WAKE_CHANNEL + listener.id;
    this.#subscriber = new Subscriber(this.#address, this.#options, this.#wheel, channel, this);
  }

  /** Listens no longer; resolves once whatever was open is closed. */
  close(): Promise<unknown> {
    const subscriber = this.#subscriber;
    this.#subscriber = undefined;
    this.#subscribed = this.#listening = false;
    if (this.#retry) this.#wheel.cancel(this.#retry);
    if (subscriber) this.#closing = Promise.all([this.#closing, subscriber.close()]);
    return this.#closing;
  }

  /** The connection for commands has been made. */
  onCommandsPossible(): void {
    if (this.#subscribed && !this.#listening) this.#probe();
  }

  /** The server does not allow what it takes. */
  refuse(error: Error): void {
    if (this.#refused) return;
    this.#refused = true;
    this.close();
    this.#listener?.onUnsupported(this.#seat, error);
  }

  onSubscribed(): void {
    this.#subscribed = true;
    this.#probe();
  }

  onUnsubscribed(): void {
    this.#subscribed = this.#listening = false;
    this.#listener!.onUnsubscribed(this.#seat);
  }

  onRefused(error: Error): void {
    this.refuse(error);
  }

  onMessage(message: Uint8Array): void {
    const [, entry, key] = ENTRY_AND_KEY.exec(decoder.decode(message)) ?? [];
    if (entry) this.#listener!.onReleased(this.#seat, entry, key); // else it is the message to oneself
  }

  /** Says whether the message to oneself got through. */
  onReply(reply: RawReply): void {
    this.#probing = false;
    if (!this.#subscribed) return;
    if (reply instanceof ReplyError) {
      if (isRefusal(reply)) this.refuse(reply);
      else this.#probeLater(BUSY_DELAY_MS);
    } else if (typeof reply === "number" && reply > 0) {
      this.#unheard = 0;
      this.#renewed = false;
      this.#listening = true;
      this.#listener!.onSubscribed(this.#seat);
    } else if (++this.#unheard >= UNHEARD_MAX) {
      this.#onNeverHeard();
    } else {
      this.#probeLater(UNHEARD_DELAY_MS);
    }
  }

  onFailure(): void {
    this.#probing = false;
    if (!this.#subscribed) return;
    this.#listener!.onUnsubscribed(this.#seat); // until commands are possible again
    if (this.#commands.open) this.#probeLater(BUSY_DELAY_MS);
  }

  /** The subscription may have died unnoticed. Where a new one hears nothing either, the server passes nothing on. */
  #onNeverHeard(): void {
    if (this.#renewed) {
      return this.refuse(new Error(`${this.#address.name} passes no messages on`));
    }
    const listener = this.#listener!;
    this.close();
    this.#unheard = 0;
    this.#renewed = true;
    this.open(listener, this.#seat);
  }

  #probeLater(delayMs: number): void {
    this.#retry = this.#wheel.after(delayMs, () => this.#probe());
  }

  /** Sends a message to oneself: it shows that PUBLISH is allowed, and that messages arrive. */
  #probe(): void {
    if (this.#probing || !this.#subscribed) return;
    this.#probing = true;
    const channel = WAKE_CHANNEL + this.#listener!.id;
    this.#commands.submit(encodeCommand(["PUBLISH", channel, ""]), this, undefined, 0);
  }
}
